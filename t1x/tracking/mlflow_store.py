"""An MLflow store: opened so that nothing is written to stderr, and what is wrong with it said at once."""

import asyncio
import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

DEFAULT_ID = "0"
"""Of the experiment that MLflow makes in each new store, whose artifacts would lie in the working folder."""


def status_of(error: BaseException | None) -> str:
    """MLflow's status of a run that this ended."""
    if error is None:
        return "FINISHED"
    return "KILLED" if isinstance(error, KeyboardInterrupt | asyncio.CancelledError) else "FAILED"


def quiet_mlflow() -> ModuleType:
    """The mlflow package, imported so that neither it nor what it uses writes to stderr or reports home."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    logging.getLogger("alembic").setLevel(logging.ERROR)
    import mlflow

    return mlflow


def keep_artifact(client: Any, run_id: str, path: Path, folder: str) -> None:
    """Copies a file or folder to the run's artifacts. Raises `ValueError` when it isn't there."""
    if path.is_dir():
        client.log_artifacts(run_id, str(path), folder or None)
    elif path.is_file():
        client.log_artifact(run_id, str(path), folder or None)
    else:
        raise ValueError(f"artifact {path}: no such file or folder")


def open_store(mlflow: ModuleType, uri: str, experiment: str) -> tuple[Any, str]:
    """A client of the store and the experiment's id; makes what isn't there. Raises `ValueError` when it can't be opened."""
    if not uri.startswith("sqlite:///"):
        return _open(mlflow, uri, experiment, None)
    database = Path(uri.removeprefix("sqlite:///")).resolve()
    _check_sqlite(database)
    with _alone_in(database.parent):
        new = database.stat().st_size == 0
        client, experiment_id = _open(mlflow, uri, experiment, str(database.parent / "artifacts"))
        if new and experiment_id != DEFAULT_ID:
            client.delete_experiment(DEFAULT_ID)
        return client, experiment_id


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
