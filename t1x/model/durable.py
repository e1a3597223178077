"""Files that are on disk for certain, whatever ends the process or the machine after."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Waits until a file's content, or a folder's list of names, is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_below(folder: Path) -> None:
    """All files and folders in a folder, and itself."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def replace_text(file: Path, text: str) -> None:
    """Gives a file this content, all or nothing: a reader finds the old one or the new one, never a part."""
    draft = file.with_name(f".{file.name}.draft")
    draft.write_text(text, encoding="utf-8")
    sync(draft)
    draft.replace(file)
    sync(file.parent)
