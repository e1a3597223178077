"""Demonstrations recorded in real sandboxes: given commands, real observations, the same trajectories as the policy's."""

from collections.abc import Callable, Sequence

from t1x.engine.protocol import Decoding
from t1x.engine.scripted import ScriptedEngine
from t1x.grading.reward import Reward
from t1x.harness.harness import Harness
from t1x.rollout.records import Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import WaitAll
from t1x.rollout.trial import run_trial
from t1x.sandbox.leases import Leases
from t1x.tasks.task import Task
from t1x.text.tokenizer import ChatTokenizer, Ids
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.stitcher import Stitcher


async def demonstrate(
    tasks: Sequence[Task],
    commands: Sequence[Sequence[str]],
    *,
    host: Leases,
    tokenizer: ChatTokenizer,
    harness: Harness,
    stitcher: Stitcher,
    reward: Reward | None,
    concurrency: int,
    on_trial: Callable[[Trial], None] | None = None,
) -> list[Trial]:
    """One trial a task, in order, whose agent runs `commands[i]` on `tasks[i]` and says that it is done. Log-probabilities are 0
    and there is no routing. With a `reward` they are verified, which tells how good they are. Trials that aren't ended by `DONE`
    broke off where a limit of the harness was reached. Raises `ValueError` for a command that is too long for it."""
    ids = [f"demonstration-{index}" for index in range(len(tasks))]
    scripts = scripted(tasks, commands, harness, tokenizer)
    engine = ScriptedEngine(dict(zip(ids, scripts, strict=True)))

    async def run(trial_id: str, task: Task) -> Trial:
        trial = await run_trial(
            task,
            trial_id=trial_id,
            host=host,
            engine=engine,
            tokenizer=tokenizer,
            harness=harness,
            stitch=lambda turns: stitcher.stitch(trial_id, turns, tokenizer, None),
            reward=reward,
            decoding=Decoding(1.0),
            seed_for=lambda turn: 0,
        )
        for turn in trial.turns:
            if turn.completion.finish_reason == "length" and trial.ended_by is not EndedBy.CONTEXT:
                raise ValueError(
                    f"task {task.name}: command {turn.index + 1} of its demonstration is too long: {type(harness).__name__} cut it "
                    f"after {tokenizer.decode(turn.completion.ids)!r}; raise its limit on a command's tokens"
                )
        return trial

    if not tasks:
        return []
    trials = dict(zip(ids, tasks, strict=True))
    batch = await rollout(trials, batch=len(trials), scheduler=WaitAll(), run=run, concurrency=concurrency, on_trial=on_trial)
    recorded = {trial.id: trial for trial in (*batch.admitted, *batch.others)}
    return [recorded[trial_id] for trial_id in ids]


def scripted(
    tasks: Sequence[Task], commands: Sequence[Sequence[str]], harness: Harness, tokenizer: ChatTokenizer
) -> list[list[Ids]]:
    """What the agent says on each task, turn by turn. Raises `ValueError` naming a task and its command that is too long."""
    scripts = []
    for task, given in zip(tasks, commands, strict=True):
        try:
            scripts.append(harness.script(given, tokenizer))
        except ValueError as error:
            raise ValueError(f"demonstration of task {task.name}: {error}") from error
    return scripts
