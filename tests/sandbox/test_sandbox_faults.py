"""What agents do to their sandboxes, by mistake or not: the command says what happened and the next one works."""

import asyncio
import shutil

import pytest

from t1x.sandbox.isolation import PATH


def installed(*commands: str) -> list[str]:
    return [command for command in commands if shutil.which(command.split()[0], path=PATH)]


@pytest.mark.parametrize(
    "reader", ["read -r x </dev/tty", "cat /dev/tty", "select x in a b; do echo $x; done", "read -rsp password: x"]
)
def test_what_reads_from_the_terminal_fails_at_once(rig, reader):
    (result,) = rig.run_all(reader)
    assert result.exit_code == 1
    assert not result.timed_out


ASK = installed(
    *("python3", "python3 -c 'input()'", "bash -i", "cat", "sort", "bc", "ed", "perl", "node", "sqlite3", "gdb", "less", "more"),
    *("top", "tmux", "sudo true", "passwd", "ssh localhost", "git commit", "apt-get install hello"),
)


def test_what_asks_its_user_ends_by_itself(rig):
    results = dict(zip((*ASK, "echo on"), rig.run_all(*ASK, "echo on", timeout=60), strict=True))
    assert [command for command, result in results.items() if result.exit_code is None] == []
    assert results["echo on"].output == "on\n"


@pytest.mark.parametrize("program", installed("vim in.txt", "watch true"))
def test_what_takes_over_the_screen_is_ended_by_its_deadline(rig, program):
    shown, after = rig.run_all(program, "echo on", timeout=1.0)
    assert shown.timed_out
    assert (after.output, after.shell_restarted) == ("on\n", False)


def test_control_characters_are_shown_and_not_sent(rig):
    colour, title, progress, c1, clear = rig.run_all(
        r"printf '\e[31mred\e[0m\n'",
        r"printf '\e]0;title\a'",
        r"printf '10%%\r20%%\r\n'",
        r"printf '\xc2\x9b2J'",
        "TERM=xterm clear; reset",
    )
    assert colour.output == "^[[31mred^[[0m\n"
    assert title.output == "^[]0;title^G"
    assert progress.output == "10%^M20%^M\n"
    assert c1.output == "M-^[2J"
    assert "\x1b" not in clear.output


def test_a_fresh_process_drives_no_terminal_either(rig):
    async def run(lease):
        await lease.stop()
        return await lease.run_fresh(("printf", r"\033[2J\377"), read_only={}, writable={}, timeout=20)

    assert rig.on_lease(run).output == "^[[2J\ufffd"


def test_a_file_too_large_stops_at_its_limit(rig):
    written, sparse, reserved, size, after = rig.run_all(
        "head -c 3M /dev/zero >written",
        "truncate -s 1G sparse",
        "fallocate -l 1G reserved",
        "stat -c %s written",
        "echo on",
        file_size=1,
    )
    assert [result.exit_code == 0 for result in (written, sparse, reserved)] == [False] * 3
    assert size.output == f"{1 << 20}\n"
    assert (after.output, after.shell_restarted) == ("on\n", False)


def test_a_large_file_is_there_where_the_limits_allow_it(rig):
    async def run(lease):
        result = await lease.exec(
            "truncate -s 1G sparse; fallocate -l 1G big && stat -c %s big sparse; echo end >>sparse; sleep 1", 60
        )
        await lease.stop()
        fresh = await lease.run_fresh(("tail", "-c", "4", "sparse"), read_only={}, writable={}, timeout=20)
        return result, fresh

    result, fresh = rig.on_lease(run, file_size=2048, disk=2048)
    assert result.output == f"{1 << 30}\n" * 2
    assert (result.stopped, fresh.output) == ("", "end\n")


def test_a_folder_that_is_deleted_under_the_shell(rig):
    gone, after, restarted, home = rig.run_all(
        "mkdir d; cd d; rmdir ../d; pwd", "ls .. | wc -l; echo x >f; cd ..", "cd data; rm -r ../data; exit", "ls"
    )
    assert gone.output.endswith("/d\n")
    assert "No such file or directory" in after.output
    assert restarted.shell_restarted
    assert home.output == "run.sh\n"


def test_a_work_folder_that_is_deleted_as_far_as_it_can_be(rig):
    async def run(lease):
        delete = 'here=$PWD; cd /; rm -rf "$here"; [ -e "$here" ] || ln -s /usr "$here"; echo'
        deleted = await lease.exec(delete, 20)
        ended = await lease.exec("exit", 20)
        after = await lease.exec("ls; echo made >made; cat made", 20)
        await lease.exec(delete, 20)
        await lease.stop()
        fresh = await lease.run_fresh(("ls", "-A"), read_only={}, writable={}, timeout=20)
        await lease.upload("/app/again", b"x")
        return deleted, ended, after, fresh

    deleted, ended, after, fresh = rig.on_lease(run)
    assert deleted.exit_code == 0
    assert ended.shell_restarted
    assert after.output == "made\n"
    assert (fresh.output, fresh.exit_code) == ("", 0)


def test_what_runs_in_the_background_ends_with_the_shell_it_was_started_in(rig):
    async def run(lease):
        await lease.exec("(setsid sh -c 'while :; do date +%N >beat; sleep 0.02; done') & sleep 0.3", 20)
        assert await lease.download("/app/beat") != await _later(lease)
        assert (await lease.exec("exit", 20)).shell_restarted
        return await lease.download("/app/beat"), await _later(lease)

    before, after = rig.on_lease(run)
    assert before == after


async def _later(lease) -> bytes:
    await asyncio.sleep(0.5)
    return await lease.download("/app/beat")


@pytest.mark.promise("own processes")
@pytest.mark.parametrize("attack", ["kill -9 -1", "setsid sh -c 'kill -9 -1' & wait", "kill -STOP -1"])
def test_killing_everything_kills_the_shell_at_most(rig, attack):
    async def run(host):
        victim, other = await host.create(rig.task), await host.create(rig.task)
        await other.exec("A=kept", 20)
        await victim.exec(attack, 2.0)
        return await victim.exec("ls", 20), await other.exec("echo $A", 20)

    after, other = rig.on_host(run)
    assert after.output == "data\nrun.sh\n"
    assert (other.output, other.shell_restarted) == ("kept\n", False)


@pytest.mark.promise("own processes")
def test_a_fork_bomb_is_ended_by_killing_everything_and_leaves_others_alone(rig):
    async def run(host):
        victim, other = await host.create(rig.task), await host.create(rig.task)
        await victim.exec(":() { : | : & }; : & sleep 1", 3.0)
        began = await other.exec("seq 10 | wc -l", 20)
        await victim.exec("kill -9 -1", 20)
        after = await victim.exec("exit", 20), await victim.exec("ls", 20)
        await victim.exec(":() { : | : & }; :", 1.0)
        await victim.stop()
        fresh = await victim.run_fresh(("/bin/bash", "-c", "seq 10 | wc -l"), read_only={}, writable={}, timeout=20)
        return began, after[1], fresh

    other, after, fresh = rig.on_host(run, processes=60)
    assert other.output == "10\n"
    for result, said in ((after, "data\nrun.sh\n"), (fresh, "10\n")):
        assert result.output.endswith(said)  # after complaints while the system reaps what was killed
