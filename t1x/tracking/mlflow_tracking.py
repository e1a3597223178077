"""Runs recorded in MLflow."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from t1x.config import Role
from t1x.tracking.protocol import TrackedRun, Tracking


class MLflowTracking(Tracking):
    """An MLflow tracking store. The default needs no server: one SQLite file for all runs of a runs folder."""

    uri: Annotated[str | None, Role.PLACEMENT] = None
    """MLflow tracking URI (`sqlite:///path.db`, `http://host:5000`). None: `mlflow.db` in the runs folder. Artifacts of a SQLite
    store lie in `artifacts/` beside it; a server keeps its own."""
    experiment: Annotated[str, Role.PLACEMENT, Field(min_length=1, max_length=500)] = "t1x"
    """Name of the MLflow experiment that groups the runs."""

    def build(self, folder: Path, name: str) -> TrackedRun:
        from t1x.tracking.mlflow_run import MLflowRun

        uri = self.uri or f"sqlite:///{folder.resolve().parent / 'mlflow.db'}"
        return MLflowRun(uri, self.experiment, folder, name)
