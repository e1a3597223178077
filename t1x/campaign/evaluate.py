"""Evaluation: how well a policy does on the tasks of a suite. Only the final state of a trial is scored.

Invariant: the trials of a pass are on disk before its score is, as far as they could be, so that a run that goes on has them too.
"""

import asyncio
from collections.abc import Iterable

from t1x.campaign.assembly import Assembly, first, named
from t1x.campaign.outcome import Outcome, Score, policy_name
from t1x.campaign.suite import Pass, Suite
from t1x.campaign.validity import cause_lines, failure
from t1x.campaign.wording import with_error
from t1x.engine.protocol import EngineWorker
from t1x.rollout.evaluation import evaluation_metrics
from t1x.rollout.records import Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import WaitAll

SAID = {"resolved_rate": "resolved", "partial_credit": "partial credit"}
"""How a line says each measure."""


async def evaluate_all(
    assembly: Assembly, engine: EngineWorker, outcome: Outcome, step: int | None, suites: Iterable[Suite]
) -> None:
    """Runs suites, each in all of its passes, and keeps each score as soon as there is one; passes that `outcome` has aren't made
    again. `step` as in `Score`."""
    seen: list[Trial] = []
    when = {None: "of the untrained policy", 0: "at the start"}.get(step, f"after step {step}")
    for suite in suites:
        for each in suite.passes():
            if outcome.has(step, suite.name, each.mode):
                continue
            outcome.transcripts, outcome.transcripts_of = seen, f"the evaluations {when}"
            score = await evaluate(assembly, engine, suite, each, step, seen)
            outcome.scores.append(score)
            assembly.journal.add(score)
            assembly.tracked.metrics(*score.logged)


async def evaluate(
    assembly: Assembly, engine: EngineWorker, suite: Suite, each: Pass, step: int | None, seen: list[Trial]
) -> Score:
    """One pass over a suite, whose trials are added to `seen` and kept. Raises what `failure` gives where none was valid."""
    policy = policy_name(step)
    purpose = f"eval-{suite.name}-{each.mode}"
    tasks = first(assembly.suites[suite.name], each.tasks)
    trials = named(purpose, step, tasks, each.attempts)
    with assembly.progress.phase(f"evaluating {policy} on {suite.name}, {each.label}", len(trials)) as phase:
        try:
            batch = await rollout(
                trials,
                batch=len(trials),
                scheduler=WaitAll(),
                run=assembly.runner(engine, purpose, step or 0, each.decoding, each.harness),
                concurrency=assembly.experiment.concurrency,
                on_trial=lambda _: phase.advance(),
            )
        except asyncio.CancelledError:
            assembly.progress.say(f"{policy} on {suite.name}, {each.label}: stopped after {phase.done} of {len(trials)} trials")
            raise
    made = [*batch.admitted, *batch.others]
    seen += made
    assembly.stored.store_pass(purpose, step, made)
    if not batch.admitted:
        raise failure(f"evaluation of {policy} on {suite.name} has no valid trial", batch.others)
    metrics = evaluation_metrics(made)
    score = Score(step, suite.name, each.mode, each.ending, each.label, each.measure, metrics)
    assembly.progress.say(
        f"{policy} on {suite.name}, {each.label}: {SAID[each.measure]} {with_error(score.value, score.stderr)} "
        f"of {int(metrics['tasks'])} tasks{fewer(len(tasks), each.tasks)}"
        + (f"; {len(batch.others)} of {len(trials)} trials aren't valid, as the transcripts show:" if batch.others else "")
    )
    for line in cause_lines(batch.others):
        assembly.progress.say(f"  {line}")
    return score


def fewer(have: int, wanted: int | None) -> str:
    """What is said where a suite's pool has fewer tasks than were asked for; empty where it has enough."""
    return "" if wanted is None or have >= wanted else f" (there are only {have}; {wanted} were asked for)"
