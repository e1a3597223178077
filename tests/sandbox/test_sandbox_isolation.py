"""What bubblewrap keeps an agent from."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from t1x.sandbox.isolation import CANDIDATE

pytestmark = pytest.mark.promise("isolation")


def output(rig, command, **fields):
    return rig.run_all(command, **fields)[0].output


def test_the_host_is_not_seen(rig, tmp_path):
    (tmp_path / "secret").write_text("s")
    seen = output(
        rig,
        f"cat /etc/shadow; ls {tmp_path} {Path(__file__).parent} /root /var; echo; ls /; ls /proc | grep -c '^[0-9]'; hostname",
    )
    missing, there = seen.split("\n\n")
    assert missing.count("No such file or directory") == 5
    *folders, processes, host = there.split()
    assert set(folders) <= {"app", "bin", "dev", "etc", "home", "lib", "lib64", "proc", "sbin", "tmp", "usr"}
    assert int(processes) <= 4
    assert host == "sandbox"
    assert os.uname().nodename != "sandbox"


def test_the_system_is_read_only(rig):
    paths = "/x /usr/x /usr/local/bin/x /etc/x /etc/passwd /dev/x /home/x"
    seen = output(rig, f"for p in {paths}; do echo >$p; done; touch /tmp/t ~/h /app/a /dev/shm/s && echo writable")
    assert seen.count("Read-only file system") == len(paths.split())
    assert seen.endswith("writable\n")


def test_there_is_no_network(rig):
    seen = output(rig, "tail -n +3 /proc/net/dev | cut -d: -f1; (echo >/dev/tcp/1.1.1.1/53) 2>&1 | grep -o unreachable | head -1")
    assert seen.split() == ["lo", "unreachable"]


def test_the_agent_has_no_rights(rig):
    seen = output(
        rig,
        "id -un; id -u; id -G; cat /proc/self/uid_map | tr -s ' '; grep -E 'CapEff|CapPrm|CapBnd|NoNewPrivs' /proc/self/status",
    )
    user, uid, groups, mapped, *status = seen.splitlines()
    assert (user, uid, groups) == ("agent", "1000", "1000")
    assert mapped.split() == ["1000", mapped.split()[1], "1"]
    rights = dict(line.split(":\t") for line in status)
    assert rights == {"CapPrm": "0" * 16, "CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1"}


def test_on_the_host_a_sandbox_is_an_unprivileged_user_of_its_own(rig):
    async def run(host):
        for _ in range(2):
            await (await host.create(rig.task)).exec("touch made", 20)
        return [made.stat().st_uid for made in rig.root.glob("*/*/work/made")]

    first, second = rig.on_host(run)
    assert 0 not in (first, second)
    assert (first != second) == (os.geteuid() == 0)


def test_sandboxes_do_not_see_each_other(rig):
    async def run(host):
        first, second = await host.create(rig.task), await host.create(rig.task)
        await first.exec("sleep 99 & echo 1 >/tmp/mine >/dev/shm/mine >~/mine >mine", 20)
        return await second.exec("ls /tmp /dev/shm ~ .; ps -e -o comm=", 20)

    result = rig.on_host(run)
    assert "mine" not in result.output
    assert "sleep" not in result.output


def test_a_fork_bomb_is_contained(rig):
    async def run(lease):
        await lease.exec(":(){ :|:& };:", 20)
        began = time.monotonic()
        loads = []
        while time.monotonic() - began < 1:
            loads.append(len([name for name in os.listdir("/proc") if name.isdigit()]))
            await asyncio.sleep(0.1)
        began = time.monotonic()
        await lease.destroy()
        return max(loads), time.monotonic() - began

    before = len([name for name in os.listdir("/proc") if name.isdigit()])
    most, took = rig.on_lease(run, processes=40)
    assert most - before < 40 + 100  # other programs come and go on this machine
    assert took < 10


def test_limits(rig):
    limits = {"memory": 300, "processes": 20, "file_size": 1}
    memory, size, processes, raised = rig.run_all(
        "python3 -c 'x = bytearray(400 << 20)'",
        "head -c 2000000 /dev/zero >big; stat -c %s big",
        "for i in $(seq 40); do sleep 5 & done 2>&1 | grep -c 'Resource temporarily unavailable'; pgrep -c sleep",
        "ulimit -u 1000; ulimit -v unlimited; ulimit -c 1",
        timeout=4,
        **limits,
    )
    assert "MemoryError" in memory.output
    assert size.output.splitlines()[-1] == str(1 << 20)
    assert processes.timed_out or processes.exit_code != 0
    assert raised.output.count("cannot modify limit") == 3 or raised.shell_restarted


@pytest.mark.parametrize(
    "attack",
    ["kill -9 -1", "kill -9 $$", "kill -STOP $$; kill -9 $PPID", "cat /proc/1/environ /proc/1/maps >/dev/null; chmod 000 ."],
)
def test_attacks_on_the_shell_end_with_its_sandbox(rig, attack):
    _, after = rig.run_all(attack, "echo alive", timeout=5)
    assert after.output.endswith("alive\n")


def test_a_tight_umask_doesnt_reach_into_the_sandbox(rig):
    before = os.umask(0o077)
    try:
        seen = output(rig, "id -un; umask; cat data/in.txt; ls -ld /etc /etc/passwd | cut -c1-10")
    finally:
        os.umask(before)
    assert seen.split() == ["agent", "0022", "one", "two", "drwxr-xr-x", "-rw-r--r--"]


def test_a_confined_program_writes_nothing_that_no_limit_counts(rig):
    async def run(lease):
        await lease.stop()
        script = "for f in /dev /tests /logs /opt/t1x /etc /; do echo >$f/made; done; touch {/tmp,/dev/shm,/app}/made && echo made"
        return await lease.run_fresh((CANDIDATE, "/bin/bash", "-c", script), read_only={}, writable={}, timeout=20)

    result = rig.on_lease(run)
    assert result.output.count("Read-only file system") == 6
    assert result.output.endswith("\nmade\n")


def test_nothing_mounts_what_no_limit_counts(rig):
    mounting = "unshare --user --map-root-user --mount mount -t tmpfs none /tmp && echo mounted"

    async def run(lease):
        result = await lease.exec(mounting, 20)
        await lease.stop()
        confined = await lease.run_fresh((CANDIDATE, "/bin/bash", "-c", mounting), read_only={}, writable={}, timeout=20)
        return result.output, confined.output

    assert [output.count("unshare failed") for output in rig.on_lease(run)] == [1, 1]
