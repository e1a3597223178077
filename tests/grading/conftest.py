import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def root(sandboxes: Path) -> Iterator[Path]:
    """A folder for sandboxes, also for those of which their kind warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ProcessSandbox isolates nothing")
        yield sandboxes
