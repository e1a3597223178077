"""One run in an MLflow store (the worker of `MLflowTracking`).

Metrics are buffered and go to the store in batches; `log.jsonl` has them at once, so a killed process loses none.
"""

import asyncio
import fcntl
import json
import logging
import os
import shlex
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from t1x.tracking.log import MetricLog, check_name
from t1x.tracking.params import flatten, shorten
from t1x.tracking.signals import like_ctrl_c

BATCH = 500
"""Metrics that wait for the store at most (MLflow takes 1000 at once)."""
PATIENCE = 5.0
"""Seconds that a metric waits for the store at most, if others come after it."""
PARAMS_A_BATCH = 100
"""MLflow's limit for one call."""
MAX_ERROR = 1000
"""Characters kept of the error that ended a run."""


class MLflowRun:
    """A `TrackedRun` in the store at `uri`."""

    id: str

    def __init__(self, uri: str, experiment: str, folder: Path, name: str) -> None:
        self._uri, self._experiment, self._folder, self._name = uri, experiment, folder, name
        self.view = uri if uri.startswith("http") else f"mlflow ui --backend-store-uri {shlex.quote(uri)}"
        self._pending: list[Any] = []
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._log = opened.enter_context(MetricLog(self._folder))
            self._mlflow = _quiet_mlflow()
            self._client, experiment_id = _open_store(self._mlflow, self._uri, self._experiment)
            self.id = self._client.create_run(
                experiment_id, run_name=self._name, tags={"t1x.folder": str(self._folder)}
            ).info.run_id
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
        items = [self._mlflow.entities.Param(name, shorten(text)) for name, text in flat.items()]
        for start in range(0, len(items), PARAMS_A_BATCH):
            self._client.log_batch(self.id, params=items[start : start + PARAMS_A_BATCH])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "params.json"
            path.write_text(json.dumps(flat, indent=1, ensure_ascii=False), encoding="utf-8")
            self.artifact(path)

    def metrics(self, values: Mapping[str, float | None], step: int) -> None:
        sound = self._log.write(values, step)
        now = int(time.time() * 1000)
        self._pending += [self._mlflow.entities.Metric(name, value, now, step) for name, value in sound.items()]
        if len(self._pending) >= BATCH or time.monotonic() - self._flushed > PATIENCE:
            self._flush()

    def artifact(self, path: Path, folder: str = "") -> None:
        if path.is_dir():
            self._client.log_artifacts(self.id, str(path), folder or None)
        elif path.is_file():
            self._client.log_artifact(self.id, str(path), folder or None)
        else:
            raise ValueError(f"artifact {path}: no such file or folder")

    def tags(self, values: Mapping[str, str]) -> None:
        for name in values:
            check_name("tag", name)
        self._client.log_batch(self.id, tags=[self._mlflow.entities.RunTag(name, text) for name, text in values.items()])

    def _finish(self, error: BaseException | None) -> None:
        try:
            if _status(error) == "FAILED":
                self.tags({"t1x.error": f"{type(error).__name__}: {error}"[:MAX_ERROR]})
            self._flush()
        finally:
            self._client.set_terminated(self.id, status=_status(error))

    def _flush(self) -> None:
        for start in range(0, len(self._pending), BATCH):
            self._client.log_batch(self.id, metrics=self._pending[start : start + BATCH])
        self._pending.clear()
        self._flushed = time.monotonic()


def _status(error: BaseException | None) -> str:
    """MLflow's status of a run that this ended."""
    if error is None:
        return "FINISHED"
    return "KILLED" if isinstance(error, KeyboardInterrupt | asyncio.CancelledError) else "FAILED"


def _quiet_mlflow() -> ModuleType:
    """The mlflow package, imported so that neither it nor what it uses writes to stderr or reports home."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    logging.getLogger("alembic").setLevel(logging.ERROR)
    import mlflow

    return mlflow


def _open_store(mlflow: ModuleType, uri: str, experiment: str) -> tuple[Any, str]:
    """A client of the store and the experiment's id; makes what isn't there. Raises `ValueError` when it can't be opened."""
    if not uri.startswith("sqlite:///"):
        return _open(mlflow, uri, experiment, None)
    database = Path(uri.removeprefix("sqlite:///")).resolve()
    _check_sqlite(database)
    with _alone_in(database.parent):
        return _open(mlflow, uri, experiment, str(database.parent / "artifacts"))


def _open(mlflow: ModuleType, uri: str, experiment: str, artifacts: str | None) -> tuple[Any, str]:
    try:
        client = mlflow.MlflowClient(uri)
        found = client.get_experiment_by_name(experiment)
        if found is None:
            return client, client.create_experiment(experiment, artifact_location=artifacts)
    except mlflow.exceptions.MlflowException as error:
        raise ValueError(f"the tracking store {uri} can't be opened: {error}") from error
    if found.lifecycle_stage != "active":
        raise ValueError(
            f"experiment {experiment!r} was deleted in {uri}: restore it or set MLflowTracking.experiment to another name"
        )
    return client, found.experiment_id


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keeps other runs of this folder waiting: MLflow spoils a new database that two processes open at once."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_sqlite(database: Path) -> None:
    """Raises `ValueError` for a file that MLflow would retry to open for minutes."""
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(database if database.exists() else database.parent, os.W_OK):
            raise PermissionError("no permission to write")
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("pragma schema_version").fetchone()
    except (OSError, sqlite3.Error) as error:
        raise ValueError(
            f"the tracking store {database} can't be used ({error}): move it away or set MLflowTracking.uri"
        ) from error
