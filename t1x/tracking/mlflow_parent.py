"""A run that others are grouped under (`MLflowTracking.parent_run`).

Invariant: one folder has one parent run in a store, however often it is opened; its id is in the folder's `parent.json`.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t1x.tracking.log import check_name
from t1x.tracking.mlflow_store import keep_artifact, open_store, quiet_mlflow, status_of
from t1x.tracking.signals import like_ctrl_c

FILE = "parent.json"


@dataclass
class MLflowParent:
    """A `ParentRun` that is open."""

    id: str
    _client: Any
    failed: bool = False

    def artifact(self, path: Path, folder: str = "") -> None:
        keep_artifact(self._client, self.id, path, folder)


@contextmanager
def parent_run(uri: str, experiment: str, folder: Path, name: str, tags: Mapping[str, str]) -> Iterator[MLflowParent]:
    """Opens the run; closes it with its status. Raises `ValueError` when the store can't be opened."""
    for tag in tags:
        check_name("tag", tag)
    mlflow = quiet_mlflow()
    client, experiment_id = open_store(mlflow, uri, experiment)
    folder.mkdir(parents=True, exist_ok=True)
    run_id = _known(mlflow, client, folder / FILE, uri)
    if run_id is None:
        run_id = client.create_run(experiment_id, run_name=name, tags={"t1x.folder": str(folder)}).info.run_id
        (folder / FILE).write_text(json.dumps({"store": uri, "id": run_id}) + "\n", encoding="utf-8")
    client.update_run(run_id, status="RUNNING")
    client.log_batch(run_id, tags=[mlflow.entities.RunTag(tag, text) for tag, text in tags.items()])
    parent = MLflowParent(run_id, client)
    status = "FINISHED"
    try:
        with like_ctrl_c():
            yield parent
        if parent.failed:
            status = "FAILED"
    except BaseException as error:
        status = status_of(error)
        raise
    finally:
        client.set_terminated(run_id, status=status)


def _known(mlflow: Any, client: Any, file: Path, uri: str) -> str | None:
    """The run that the file names, where this store has it."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["store"] != uri:
            return None
        return str(client.get_run(content["id"]).info.run_id)
    except (FileNotFoundError, ValueError, KeyError, TypeError, mlflow.exceptions.MlflowException):
        return None
