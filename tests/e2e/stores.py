"""Tracking stores that are there already: making the tables of one takes longer than a tiny run does."""

import functools
import tempfile
from pathlib import Path

import mlflow


def with_store(runs: Path) -> Path:
    """A runs folder with an empty store in it. (tests/tracking and tests/e2e/test_wheel.py have theirs made by t1x.)"""
    runs.mkdir(parents=True, exist_ok=True)
    (runs / "mlflow.db").write_bytes(_empty())
    return runs


@functools.cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "mlflow.db"
        mlflow.MlflowClient(f"sqlite:///{database}").search_experiments()
        return database.read_bytes()
