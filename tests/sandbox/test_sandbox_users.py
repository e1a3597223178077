"""Whose processes a trial's are."""

import os
import subprocess
import sys
from itertools import count

import pytest
from child import child

from t1x.sandbox import users as module
from t1x.sandbox.processes import Snapshot
from t1x.sandbox.protocol import SandboxError
from t1x.sandbox.users import Users

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts trials as other users")


@pytest.fixture
def lock(tmp_path, monkeypatch):
    """A file of the test's own: others on this machine may have the same ids, and nothing runs as them."""
    monkeypatch.setattr(module, "_NAME", str(tmp_path / "lock"))
    return tmp_path / "lock"


@pytest.fixture
def reserved(request):
    """An id that nobody else on this machine takes or runs as during the test, which itself may take it: it has its own `lock`."""
    users = Users()
    user = users.take()
    request.getfixturevalue("lock")
    yield user
    users.close()


def from_id(user):
    """What `Users` tries in turn, from this id on."""
    return count(user - module._FIRST)


@as_root
@pytest.mark.usefixtures("lock")
def test_no_id_is_given_to_two_living_trials_whoever_asks(monkeypatch):
    monkeypatch.setattr(module, "_COUNT", 6)
    first, second = Users(), Users()
    second._strangers = first._strangers  # others come and go
    free = sorted(set(range(module._FIRST, module._FIRST + 6)) - first._strangers)
    taken = [(first, second)[number % 2].take() for number in range(len(free))]
    assert sorted(taken) == free
    for full in (first, second):
        with pytest.raises(SandboxError, match="all 6 user ids"):
            full.take()
    second.give_back(taken[1])
    assert first.take() == taken[1]
    second.close()
    second.close()
    assert first.take() in taken[3::2]
    first.close()


TAKING = """
import sys
from t1x.sandbox import users
users._NAME = sys.argv[1]
ours = users.Users()
ours._next = iter([int(sys.argv[2]) - users._FIRST])
print(ours.take(), flush=True)
input()
"""


@as_root
def test_another_process_counts_until_it_ends(reserved, lock):
    with child([sys.executable, "-c", TAKING, lock, reserved], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert int(other.stdout.readline()) == reserved
        ours = Users()
        ours._next = from_id(reserved)
        assert ours.take() != reserved
        other.kill()
        other.wait()
        ours._next = from_id(reserved)
        assert ours.take() == reserved
        ours.close()


@as_root
def test_an_id_that_somebody_else_runs_as_is_left_alone(reserved):
    with child(["sleep", "600"], user=reserved, group=reserved, extra_groups=[]):
        users = Users()
        users._next = from_id(reserved)
        assert users.take() != reserved
        users.close()
    users = Users()
    users._next = from_id(reserved)
    assert users.take() == reserved
    users.close()


def test_destroying_one_sandbox_kills_nothing_of_the_others(rig):
    async def run(host):
        other = rig.build()
        leases = [await host.create(rig.task) for _ in range(3)] + [await other.create(rig.task) for _ in range(3)]
        for lease in leases:
            await lease.exec("setsid sleep 600 & cd data; A=kept", 20)
        for lease in leases[::2]:
            await lease.destroy()
        results = [await lease.exec("echo $A; jobs -p | wc -l", 20) for lease in leases[1::2]]
        await other.close()
        return results

    for result in rig.on_host(run):
        assert result.output == "kept\n1\n"
        assert not result.shell_restarted


def test_a_snapshot_finds_what_a_process_started_whichever_thread_did():
    script = """
import subprocess, threading
threading.Thread(target=lambda: subprocess.Popen(["sleep", "600"])).start()
child = subprocess.Popen(["sh", "-c", "sleep 600 & wait"])
print("ready", flush=True)
input()
subprocess.run(["pkill", "-P", str(child.pid)]); subprocess.run(["pkill", "-P", str(__import__("os").getpid())])
"""
    with child([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"A": "b"}) as process:
        process.stdout.readline()
        # itself, a thread's sleep, sh and its sleep; one that is being started has no memory yet
        while len(found := [each for each in Snapshot().below(process.pid) if each.memory > 0]) < 4:
            pass
        assert found[0].pid == process.pid
        assert process.pid in {each.pid for each in Snapshot().with_variable("A", "b")}
        assert process.pid not in {each.pid for each in Snapshot().with_variable("A", "c")}
        assert process.pid in {each.pid for each in Snapshot().of_user(os.geteuid())}
        process.communicate(b"\n")
    assert Snapshot().below(process.pid) == []
