"""The machine's disk is full: what needs room fails one by one and says so, and all is well when there is room again."""

import dataclasses
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from faulty_rollout import TASK, Attempt, play, reference, shown, untouched

from t1x.tasks.task import TaskFile
from t1x.trajectory.ending import EndedBy


@dataclass(frozen=True)
class SmallDisk:
    """A file system of its own with little room."""

    mount: Path

    @property
    def sandboxes(self) -> Path:
        return self.mount / "sandboxes"

    def fill(self, what: str, room: int) -> None:
        """Leaves room for so many further files, or blocks of 4 KiB."""
        used = self.mount / "used"
        if what == "files":
            used.mkdir()
            left = os.statvfs(self.mount).f_ffree - room
            for number in range(left):
                (used / f"{number}").touch()
        else:
            left = os.statvfs(self.mount).f_bfree - room
            used.write_bytes(bytes(left * 4096))

    def free(self) -> None:
        subprocess.run(["rm", "-r", self.mount / "used"], check=True)


@pytest.fixture
def small_disk(sandboxes: Path) -> Iterator[SmallDisk]:
    options = "size=24m,nr_inodes=2000,mode=755"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "t1x-test", sandboxes], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting takes root")
    try:
        (sandboxes / "sandboxes").mkdir(mode=0o755)
        yield SmallDisk(sandboxes)
    finally:
        subprocess.run(["umount", sandboxes], check=True)


PLACES = [pytest.param(*place, marks=pytest.mark.ci) for place in (("files", 0), ("files", 2), ("files", 30), ("blocks", 0))]


@pytest.mark.parametrize(("what", "room"), [("files", 6), ("blocks", 20), *PLACES])
def test_the_machines_disk_is_full(small_disk: SmallDisk, what: str, room: int) -> None:
    """Sandboxes fail one by one, wherever it is that the room ends, and are made again when there is some."""

    async def fill() -> None:
        small_disk.fill(what, room)

    wide = dataclasses.replace(TASK, environment=tuple(TaskFile(f"f{i}", b"x" * 5000) for i in range(50)))
    outcome = play(small_disk.sandboxes, [Attempt(wide, ["ls"])] * 3, healthy=0, meanwhile=fill, concurrency=1)
    assert [trial.ended_by for trial in outcome.faulty] == [EndedBy.SANDBOX_ERROR] * 3
    for trial in outcome.faulty:
        assert re.search("No space left on device", trial.error), trial.error
    small_disk.free()
    untouched(play(small_disk.sandboxes, [], healthy=1))


def test_an_agent_fills_the_machines_disk(small_disk: SmallDisk) -> None:
    """Those beside it may fail for it, and say so; what comes later doesn't."""
    filling = Attempt(TASK, ["cat /dev/zero >fills-it", "echo later >more", *reference(TASK)])
    outcome = play(small_disk.sandboxes, [filling], healthy=3, concurrency=2)
    for trial in (*outcome.faulty, *outcome.healthy):
        assert trial.ended_by in (EndedBy.DONE, EndedBy.SANDBOX_ERROR, EndedBy.VERIFIER_ERROR)
        assert bool(trial.error) == trial.ended_by.invalid
    assert "No space left on device" in shown(outcome.faulty[0])[0]
    untouched(play(small_disk.sandboxes, [], healthy=1))
