"""Limits on what a sandbox takes as a whole."""

import asyncio
import os
import resource

import pytest

from t1x.sandbox import watch
from t1x.sandbox.usage import Usage

pytestmark = pytest.mark.promise("watched")

HOG = "python3 -c 'import time; x = b\"x\" * (60 << 20); time.sleep(60)' &"
SLOWLY = "for i in 1 2 3 4 5 6 7 8 9; do head -c 10M /dev/zero >big$i; sleep 0.1; done; sleep 60"
UNLINKED = """
echo begun; head -c 60M /dev/zero >f; mkdir many; for i in $(seq 99); do ln f many/$i; done; sleep 1
exec 5>gone; rm gone; head -c 60M /dev/zero >&5; sleep 60"""
MEMFD = """
echo begun; exec python3 -c 'import os, time
memory = os.memfd_create("")
for _ in range(200):
    os.write(memory, b"x" * (1 << 20))
time.sleep(60)'"""


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(watch, "_PAUSE", 0.05)


def last_line(result) -> str:
    return result.output.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "limit", "said"),
    [
        (f"echo begun; {SLOWLY}", {"disk": 40}, "MiB, more than its disk limit of 40 MiB]"),
        (f"echo begun; cd ~; {SLOWLY}", {"disk": 40}, "MiB, more than its disk limit of 40 MiB]"),
        (UNLINKED, {"disk": 100}, "MiB, more than its disk limit of 100 MiB]"),
        ("echo begun; seq 400 | xargs touch; sleep 60", {"files": 300}, "files and folders, more than its limit of 300]"),
        (f"echo begun; {HOG * 4} wait", {"total_memory": 150}, "MiB of memory, more than its limit of 150 MiB]"),
        (MEMFD, {"total_memory": 150}, "MiB of memory, more than its limit of 150 MiB]"),
    ],
    ids=["disk", "home", "unlinked", "files", "memory", "memfd"],
)
def test_what_goes_over_a_limit_is_killed_and_the_command_says_why(rig, command, limit, said):
    over, after = rig.run_all(command, "echo on", timeout=40, **limit)
    assert over.output.startswith("begun\n[stopped: the sandbox")
    assert last_line(over).endswith(said)
    assert (over.exit_code, over.shell_restarted, over.timed_out, over.stopped) == (None, True, False, *limit)
    assert (after.output, after.exit_code, after.shell_restarted, after.stopped) == ("on\n", 0, False, "")


def test_files_stay_and_may_be_removed_and_only_growth_is_stopped_again(rig):
    over, files, left_alone, grown, removed, again = rig.run_all(
        SLOWLY,
        "ls big*",
        "sleep 1; echo x >small; sleep 1; echo on",
        f"cd ~; {SLOWLY}",
        "rm ~/big* big*; sleep 1",
        SLOWLY,
        timeout=40,
        disk=40,
    )
    assert over.stopped == "disk"
    assert files.output.startswith("big1\nbig2\nbig3\nbig4\n")
    assert left_alone.output == "on\n"
    assert grown.stopped == "disk"
    assert removed.exit_code == 0
    assert again.stopped == "disk"


def test_between_two_commands_the_next_one_says_it(rig):
    async def run(lease):
        started = await lease.exec(f"(sleep 0.2; {SLOWLY}) & echo started", 20)
        await asyncio.sleep(2)
        return started, await lease.exec("echo on; pgrep -f '^head -c 10M'; (exit 3)", 20), await lease.exec("echo more", 20)

    started, following, later = rig.on_lease(run, disk=20)
    assert started.output == "started\n"
    said, on = following.output.splitlines()
    assert said.startswith("[stopped: the sandbox's files take")
    assert (on, following.exit_code, following.shell_restarted, following.stopped) == ("on", 3, True, "disk")
    assert (later.output, later.shell_restarted, later.stopped) == ("more\n", False, "")


def test_a_fresh_process_is_stopped_for_what_it_takes_itself(rig):
    async def run(lease):
        await lease.exec("head -c 60M /dev/zero >big", 20)  # found over its limit only when it is stopped already
        await lease.stop()

        async def fresh(script):
            return await lease.run_fresh(("/bin/bash", "-c", script), read_only={}, writable={}, timeout=40)

        return await fresh("sleep 1; echo judged"), await fresh(f"echo begun; {SLOWLY}"), await fresh("echo again")

    judged, over, again = rig.on_lease(run, disk=40)
    assert (judged.output, judged.exit_code) == ("judged\n", 0)
    assert over.output.startswith("begun\n[stopped: the sandbox's files take")
    assert (over.exit_code, over.stopped) == (None, "disk")
    assert again.output == "again\n"


def test_one_over_its_limit_costs_the_others_nothing(rig):
    async def run(host):
        bad, good = await host.create(rig.task), await host.create(rig.task)
        return await asyncio.gather(bad.exec(SLOWLY, 40), good.exec("sleep 2; echo whole", 40))

    over, whole = rig.on_host(run, disk=40)
    assert over.stopped == "disk"
    assert (whole.output, whole.shell_restarted) == ("whole\n", False)


def test_limits_hold_after_a_time_without_descriptors(rig):
    async def work(lease):
        running = asyncio.create_task(lease.exec(f"sleep 1; {SLOWLY}", 40))
        await asyncio.sleep(0.2)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            await asyncio.sleep(0.5)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return await running

    assert rig.on_lease(work, disk=40).stopped == "disk"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root looks into folders that were locked")
def test_a_locked_folder_hides_nothing(rig):
    locked = "mkdir -p a/b; exec 5>a/b/big; chmod 000 a/b a .; for i in 1 2 3 4 5 6; do head -c 10M /dev/zero >&5; done; sleep 60"
    (over,) = rig.run_all(locked, timeout=40, disk=40)
    assert over.stopped == "disk"


def test_where_nothing_runs_no_folder_is_walked_again(rig, monkeypatch):
    walked = []
    add = Usage.add_tree
    monkeypatch.setattr(Usage, "add_tree", lambda usage, folder, go_on: (walked.append(folder), add(usage, folder, go_on)))

    async def run(lease):
        await lease.exec("sleep 600 & echo", 20)
        await asyncio.sleep(0.6)
        quiet = len(walked)
        await asyncio.sleep(0.6)
        assert len(walked) == quiet >= 1
        await lease.exec("echo; sleep 0.6", 20)
        return len(walked) - quiet

    assert rig.on_lease(run) >= 1
