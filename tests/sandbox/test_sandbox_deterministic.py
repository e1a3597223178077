"""What agents see doesn't depend on when and beside what they run."""

import asyncio
import time
from pathlib import Path

import pytest

from t1x.sandbox.fixed_clock import NOW
from t1x.sandbox.isolation import program
from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.sandbox.protocol import SandboxHost
from t1x.tasks.task import Task, TaskFile

TASK = Task("t", "", (TaskFile("in.txt", b"one\n"), TaskFile("sub/b.txt", b"two\n"), TaskFile("a.txt", b"")), (), ())
COMMANDS = (
    "date; date +%s.%N; echo $EPOCHREALTIME $EPOCHSECONDS; printf '%(%F %T)T\\n' -1",
    "touch new; ls -la --full-time; ls -laR .; stat -c '%n %w %x %y %z' * new",
    "find . -newer in.txt; find . -mmin -60; find / -maxdepth 1",
    "find . | tar c --no-recursion -T - | md5sum; gzip -c in.txt | md5sum",
    "echo $RANDOM $SRANDOM $$ $PPID $BASHPID; bash -c 'echo $RANDOM $SRANDOM $$'; seq 9 | shuf",
    "head -c 9 /dev/urandom | od -x",
    "mktemp -u; mktemp; mktemp -d; (echo background $BASHPID) & wait; ls -l /tmp",
    'awk \'BEGIN { srand(); print rand(), srand() }\'; perl -e \'print time, " ", rand, " ", join(",", stat "in.txt") =~ /,15/\'',
    "hostname; id; pwd; echo $HOME; env | sort; ls -l / /etc; uptime; cat /proc/uptime /proc/loadavg",
    "time ls; times; echo $SECONDS; exit 3",
    "echo $RANDOM $$; sort -R in.txt; cp -p in.txt kept; touch -d 2019-03-04 old; ls -l kept old; [ new -nt old ] && echo newer",
)
PYTHON = """python3 -c "
import os, random, tempfile, time, uuid
print(time.time(), time.ctime(), os.stat('in.txt').st_mtime, os.urandom(4), random.random(), hash('x'), uuid.uuid4())
print(os.getpid(), {'a', 'b', 'c'})
print(tempfile.mkdtemp(), os.listdir('.'), time.process_time(), [e.stat().st_ctime for e in os.scandir('.')])
"
"""


def outputs(host: SandboxHost, pauses: list[float]) -> list[list[str]]:
    """What commands print in sandboxes that live at the same time, each started so many seconds after the one before."""

    async def trial(delay: float) -> list[str]:
        await asyncio.sleep(delay)
        lease = await host.create(TASK)
        results = [await lease.exec(command, 20) for command in (*COMMANDS, PYTHON)]
        await lease.stop()
        judged = await lease.run_fresh(("/bin/bash", "-c", "date; ls -l"), read_only={}, writable={}, timeout=20)
        await lease.destroy()
        return [result.output for result in (*results, judged)]

    async def main() -> list[list[str]]:
        try:
            return await asyncio.gather(*map(trial, pauses))
        finally:
            await host.close()

    return asyncio.run(main())


def test_the_same_commands_print_the_same_bytes_whenever_they_run(sandboxes: Path) -> None:
    first, beside, later = outputs(BubblewrapSandbox(root=sandboxes).build(deterministic=True), [0, 0, 1.1])
    (again,) = outputs(BubblewrapSandbox(root=sandboxes).build(deterministic=True), [0])
    for command, *printed in zip((*COMMANDS, PYTHON, "the verifier"), first, beside, later, again, strict=True):
        assert len(set(printed)) == 1, command
    assert first[0].splitlines()[0] == "Wed Jan  1 00:00:00 UTC 2020"
    assert first[0].splitlines()[1] == f"{NOW}.000000000"
    assert "2020-01-01 00:00:00.000000000" in first[1]
    assert "Mar  4  2019 old\nnewer" in first[10]
    assert first[-1].startswith("Wed Jan  1 00:00:00 UTC 2020")
    assert all("not found" not in text and "cannot" not in text for text in first)


def test_waiting_takes_as_long_as_it_says(sandboxes: Path) -> None:
    async def main() -> None:
        host = BubblewrapSandbox(root=sandboxes).build(deterministic=True)
        try:
            lease = await host.create(TASK)
            for command, least, code in (
                ("sleep 0.4", 0.4, 0),
                ("timeout 0.4 sleep 9", 0.4, 124),
                ("python3 -c 'import time; time.sleep(0.4)'", 0.4, 0),
                ("read -t 0.4 < <(sleep 9)", 0.4, 142),
            ):
                started = time.monotonic()
                result = await lease.exec(command, 8)
                assert result.exit_code == code, result
                assert least <= time.monotonic() - started < 8
            started = time.monotonic()
            assert (await lease.exec("sleep 30", 0.5)).timed_out
            assert time.monotonic() - started < 20
        finally:
            await host.close()

    asyncio.run(main())


def test_without_a_compiler_it_is_said_how_to_get_one(sandboxes: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("bwrap", "bash", "chroot", "setarch"):
        (tmp_path / name).symlink_to(program(name))
    monkeypatch.setenv("PATH", str(tmp_path))
    program.cache_clear()
    try:
        sandbox = BubblewrapSandbox(root=sandboxes)
        assert sandbox.missing() == []
        assert [line for line in sandbox.missing_deterministic() if "program cc (apt-get install gcc" in line]
        with pytest.raises(ValueError, match="cc isn't installed"):
            sandbox.build(deterministic=True)
    finally:
        program.cache_clear()


def test_a_sandbox_that_isolates_nothing_cannot_be_deterministic(sandboxes: Path) -> None:
    with pytest.raises(ValueError, match=r"ProcessSandbox can't be deterministic: .*use @BubblewrapSandbox"):
        ProcessSandbox(root=sandboxes).build(deterministic=True)
