"""What both local backends promise about commands."""

import asyncio
import resource
import time

import pytest

from t1x.sandbox.protocol import SandboxError


def test_output_and_exit_status(rig):
    good, bad, both = rig.run_all("cat data/in.txt", "false", "echo out; echo err >&2; (exit 7)")
    assert (good.output, good.exit_code) == ("one\ntwo\n", 0)
    assert (bad.output, bad.exit_code) == ("", 1)
    assert (both.output, both.exit_code) == ("out\nerr\n", 7)
    assert (good.timed_out, good.shell_restarted, good.truncated) == (False, False, False)


def test_folder_variables_functions_and_status_last(rig):
    *_, result = rig.run_all(
        "cd data; A=1; export B=2; f() { echo f$1; }", "false", "echo $?; basename $PWD; echo $A; sh -c 'echo $B'; f 3"
    )
    assert result.output.splitlines() == ["1", "data", "1", "2", "f3"]


def test_files_of_the_task_are_there(rig):
    listing, run = rig.run_all("stat -c '%a %n' data data/in.txt run.sh; pwd -P | xargs basename", "./run.sh")
    assert listing.output.splitlines()[:3] == ["755 data", "644 data/in.txt", "755 run.sh"]
    assert run.output == "ran\n"


def test_input_is_empty(rig):
    cat, read = rig.run_all("cat", "read line; echo $?")
    assert (cat.output, cat.exit_code) == ("", 0)
    assert read.output == "1\n"


@pytest.mark.parametrize("command", ["echo 'open", "if true", "echo )", "echo $(", "for"])
def test_a_syntax_error_leaves_the_shell_as_it_was(rig, command):
    _, broken, after = rig.run_all("A=kept", command, "echo $A")
    assert broken.exit_code not in (0, None)
    assert "syntax error" in broken.output or "unexpected EOF" in broken.output
    assert not broken.shell_restarted
    assert after.output == "kept\n"


@pytest.mark.parametrize("command", ["exit 3", "set -e; false", "exec true", "exec sh -c 'exit 1'"])
def test_a_command_that_ends_the_shell_gets_a_new_one_in_the_work_folder(rig, command):
    ended, after = rig.run_all(f"cd data; echo said; A=1; {command}", "echo [$A]; ls")
    assert ended.output == "said\n"
    assert ended.exit_code is None
    assert ended.shell_restarted
    assert not ended.timed_out
    assert after.output == "[]\ndata\nrun.sh\n"


def test_a_shell_is_restarted_in_a_work_folder_that_was_locked(rig):
    ended, after = rig.run_all("echo a >a; chmod 000 .; exit", "cat a")
    assert ended.shell_restarted
    assert after.output == "a\n"


@pytest.mark.promise("isolation")
@pytest.mark.parametrize("command", ["suspend -f", "kill -STOP 0", "kill -STOP -1; kill -STOP $$ $PPID", "kill -9 0"])
def test_no_signal_from_inside_reaches_bubblewrap(rig, command):
    started = time.monotonic()
    _, after = rig.run_all(command, "echo here", timeout=2.0)
    assert after.output == "here\n"
    assert time.monotonic() - started < 20  # destroying it isn't held up


def test_files_outlive_the_shell(rig):
    result = rig.run_all("echo a >a; echo h >~/h; echo t >${TMPDIR:-/tmp}/t; exit", "cat a ~/h ${TMPDIR:-/tmp}/t")[-1]
    assert result.output == "a\nh\nt\n"


def test_a_deadline_kills_the_command_and_keeps_the_shell(rig):
    results = rig.run_all(
        "A=kept; sleep 600 & sleep 0.05", "echo begun; sleep 500; echo after", "echo $A; jobs -r | grep -c 'sleep 600'", timeout=0.5
    )
    slow, after = results[1:]
    assert slow.timed_out
    assert slow.exit_code is None
    assert not slow.shell_restarted
    assert slow.output.startswith("begun\n")
    assert after.output == "kept\n1\n", "an earlier background job survives another command's deadline"


def test_a_deadline_restarts_a_shell_that_is_busy_itself(rig):
    slow, after = rig.run_all("cd data; while :; do :; done", "ls", timeout=0.5)
    assert slow.timed_out
    assert slow.shell_restarted
    assert slow.exit_code is None
    assert after.output == "data\nrun.sh\n"


