"""A run of an MLflow store that goes on: found again, and brought up to what its log says."""

import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from t1x.tracking.log import LogEntry

GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
"""MLflow's errors for a run that a store doesn't have, or never could."""
FAILED_TAG = "t1x.error"
"""What ended a run that failed."""


Key = tuple[str, int]
"""A metric's name and step."""


def reopened(mlflow: Any, client: Any, uri: str, run_id: str) -> bool:
    """Sets a run to RUNNING again; False, with a warning, where the store doesn't have it. Raises `ValueError` for a store that
    can't be asked."""
    try:
        run = client.get_run(run_id)
    except mlflow.exceptions.MlflowException as error:
        if error.error_code not in GONE:
            raise ValueError(f"the tracking store {uri} can't be asked for run {run_id}: {error}") from error
        run = None
    if run is None or run.info.lifecycle_stage != "active":
        warnings.warn(
            f"the tracking store {uri} has lost run {run_id}; a new one is made, with all that the log holds", stacklevel=2
        )
        return False
    client.update_run(run_id, status="RUNNING")
    if FAILED_TAG in run.data.tags:
        client.delete_tag(run_id, FAILED_TAG)
    return True


def stored_values(client: Any, run_id: str) -> dict[Key, float]:
    """What the store shows of a run's metrics: of several values for one step the last one, as MLflow has it."""
    found: dict[Key, tuple[int, float]] = {}
    for name in client.get_run(run_id).data.metrics:
        for each in client.get_metric_history(run_id, name):
            key, value = (name, each.step), (each.timestamp, each.value)
            found[key] = max(value, found.get(key, value))
    return {key: value for key, (_, value) in found.items()}


def unsent(entries: Iterable[LogEntry], stored: dict[Key, float]) -> Iterator[tuple[Key, float, float]]:
    """What the log has and the store doesn't show: key, value and Unix time, which is now where another value is in its place.
    Takes what the log has out of `stored`."""
    for entry in entries:
        for name, value in entry.metrics.items():
            shown = stored.pop((name, entry.step), None)
            if value is not None and value != shown:
                yield (name, entry.step), value, entry.time if shown is None else time.time()
