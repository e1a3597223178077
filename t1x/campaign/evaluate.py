"""Evaluation: how often the policy resolves the tasks of a suite. "Resolved" scores the final state alone."""

from dataclasses import dataclass

from t1x.campaign.assembly import Assembly, causes, first, named
from t1x.campaign.suite import PoolSuite
from t1x.engine.protocol import EngineWorker
from t1x.rollout.metrics import evaluation_metrics
from t1x.rollout.records import Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import WaitAll

MODES = {"greedy": 0.0, "sampled": 1.0}
"""Temperature of each mode."""


@dataclass(frozen=True, slots=True)
class Score:
    """One suite in one mode on one policy."""

    policy: str
    """`untrained`, `start` or `step <n>`."""
    suite: str
    mode: str
    metrics: dict[str, float]
    """See `evaluation_metrics`."""

    @property
    def resolved_rate(self) -> float:
        return self.metrics["resolved_rate"]

    @property
    def stderr(self) -> float:
        """Standard error of the resolved rate over tasks; 0 for a single task."""
        return self.metrics.get("resolved_rate_se", 0.0)


async def evaluate(
    assembly: Assembly, engine: EngineWorker, suite: PoolSuite, policy: str, step: int
) -> tuple[list[Score], list[Trial]]:
    """Runs a suite in both modes and logs `eval/<suite>/resolved_rate` (temperature 1), `…_greedy` and what goes with them; the
    untrained policy's numbers stand under `untrained/` instead of `eval/`, since it has no step. Raises `RuntimeError` where no
    trial of a mode was valid."""
    tasks = assembly.suites[suite.name]
    prefix = "untrained" if policy == "untrained" else "eval"
    scores: list[Score] = []
    seen: list[Trial] = []
    for mode, temperature in MODES.items():
        trials = named(f"eval-{suite.name}-{mode}", step, first(tasks, getattr(suite, mode)))
        if not trials:
            continue
        with assembly.progress.phase(f"evaluating {policy} on {suite.name}, {mode}", len(trials)) as phase:
            batch = await rollout(
                trials,
                batch=len(trials),
                scheduler=WaitAll(),
                run=assembly.runner(engine, f"eval-{suite.name}-{mode}", step, temperature),
                concurrency=assembly.campaign.concurrency,
                on_trial=lambda _: phase.advance(),
            )
        if not batch.admitted:
            raise RuntimeError(f"evaluation of {policy} on {suite.name} has no valid trial: {causes(batch.others)}")
        score = Score(policy, suite.name, mode, evaluation_metrics([*batch.admitted, *batch.others]))
        scores.append(score)
        seen += batch.admitted
        ending = "_greedy" if mode == "greedy" else ""
        kept = {name: value for name, value in score.metrics.items() if not name.startswith("family/")}
        assembly.tracked.metrics({f"{prefix}/{suite.name}/{name}{ending}": value for name, value in kept.items()}, step)
        assembly.progress.say(
            f"{policy} on {suite.name}, {mode}: resolved {score.resolved_rate:.3f} ± {score.stderr:.3f} "
            f"of {len(batch.admitted)} tasks" + (f", invalid: {causes(batch.others)}" if batch.others else "")
        )
    return scores, seen
