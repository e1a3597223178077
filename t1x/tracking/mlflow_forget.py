"""A run that is deleted in its MLflow store."""

import os
from pathlib import Path

from t1x.tracking.mlflow_store import quiet_mlflow

IMPATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
"""A server that doesn't answer would be asked for minutes."""


def forget_run(uri: str, run_id: str) -> bool:
    """Marks a run as deleted, as the store's own `delete` does (`mlflow gc` then removes it for good); false where the store hasn't
    it. Raises `ValueError` where it can't be reached."""
    if uri.startswith("sqlite:///") and not Path(uri.removeprefix("sqlite:///")).is_file():
        return False
    for name, value in IMPATIENT.items():
        os.environ.setdefault(name, value)
    mlflow = quiet_mlflow()
    try:
        mlflow.MlflowClient(uri).delete_run(run_id)
    except mlflow.exceptions.MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return False
        raise ValueError(f"the tracking store {uri} couldn't be asked to delete the run: {error}") from error
    return True
