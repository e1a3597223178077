"""What runs or may be left on the machine: processes, mounts and descriptors."""

import asyncio
import gc
import os
import time
from collections import Counter
from pathlib import Path


def session_members(leader: int) -> list[int]:
    """Living processes of a session; sandboxes have sessions of their own, so their folder is searched for as well."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                members.append(int(entry.name))
    return members


def alive(command: str) -> list[int]:
    """Processes of this machine that were started by `command`."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if b" ".join(words).strip() == command.encode():
            found.append(int(process.parent.name))
    return found


async def started(command: str) -> int:
    """Waits for such a process."""
    while not (found := alive(command)):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return found[0]


def processes_naming(folder: Path) -> list[str]:
    """Command lines of living processes that name the folder."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line and "pytest" not in line:
                lines.append(line)
    return lines


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


def mounts_naming(root: Path) -> list[str]:
    """Mounts of any process here."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            found += [line for line in entry.read_text().splitlines() if str(root) in line]
        except OSError:
            continue
    return found


def wait_until_nothing_is_left(folders: list[Path], sandboxes: Path, leader: int, seconds: float = 60) -> None:
    """Fails where, after so many seconds, a process of the session lives, one that names a folder does, or a sandbox is there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and _left(folders, sandboxes, leader):
        time.sleep(0.1)
    assert _left(folders, sandboxes, leader) == []


def _left(folders: list[Path], sandboxes: Path, leader: int) -> list[object]:
    named = [line for folder in [*folders, sandboxes] for line in processes_naming(folder)]
    return [*session_members(leader), *named, *sandboxes.iterdir()]


def descriptors() -> Counter[str]:
    """How many open descriptors of each kind this process has, but for what only garbage holds."""
    gc.collect()
    found: Counter[str] = Counter()
    for name in os.listdir("/proc/self/fd"):
        try:
            found[os.readlink(f"/proc/self/fd/{name}").split(":")[0]] += 1
        except FileNotFoundError:  # the listing's own
            continue
    return found
