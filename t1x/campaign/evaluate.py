"""Evaluation: how often the policy resolves the tasks of a suite. "Resolved" scores the final state alone."""

import math
from dataclasses import dataclass

from t1x.campaign.assembly import Assembly, first, named
from t1x.campaign.suite import PoolSuite
from t1x.campaign.validity import causes, failure
from t1x.engine.protocol import Decoding, EngineWorker
from t1x.rollout.metrics import evaluation_metrics
from t1x.rollout.records import Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import WaitAll

MODES = {"greedy": 0.0, "sampled": 1.0}
"""Temperature of each mode."""
LABELS = {"greedy": "greedy", "sampled": "T = 1"}
"""How a reader calls each mode."""


@dataclass(frozen=True, slots=True)
class Score:
    """One suite in one mode on one policy."""

    step: int | None
    """Training steps that the policy has had: 0 for the start, None for the untrained policy."""
    suite: str
    mode: str
    metrics: dict[str, float]
    """See `evaluation_metrics`."""

    @property
    def policy(self) -> str:
        """Its name for a reader."""
        return policy_name(self.step)

    @property
    def resolved_rate(self) -> float:
        return self.metrics["resolved_rate"]

    @property
    def stderr(self) -> float:
        """Standard error of the resolved rate over tasks; NaN for a single task."""
        return self.metrics.get("resolved_rate_se", math.nan)


def policy_name(step: int | None) -> str:
    """`untrained`, `start` or `step <n>`; see `Score.step`."""
    return {None: "untrained", 0: "start"}.get(step, f"step {step}")


async def evaluate(assembly: Assembly, engine: EngineWorker, suite: PoolSuite, step: int | None) -> tuple[list[Score], list[Trial]]:
    """Runs a suite in both modes and logs `eval/<suite>/resolved_rate` (temperature 1), `…_greedy` and what goes with them; the
    untrained policy's numbers (`step` None) stand under `untrained/` instead of `eval/`, at step 0. Raises what `failure` gives
    where no trial of a mode was valid."""
    tasks = assembly.suites[suite.name]
    prefix, policy, at = "untrained" if step is None else "eval", policy_name(step), step or 0
    scores: list[Score] = []
    seen: list[Trial] = []
    for mode, temperature in MODES.items():
        purpose = f"eval-{suite.name}-{mode}"
        trials = named(purpose, at, first(tasks, getattr(suite, mode)))
        if not trials:
            continue
        with assembly.progress.phase(f"evaluating {policy} on {suite.name}, {LABELS[mode]}", len(trials)) as phase:
            batch = await rollout(
                trials,
                batch=len(trials),
                scheduler=WaitAll(),
                run=assembly.runner(engine, purpose, at, Decoding(temperature)),
                concurrency=assembly.experiment.concurrency,
                on_trial=lambda _: phase.advance(),
            )
        if not batch.admitted:
            raise failure(f"evaluation of {policy} on {suite.name} has no valid trial", batch.others)
        score = Score(step, suite.name, mode, evaluation_metrics([*batch.admitted, *batch.others]))
        scores.append(score)
        seen += batch.admitted
        ending = "_greedy" if mode == "greedy" else ""
        kept = {name: value for name, value in score.metrics.items() if not name.startswith("family/")}
        assembly.tracked.metrics({f"{prefix}/{suite.name}/{name}{ending}": value for name, value in kept.items()}, at)
        assembly.progress.say(
            f"{policy} on {suite.name}, {LABELS[mode]}: resolved {score.resolved_rate:.3f} ± {score.stderr:.3f} "
            f"of {len(batch.admitted)} tasks" + (f", invalid: {causes(batch.others)}" if batch.others else "")
        )
    return scores, seen
