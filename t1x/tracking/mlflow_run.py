"""One run in an MLflow store (the worker of `MLflowTracking`).

Metrics are buffered and go to the store in batches; `log.jsonl` has them at once, so a killed process loses none: a run
that goes on sends first what its log has and the store hasn't, and nothing again that the store shows.
"""

import json
import shlex
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from t1x.tracking.log import MetricLog, check_name
from t1x.tracking.mlflow_resume import FAILED_TAG, Key, reopened, stored_values, unsent
from t1x.tracking.mlflow_store import keep_artifact, open_store, quiet_mlflow, status_of
from t1x.tracking.params import flatten, shorten
from t1x.tracking.protocol import Resumed
from t1x.tracking.signals import like_ctrl_c

BATCH = 500
"""So many metrics that wait for the store are sent to it."""
METRICS_A_CALL = 1000
"""MLflow's limit."""
PATIENCE = 5.0
"""Seconds that a metric waits for the store at most, if others come after it."""
PARAMS_A_BATCH = 100
"""MLflow's limit for one call."""
CHANGED_TAG = "t1x.changed"
"""Parameters that had other values when the run went on (JSON, name to value); MLflow keeps the first."""
MAX_ERROR = 1000
"""Characters kept of the error that ended a run."""


class MLflowRun:
    """A `TrackedRun` in the store at `uri`."""

    id: str

    def __init__(
        self, uri: str, experiment: str, folder: Path, name: str, tags: Mapping[str, str], resumed: Resumed | None = None
    ) -> None:
        self._resumed = resumed
        self._uri, self._experiment, self._folder, self._name = uri, experiment, folder, name
        for tag in tags:
            check_name("tag", tag)
        self._tags = {"t1x.folder": str(folder), **tags}
        self.view = uri if uri.startswith("http") else f"mlflow ui --backend-store-uri {shlex.quote(uri)}"
        self._pending: list[Any] = []
        self._stored: dict[Key, float] = {}
        """What the store shows after the place where the run goes on; what comes again with the same value isn't sent."""
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._log = opened.enter_context(MetricLog(self._folder, self._resumed.log_bytes if self._resumed else None))
            self._mlflow = quiet_mlflow()
            self._client, experiment_id = open_store(self._mlflow, self._uri, self._experiment)
            known = self._resumed.id if self._resumed else None
            if known and reopened(self._mlflow, self._client, self._uri, known):
                self.id, self._stored = known, stored_values(self._client, known)
            else:
                self.id = self._client.create_run(experiment_id, run_name=self._name, tags=self._tags).info.run_id
            self._pending += [self._metric(*each) for each in unsent(self._log.before, self._stored)]
            self._flush()
            opened.enter_context(like_ctrl_c())
            self._opened = opened.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._finish(error)
        except Exception as lost:
            if error is None:
                raise
            error.add_note(
                f"The tracking store {self._uri} couldn't be brought up to date ({lost}); see {self._folder / 'log.jsonl'}."
            )
        finally:
            self._opened.close()

    def params(self, config: Mapping[str, object]) -> None:
        flat = flatten(config)
        stored = self._client.get_run(self.id).data.params if self._resumed else {}
        items = [self._mlflow.entities.Param(name, shorten(text)) for name, text in flat.items() if name not in stored]
        for start in range(0, len(items), PARAMS_A_BATCH):
            self._client.log_batch(self.id, params=items[start : start + PARAMS_A_BATCH])
        if changed := {name: text for name, text in flat.items() if stored.get(name) not in (None, shorten(text))}:
            self.tags({CHANGED_TAG: shorten(json.dumps(changed, ensure_ascii=False))})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "params.json"
            path.write_text(json.dumps(flat, indent=1, ensure_ascii=False), encoding="utf-8")
            self.artifact(path)

    def metrics(self, values: Mapping[str, float | None], step: int) -> None:
        sound = self._log.write(values, step)
        new = {name: value for name, value in sound.items() if self._stored.pop((name, step), None) != value}
        self._pending += [self._metric((name, step), value, time.time()) for name, value in new.items()]
        if len(self._pending) >= BATCH or time.monotonic() - self._flushed > PATIENCE:
            self._flush()

    @property
    def position(self) -> int:
        return self._log.position

    def artifact(self, path: Path, folder: str = "") -> None:
        keep_artifact(self._client, self.id, path, folder)

    def tags(self, values: Mapping[str, str]) -> None:
        for name in values:
            check_name("tag", name)
        self._client.log_batch(self.id, tags=[self._mlflow.entities.RunTag(name, text) for name, text in values.items()])

    def _metric(self, key: Key, value: float, when: float) -> Any:
        name, step = key
        return self._mlflow.entities.Metric(name, value, int(when * 1000), step)

    def _finish(self, error: BaseException | None) -> None:
        try:
            if status_of(error) == "FAILED":
                self.tags({FAILED_TAG: f"{type(error).__name__}: {error}"[:MAX_ERROR]})
            self._flush()
        finally:
            self._client.set_terminated(self.id, status=status_of(error))

    def _flush(self) -> None:
        for start in range(0, len(self._pending), METRICS_A_CALL):
            self._client.log_batch(self.id, metrics=self._pending[start : start + METRICS_A_CALL])
        self._pending.clear()
        self._flushed = time.monotonic()