def test_a_background_process_does_not_hold_up_a_command(rig):
    async def run(lease):
        started = await lease.exec("(sleep 1; echo later; sleep 600) & echo now", 20)
        return started, await lease.exec("sleep 1.5; echo next", 20)

    started, following = rig.on_lease(run)
    assert (started.output, started.timed_out) == ("now\n", False)
    assert following.output == "later\nnext\n"


def test_long_output_keeps_head_and_tail(rig):
    (result,) = rig.run_all("seq 1 100000", output_limit=1000)
    whole = "".join(f"{n}\n" for n in range(1, 100001))
    assert result.truncated
    assert result.output == f"{whole[:500]}\n[... {len(whole) - 1000} bytes cut ...]\n{whole[-500:]}"


def test_endless_output_is_bounded_in_memory_and_time(rig):
    before, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    endless, after = rig.run_all("yes", "echo alive", timeout=1.0)
    assert endless.timed_out
    assert len(endless.output) < 10_200
    assert after.output.endswith("alive\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10
    assert time.process_time() - cpu < 0.7, "reading took the event loop over"


def test_other_sandboxes_go_on_while_one_prints_without_end(rig):
    async def run(host):
        noisy, quiet = await host.create(rig.task), await host.create(rig.task)
        flood = asyncio.create_task(noisy.exec("yes", 60))
        await asyncio.sleep(0.3)
        for _ in range(20):
            await quiet.exec("echo", 20)
        went_on = not flood.done()
        flood.cancel()
        await asyncio.wait([flood])
        return went_on

    assert rig.on_host(run)


def test_bytes_that_are_not_text_are_replaced(rig):
    (result,) = rig.run_all(r"printf '\xff\xfeok\0\xe2\x82'")
    assert result.output == "\ufffd\ufffdok^@\ufffd"


def test_a_nul_in_a_command_is_refused_and_runs_nothing(rig):
    refused, after = rig.run_all("touch made\0; ls", "ls")
    assert refused.exit_code == 2
    assert "NUL" in refused.output
    assert after.output == "data\nrun.sh\n"


def test_unusual_commands(rig):
    empty, comment, quotes, lines, heredoc, big, surrogate = rig.run_all(
        "",
        "# nothing",
        """echo "it's" '"' \\\\""",
        "echo a\necho b\n\n",
        "cat <<E\nx $((1+1))\nE",
        f"x={'y' * 300_000}; echo ${{#x}}",
        "echo \udcff",
    )
    assert (empty.output, empty.exit_code) == ("", 0)
    assert (comment.output, comment.exit_code) == ("", 0)
    assert quotes.output == "it's \" \\\n"
    assert lines.output == "a\nb\n"
    assert heredoc.output == "x 2\n"
    assert big.output == "300000\n"
    assert surrogate.output == "?\n"


def test_what_a_command_does_to_its_descriptors_does_not_confuse_the_shell(rig):
    results = rig.run_all(
        "exec 3>log; echo x >&3; exec 3>&-; cat log",
        "echo $(ls /proc/self/fd | grep -c 250)",
        "exec >quiet; echo hidden",
        "cat quiet >/dev/stderr",
    )
    assert [r.output for r in results] == ["x\n", "0\n", "", "hidden\n"]
    assert all(r.exit_code == 0 for r in results)


def test_a_cancelled_command_is_killed_and_the_next_one_gets_a_new_shell(rig):
    async def run(lease):
        running = asyncio.create_task(lease.exec("while :; do date +%N >beat; sleep 0.02; done", 700))
        await asyncio.sleep(0.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        after = await lease.exec("ls", 20)
        beat = await lease.download("/app/beat")
        await asyncio.sleep(0.3)
        assert await lease.download("/app/beat") == beat
        return after

    result = rig.on_lease(run)
    assert result.output == "beat\ndata\nrun.sh\n"
    assert result.shell_restarted


def test_commands_are_refused_after_stop_and_after_destroy(rig):
    async def run(lease):
        await lease.stop()
        with pytest.raises(SandboxError, match="stopped"):
            await lease.exec("true", 1)
        await lease.destroy()
        await lease.destroy()
        for call in (lease.exec("true", 1), lease.upload("/app/x", b""), lease.download("/app/x"), lease.stop()):
            with pytest.raises(SandboxError, match="destroyed"):
                await call

    rig.on_lease(run)


def test_destroy_ends_a_command_that_runs(rig):
    async def run(lease):
        running = asyncio.create_task(lease.exec("sleep 600", 700))
        await asyncio.sleep(0.2)
        await lease.destroy()
        with pytest.raises(SandboxError, match="destroyed"):
            await running

    rig.on_lease(run)
