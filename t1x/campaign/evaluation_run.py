"""Running an evaluation: the start's policy on every suite, once."""

import asyncio

from t1x.campaign.assembly import Assembly
from t1x.campaign.evaluate import evaluate_all
from t1x.campaign.evaluation import Evaluation
from t1x.campaign.outcome import Outcome
from t1x.model.checkpoint import to_hf


async def run_evaluation(assembly: Assembly, outcome: Outcome) -> None:
    """Runs the whole evaluation. Raises what stops it; `outcome` then holds what there was."""
    evaluation = assembly.experiment
    assert isinstance(evaluation, Evaluation), "campaigns have a loop of their own"
    await evaluation.start.prepare(assembly)
    engine = evaluation.engine.build(evaluation.model, to_hf(assembly.policy), deterministic=evaluation.deterministic)
    deadline = asyncio.timeout(evaluation.total_deadline)
    try:
        async with deadline:
            await evaluate_all(assembly, engine, outcome, 0, evaluation.suites)
    except TimeoutError:
        if not deadline.expired():
            raise
        due = [f"{suite.name} ({each.label})" for suite in evaluation.suites for each in suite.passes()]
        done = len(outcome.scores)
        raise ValueError(
            f"total_deadline = {evaluation.total_deadline:g} s is over: {done} of {len(due)} scores are there, {due[done]} was "
            f"being run; raise total_deadline, or evaluate on fewer tasks or with fewer attempts"
        ) from None
    finally:
        await engine.close()
