"""What both local backends promise about stopping, fresh processes and files."""

import asyncio
import dataclasses
import os
import time

import pytest

from t1x.sandbox.protocol import SandboxError


async def fresh(lease, script, timeout=20.0, read_only=None, writable=None):
    return await lease.run_fresh(("/bin/bash", "-c", script), read_only=read_only or {}, writable=writable or {}, timeout=timeout)


def test_after_stop_no_process_of_the_agent_is_alive_while_its_files_are_there(rig):
    async def run(lease):
        await lease.exec(
            "(trap '' TERM HUP; setsid sh -c 'while :; do date >>beat; sleep 0.02; done') & sleep 0.2; echo x >made", 20
        )
        await lease.stop()
        beat = await lease.download("/app/beat")
        await asyncio.sleep(0.2)
        assert beat
        assert await lease.download("/app/beat") == beat
        assert await lease.download("/app/made") == b"x\n"

    rig.on_lease(run)


def test_fresh_process_sees_the_work_folder_and_nothing_else_of_the_agent(rig):
    async def run(lease):
        await lease.exec("export SECRET=1 BASH_ENV=/app/env; echo a >made; echo t >${TMPDIR:-/tmp}/t; echo h >~/h", 20)
        await lease.stop()
        return await fresh(lease, "cat made; env; ls ${TMPDIR:-/tmp}; ls ~ 2>&1; cat; pwd -P")

    lines = rig.on_lease(run).output.splitlines()
    assert lines[0] == "a"
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in lines
    assert "HOME=/nonexistent" in lines
    assert not any("SECRET" in line or "BASH_ENV" in line or line in ("t", "h") for line in lines)
    assert lines[-2] == "ls: cannot access '/nonexistent': No such file or directory"


def test_fresh_process_starts_in_a_work_folder_that_was_locked(rig):
    async def run(lease):
        await lease.exec("echo a >made; chmod 000 .", 20)
        await lease.stop()
        return await fresh(lease, "cat made")

    assert rig.on_lease(run).output == "a\n"


def test_fresh_process_has_the_given_folders(rig):
    async def run(lease):
        await lease.stop()
        tests, logs = lease.private_folder(), lease.private_folder()
        assert tests != logs
        (tests / "t.sh").write_text("echo checked >/logs/verifier/out; cat /app/data/in.txt; (exit 5)")
        result = await lease.run_fresh(
            ("/bin/bash", "/tests/t.sh"), read_only={tests: "/tests"}, writable={logs: "/logs/verifier"}, timeout=20
        )
        return result, (logs / "out").read_text()

    result, written = rig.on_lease(run)
    assert (result.output, result.exit_code, result.timed_out) == ("one\ntwo\n", 5, False)
    assert written == "checked\n"


def test_fresh_process_is_killed_with_all_it_started_at_its_deadline(rig):
    async def run(lease):
        await lease.stop()
        result = await fresh(
            lease, "(setsid sh -c 'while :; do date >>beat; sleep 0.02; done') & echo begun; sleep 600", timeout=1.0
        )
        beat = await lease.download("/app/beat")
        await asyncio.sleep(0.2)
        assert await lease.download("/app/beat") == beat
        return result

    result = rig.on_lease(run)
    assert (result.output, result.exit_code, result.timed_out) == ("begun\n", None, True)


def test_what_a_fresh_process_leaves_running_is_killed_when_it_ends(rig):
    async def run(lease):
        await lease.stop()
        result = await fresh(lease, "setsid sleep 600 & echo done")
        return result.output, result.timed_out

    assert rig.on_lease(run) == ("done\n", False)


def test_fresh_output_is_bounded(rig):
    async def run(lease):
        await lease.stop()
        cpu = time.process_time()
        result = await fresh(lease, "yes", timeout=1.0)
        return result, time.process_time() - cpu

    result, cpu = rig.on_lease(run)
    assert result.truncated
    assert len(result.output) < 10_200
    assert cpu < 0.7


def test_a_fresh_process_waits_for_stop(rig):
    async def run(lease):
        with pytest.raises(SandboxError, match="running"):
            await fresh(lease, "true")

    rig.on_lease(run)


def test_a_cancelled_fresh_process_is_killed(rig):
    async def run(lease):
        await lease.stop()
        running = asyncio.create_task(fresh(lease, "while :; do date >>beat; sleep 0.02; done"))
        await asyncio.sleep(0.3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        beat = await lease.download("/app/beat")
        await asyncio.sleep(0.2)
        assert await lease.download("/app/beat") == beat
        return await fresh(lease, "echo again")

    assert rig.on_lease(run).output == "again\n"


def test_upload_and_download(rig):
    async def run(lease):
        await lease.upload("/app/new/deep/f.sh", b"#!/bin/sh\necho hi\n", 0o755)
        await lease.upload("/app/data/in.txt", b"\0\xff")
        await lease.upload("/tmp/t", b"t")
        assert await lease.download("/app/new/deep/f.sh") == b"#!/bin/sh\necho hi\n"
        assert await lease.download("/app/data/in.txt") == b"\0\xff"
        assert await lease.download("/tmp/t") == b"t"
        return await lease.exec("new/deep/f.sh; echo x >>new/deep/f.sh && rm new/deep/f.sh && rmdir new/deep && echo mine", 20)

    assert rig.on_lease(run).output == "hi\nmine\n"


def test_no_link_of_the_agent_is_followed_by_the_host(rig, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("host")

    async def run(lease):
        await lease.exec(f"ln -s {outside} f; ln -s {tmp_path} d; mkfifo p; ln -s data ok", 20)
        for path in (
            "/app/f",
            "/app/d/outside",
            "/app/p",
            "/app/ok/in.txt",
            "/app/data",
            "/app/none",
            "/etc/passwd",
            "/app/../etc/passwd",
            "x",
        ):
            with pytest.raises(FileNotFoundError):
                await lease.download(path)
        for path in ("/app/d/new", "/app/ok/new", "/app/data", "/etc/new", "/app/../new", "new"):
            with pytest.raises(ValueError, match=r"new|data"):
                await lease.upload(path, b"x")
        await lease.upload("/app/f", b"replaced the link")

    rig.on_lease(run)
    assert outside.read_text() == "host"
    assert os.listdir(tmp_path) == ["outside"]


@pytest.mark.promise("isolation")
def test_a_work_folder_of_its_own(rig):
    async def run(lease):
        return await lease.exec("pwd; cat data/in.txt", 20)

    for workdir in ("/srv/job", "/tmp/job", "/home/agent", "/tmp"):
        result = rig.on_lease(run, dataclasses.replace(rig.task, workdir=workdir))
        assert result.output == f"{workdir}\none\ntwo\n"
    for workdir in ("/", "/usr/x", "/etc", "app", "/app/../usr"):
        with pytest.raises(ValueError, match=f"task hand-made: .*{workdir}"):
            rig.on_lease(run, dataclasses.replace(rig.task, workdir=workdir))
