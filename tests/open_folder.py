"""A folder for sandboxes."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temp folder that other users may pass through, as sandboxes of a root process need (pytest's own may not be)."""
    with tempfile.TemporaryDirectory(prefix="t1x-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
