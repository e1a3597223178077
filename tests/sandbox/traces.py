"""What sandboxes may leave behind."""

import os
from collections import Counter
from pathlib import Path


def descriptors() -> Counter[str]:
    """How many of each kind this process has."""
    found: Counter[str] = Counter()
    for name in os.listdir("/proc/self/fd"):
        try:
            found[os.readlink(f"/proc/self/fd/{name}").split(":")[0]] += 1
        except FileNotFoundError:  # the listing's own
            continue
    return found


def mounts_naming(root: Path) -> list[str]:
    """Mounts of any process here."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            found += [line for line in entry.read_text().splitlines() if str(root) in line]
        except OSError:
            continue
    return found


def processes_of(root: Path) -> list[int]:
    """Processes of this machine that name the folder there or in their environment, or have it as their working folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            named = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes() + os.fsencode(os.readlink(entry / "cwd"))
        except OSError:
            continue
        if os.fsencode(root) in named:
            found.append(int(entry.name))
    return found
