"""Processes that tests start."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def child(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen]:
    """A process that is dead after the block, however that ends: a failed assertion neither waits for it nor leaves it behind."""
    with subprocess.Popen([str(word) for word in command], **options) as process:
        try:
            yield process
        finally:
            process.kill()
