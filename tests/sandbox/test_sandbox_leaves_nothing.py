"""Whatever happens, no folder, process or descriptor of a sandbox is left."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from child import child
from leftovers import descriptors, processes_of

from t1x.sandbox.local import BubblewrapSandbox
from t1x.sandbox.protocol import SandboxError
from t1x.sandbox.run_folder import sweep

pytestmark = pytest.mark.promise("local")

ODD_FILES = r"""
set -e
mkdir -p locked/in; echo x >locked/in/f; chmod 000 locked/in locked data
touch -- '-rf' ' ' $'new\nline' $'\xff' '*'
ln -s / root; ln -s .. up; ln -s loop loop; mkfifo pipe
python3 -c 'import os
for _ in range(1100):
    os.mkdir("d" * 60)
    os.chdir("d" * 60)'
mkdir many; (cd many; seq 300 | xargs touch); chmod 555 many
chmod 000 .
set +e
"""


def comes_true(condition, seconds=10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def trial_folders(root: Path) -> list[str]:
    (run_folder,) = root.iterdir()
    return [name for name in os.listdir(run_folder) if name[0].isdigit()]  # beside what they share


def test_64_at_once_leave_no_folder_no_process_and_no_descriptor(rig):
    before = descriptors()

    async def one(host, number):
        lease = await host.create(rig.task)
        result = await lease.exec(f"sleep 600 & echo {number}", 60)
        await lease.stop()
        fresh = await lease.run_fresh(("/bin/cat", "data/in.txt"), read_only={}, writable={}, timeout=60)
        await lease.destroy()
        return result.output, fresh.output

    async def run(host):
        outputs = await asyncio.gather(*(one(host, number) for number in range(64)))
        assert outputs == [(f"{number}\n", "one\ntwo\n") for number in range(64)]
        return trial_folders(rig.root)

    assert rig.on_host(run) == []
    assert processes_of(rig.root) == []
    assert descriptors() == before


def test_odd_files_are_removed_and_nothing_outside_is_touched(rig, tmp_path):
    (tmp_path / "kept").write_text("k")

    async def run(host):
        lease = await host.create(rig.task)
        await lease.exec(f"ln -s {tmp_path} outside; ln -s {tmp_path}/kept file", 20)
        result = await lease.exec(ODD_FILES, 60)
        assert (result.output, result.exit_code) == ("", 0)
        await lease.destroy()
        return trial_folders(rig.root)

    assert rig.on_host(run) == []
    assert (tmp_path / "kept").read_text() == "k"


@pytest.mark.promise("isolation")
def test_removing_a_large_folder_lets_others_work(rig):
    async def run(lease):
        await lease.exec("mkdir many; cd many; seq 2000 | xargs touch", 60)
        turns = 0
        ending = asyncio.create_task(lease.destroy())
        while not ending.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert rig.on_lease(run) > 5


@pytest.mark.parametrize("when", [0.0, 0.002, 0.01, 0.05])
def test_a_cancelled_create_leaves_nothing(rig, when):
    async def run(host):
        creating = [asyncio.create_task(host.create(rig.task)) for _ in range(12)]
        await asyncio.sleep(when)
        for task in creating:
            task.cancel()
        outcomes = await asyncio.gather(*creating, return_exceptions=True)
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)], trial_folders(rig.root)

    before = descriptors()
    made, folders = rig.on_host(run)
    assert len(folders) == len(made)
    assert processes_of(rig.root) == []
    assert descriptors() == before


def test_a_loop_that_is_torn_down_leaves_nothing(rig):
    """As after Ctrl-C: every task is cancelled whatever it waits for, also what destroys; then the host is closed."""

    async def trial(host):
        lease = await host.create(rig.task)
        try:
            await lease.exec("sleep 600 & sleep 600", 700)
        finally:
            await lease.destroy()

    async def run(host):
        trials = [asyncio.create_task(trial(host)) for _ in range(6)]
        await asyncio.sleep(0.3)
        for task in trials:
            task.cancel()
        for _ in range(2):
            await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        return len(trials)

    assert rig.on_host(run) == 6
    assert processes_of(rig.root) == []


def test_close_ends_what_is_alive_and_refuses_further_sandboxes(rig):
    async def run(host):
        lease = await host.create(rig.task)
        running = asyncio.create_task(lease.exec("sleep 600", 700))
        await asyncio.sleep(0.1)
        await host.close()
        with pytest.raises(SandboxError, match="destroyed"):
            await running
        with pytest.raises(SandboxError, match="closed"):
            await host.create(rig.task)

    rig.on_host(run)


OWNER = """
import asyncio, sys, warnings
from pathlib import Path
from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.tasks.task import Task

warnings.simplefilter("ignore")

async def main():
    host = {"bubblewrap": BubblewrapSandbox, "process": ProcessSandbox}[sys.argv[1]](root=Path(sys.argv[2])).build()
    lease = await host.create(Task("t", "", (), (), ()))
    await lease.exec("setsid sleep 600 & mkdir locked; touch locked/f; chmod 000 locked", 20)
    print("ready", flush=True)
    if sys.argv[3] == "return":
        return
    if sys.argv[3] == "raise":
        raise RuntimeError("boom")
    await lease.exec("sleep 600", 700)

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["return", "raise", signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_owner_ends_nothing_is_left(rig, end):
    how = end if isinstance(end, str) else "wait"
    command = [sys.executable, "-c", OWNER, rig.backend, str(rig.root), how]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as owner:
        assert owner.stdout.readline() == b"ready\n"
        if isinstance(end, signal.Signals):
            owner.send_signal(end)
        owner.wait(20)
    assert comes_true(lambda: os.listdir(rig.root) == [])
    assert comes_true(lambda: processes_of(rig.root) == [])


def test_a_start_sweeps_what_dead_owners_left_and_nothing_else(sandboxes):
    dead = sandboxes / "t1x-sandboxes-999999999-123-0"
    reused_id = sandboxes / f"t1x-sandboxes-{os.getpid()}-1-0"
    halfway = sandboxes / "t1x-sandboxes-999999999-124-0.removed"
    other = sandboxes / "t1x-sandboxes-mine"
    link = sandboxes / "t1x-sandboxes-999999999-125-0"
    for folder in (dead, reused_id, halfway, other):
        (folder / "in").mkdir(parents=True)
    link.symlink_to(other)

    async def run():
        host = BubblewrapSandbox(root=sandboxes).build()
        sweep(sandboxes)
        names = set(os.listdir(sandboxes))
        await host.close()
        return names

    names = asyncio.run(run())
    assert {other.name, link.name} < names
    assert len(names) == 3, "the living host's folder is the third"
    link.unlink()
    (other / "in").rmdir()
    other.rmdir()
