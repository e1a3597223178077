"""What the trials of a rollout were paid for, as numbers. Pure functions of trials; nothing undefined is reported."""

from collections import Counter

import numpy as np

from t1x.rollout.records import RolloutBatch


def payment(batch: RolloutBatch) -> dict[str, float]:
    """Of the admitted trials: `passed_mean` assertions pass (P, of those with a usable record), `baseline_passed_mean` of these
    passed before the agent acted (where that is known), and the share `fallback_share` was paid without a usable record. Of all
    launched ones: `unusable/<cause>` reports without a usable record, for each cause that occurred (report, section 5.2)."""
    reports = [trial.report for trial in batch.admitted if trial.report is not None]
    usable = [report for report in reports if report.cause is None]
    means: dict[str, list[int]] = {
        "passed_mean": [report.passed for report in usable],
        "baseline_passed_mean": [
            sum(ok for name, ok in report.assertions if name in report.baseline) for report in usable if report.baseline is not None
        ],
        "fallback_share": [report.cause is not None for report in reports],
    }
    causes = Counter(
        trial.report.cause for trial in (*batch.admitted, *batch.others) if trial.report is not None and trial.report.cause
    )
    return {name: float(np.mean(values)) for name, values in means.items() if values} | {
        f"unusable/{cause}": float(count) for cause, count in sorted(causes.items())
    }
