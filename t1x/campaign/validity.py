"""What is said where trials are invalid."""

from collections import Counter
from collections.abc import Iterable

from t1x.harness.records import EndedBy
from t1x.rollout.records import Trial


def causes(trials: Iterable[Trial]) -> str:
    """Why trials aren't in a batch, most frequent first, each with a task that it happened on:
    `3 × verifier_error: timeout: … (task rename-03); 1 × cancelled (task pack-01)`."""
    counted: Counter[str] = Counter()
    example: dict[str, str] = {}
    for trial in trials:
        why = f"{trial.ended_by}: {trial.error}".removesuffix(": ")
        counted[why] += 1
        example.setdefault(why, trial.task.name)
    return "; ".join(f"{number} × {why} (task {example[why]})" for why, number in counted.most_common())


def failure(what: str, trials: Iterable[Trial]) -> Exception:
    """The error to raise where no trial is left to go on with: a `ValueError`, since verifiers and the host are the user's to mend,
    but a `RuntimeError` where the engine failed."""
    trials = list(trials)
    kind = RuntimeError if any(trial.ended_by is EndedBy.ENGINE_ERROR for trial in trials) else ValueError
    return kind(f"{what}: {causes(trials)}")
