"""Runs recorded in MLflow."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

from pydantic import Field

from t1x.config import Role
from t1x.tracking.protocol import ParentRun, Resumed, TrackedRun, Tracking


class MLflowTracking(Tracking):
    """An MLflow tracking store. The default needs no server: one SQLite file for all runs of a runs folder."""

    uri: Annotated[str | None, Role.PLACEMENT] = None
    """MLflow tracking URI (`sqlite:///path.db`, `http://host:5000`). None: `mlflow.db` in the runs folder. Artifacts of a SQLite
    store lie in `artifacts/` beside it; a server keeps its own."""
    experiment: Annotated[str, Role.PLACEMENT, Field(min_length=1, max_length=500)] = "t1x"
    """Name of the MLflow experiment that groups the runs."""
    parent: Annotated[str | None, Role.PLACEMENT] = None
    """Id of the run that this one is shown under, e.g. a grid's (MLflow's tag `mlflow.parentRunId`)."""
    tags: Annotated[dict[str, str], Role.PLACEMENT] = Field(default_factory=dict)
    """Searchable marks of the run, e.g. `{'axis.reward': 'dense'}`."""

    def build(self, folder: Path, name: str, resumed: Resumed | None = None) -> TrackedRun:
        from t1x.tracking.mlflow_run import MLflowRun

        parent = {"mlflow.parentRunId": self.parent} if self.parent else {}
        return MLflowRun(self._uri(folder), self.experiment, folder, name, self.tags | parent, resumed)

    def parent_run(self, folder: Path, name: str, tags: Mapping[str, str]) -> AbstractContextManager[ParentRun]:
        from t1x.tracking.mlflow_parent import parent_run

        return parent_run(self._uri(folder), self.experiment, folder, name, tags)

    def forget(self, folder: Path, run_id: str) -> bool:
        from t1x.tracking.mlflow_forget import forget_run

        return forget_run(self._uri(folder), run_id)

    def grouped(self, parent: str | None, tags: Mapping[str, str]) -> "MLflowTracking":
        return self.model_copy(update={"parent": parent, "tags": {**self.tags, **tags}})

    def ungrouped(self) -> "MLflowTracking":
        return self.model_copy(update={"parent": None, "tags": {}})

    def _uri(self, folder: Path) -> str:
        return self.uri or f"sqlite:///{folder.resolve().parent / 'mlflow.db'}"
