"""Commands that make a task's environment."""

import asyncio
import os
import time
from dataclasses import replace

import pytest

from t1x.sandbox.protocol import SandboxError
from t1x.tasks.disk import write_files
from t1x.tasks.folder import read_task
from t1x.tasks.task import Run, Task, TaskFile


def task_of(*steps: TaskFile | Run, **fields) -> Task:
    return Task("made", "", steps, (), (), **fields)


def run(command: str, folder: str = "/app", **variables: str) -> Run:
    return Run(command, folder, tuple(sorted(variables.items())), ".../Dockerfile:7: RUN")


def outputs(rig, task: Task, *commands: str, **fields) -> list[str]:
    async def work(lease):
        return [(await lease.exec(command, 20)).output for command in commands]

    return rig.on_lease(work, task, **fields)


def failure(rig, task: Task, **fields) -> str:
    with pytest.raises(SandboxError) as error:
        outputs(rig, task, "true", **fields)
    return str(error.value)


def test_steps_are_made_in_their_order(rig):
    task = task_of(
        TaskFile("in.txt", b"b\na\n"),
        run("sort in.txt > out.txt; chmod 600 out.txt"),
        TaskFile("in.txt", b"later\n", 0o755),
        run("mkdir d && cp in.txt d/copy"),
    )
    printed = outputs(rig, task, "cat out.txt in.txt d/copy; stat -c %a out.txt in.txt; touch out.txt d/new && echo mine")
    assert printed == ["a\nb\nlater\nlater\n600\n755\nmine\n"]


def test_a_command_runs_in_its_folder_with_its_variables(rig):
    task = task_of(
        run("echo $A-$B > here", "/app/new/deep", A="1", B="two words"),
        run("echo /app:$A > /app/abs", "/", A="$HOME"),
        run('[ -n "$BASH_VERSION" ] || echo plain sh > shell'),
    )
    printed = outputs(rig, task, "cat new/deep/here abs shell")
    here, absolute, shell = printed[0].splitlines()
    assert here == "1-two words"
    assert absolute.endswith(":$HOME")
    assert absolute == "/app:$HOME" or "isolation" not in rig.promises
    assert shell == "plain sh"


def test_the_agents_shell_has_the_tasks_variables_also_after_a_restart(rig):
    variables = {"A": "x 'y' \"z\" $A\\", "EMPTY": "", "DATA": "/app/data:/apple", "PATH": "/app/bin:/usr/bin"}
    task = task_of(TaskFile("bin/hello", b"#!/bin/sh\necho hello $DATA\n", 0o755), variables=tuple(sorted(variables.items())))
    show = 'printf "%s|" "$A" "${EMPTY-unset}"; hello; ls -d . ; echo $PATH'
    first, _, again = outputs(rig, task, show, "exit 3", show)
    assert first == again
    told, _, path = first.splitlines()
    assert told.startswith(f"{variables['A']}||hello ")
    assert told.endswith("/data:/apple")
    assert told.endswith("hello /app/data:/apple") or "isolation" not in rig.promises
    places = path.split(":")
    assert places[0].endswith("/bin")
    assert places[1] == "/usr/bin"
    assert set(places) >= {"/usr/local/bin", "/bin"}, "the sandbox's own PATH is lost"
    assert len(places) == len(set(places))


def test_verifiers_do_not_see_the_tasks_variables(rig):
    task = task_of(variables=(("PATH", "/app/bin"), ("PYTHONPATH", "/app/evil")))

    async def work(lease):
        await lease.stop()
        return await lease.run_fresh(("/usr/bin/env",), read_only={}, writable={}, timeout=20)

    printed = rig.on_lease(work, task).output
    assert "PATH=" in printed
    assert "/bin" in printed
    assert "PYTHONPATH" not in printed
    assert "evil" not in printed
    assert "app/bin" not in printed


def test_nothing_that_a_command_started_is_alive_afterwards(rig):
    task = task_of(
        run("(while :; do date +%N > beat; sleep 0.02; done) & setsid sleep 1000 & until [ -s beat ]; do sleep 0.01; done"),
        run("cp beat before; sleep 0.3; cmp beat before"),
    )
    assert outputs(rig, task, "sleep 0.2; cmp beat before && echo still") == ["still\n"]


def test_a_failing_command_is_named_with_its_place_status_and_output(rig):
    told = failure(rig, task_of(run("true"), run("echo first; echo why >&2; exit 7")))
    assert "task made: .../Dockerfile:7: RUN echo first" in told
    assert "exit status 7" in told
    assert told.endswith("it printed: first\nwhy")
    assert "network" not in told


@pytest.mark.parametrize(
    "command", ["apt-get install -y x", "set -e; pip install x", "curl http://127.0.0.1:9", "git clone http://x"]
)
@pytest.mark.promise("isolation")
def test_a_command_that_needs_a_network_is_told_what_to_do(rig, command):
    told = failure(rig, task_of(run(f"({command}) && false || exit 9")))
    assert "no network: install here what it would fetch, or COPY it" in told


def test_a_command_that_is_too_long_is_named_with_its_place(rig):
    told = failure(rig, task_of(run(f"echo {'x' * 200_000}")))
    assert told.startswith("task made: .../Dockerfile:7: RUN echo xxx")
    assert told.endswith("Argument list too long")


@pytest.mark.promise("isolation")
def test_commands_have_no_network(rig):
    assert outputs(rig, task_of(run("grep -c : /proc/net/dev > links")), "cat links") == ["1\n"]


def test_the_commands_share_one_deadline(rig):
    started = time.monotonic()
    told = failure(rig, task_of(run("sleep 1.2"), run("sleep 60 & wait"), build_timeout=2.0))
    assert "RUN sleep 60 & wait: the commands of the environment take longer than 2 s together; raise build_timeout_sec" in told
    assert time.monotonic() - started < 40


def test_output_is_bounded(rig):
    told = failure(rig, task_of(run("head -c 3000000 /dev/zero | tr '\\0' x; exit 1")))
    assert len(told) < 4000


def test_limits_hold(rig):
    told = failure(rig, task_of(run("head -c 3000000 /dev/zero > big")), file_size=1)
    assert "exit status" in told
    told = failure(rig, task_of(run("mkdir many; cd many; for n in $(seq 100); do : >$n; done; sleep 60")), files=50)
    assert "sleep 60: stopped by the sandbox's limit files; it printed:" in told


def test_a_folder_that_a_command_closed_is_open_again(rig):
    assert outputs(rig, task_of(run("echo x > f; chmod 000 ."), run("cat f > g")), "cat g") == ["x\n"]


def test_a_file_is_not_written_through_a_link(rig):
    told = failure(rig, task_of(run("ln -s /tmp d"), TaskFile("d/x", b"")))
    assert "the file d/x of task made can't be written: /app/d/x: d is a link or a file, not a folder" in told


def test_deterministic_sandboxes_are_the_same_each_time(deterministic):
    task = task_of(
        run("date > now; head -c 9 /dev/urandom | od > noise; echo $$ > pid; ls -l --time-style=full-iso > list; mktemp -u >> now")
    )
    show = "cat now noise pid list; ls -l --time-style=full-iso"
    first = outputs(deterministic, task, show)
    time.sleep(1.1)
    assert outputs(deterministic, task, show) == first
    assert "2020" in first[0]


def test_a_cancelled_creation_leaves_nothing(rig):
    async def work(host):
        making = asyncio.ensure_future(host.create(task_of(run("touch begun; sleep 1000"))))
        while not [name for _, _, names in os.walk(rig.root) for name in names if name == "begun"]:
            await asyncio.sleep(0.02)
            assert not making.done()
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
        return await host.create(replace(task_of(), name="next"))

    assert rig.on_host(work) is not None


@pytest.mark.promise("isolation")
def test_a_task_folder_comes_to_life(rig, tmp_path):
    dockerfile = """
        FROM python:3.11-slim
        WORKDIR /srv/shop
        ENV DATA=/srv/shop/data \\
            PATH=/srv/shop/bin:$PATH
        COPY --chmod=755 total bin/
        COPY *.csv data/
        RUN cat $DATA/*.csv > all.csv \\
            && total > total.txt
        RUN ["/bin/sh", "-c", "rm -r data"]
        WORKDIR empty
        WORKDIR ..
    """
    files = {
        "task.toml": "",
        "instruction.md": "Sell.",
        "environment/Dockerfile": dockerfile,
        "environment/total": "#!/bin/bash\nsum=0; while read -r n; do ((sum += n)); done < all.csv; echo $sum\n",
        "environment/a.csv": "1\n2\n",
        "environment/b.csv": "39\n",
        "tests/test.sh": "",
    }
    write_files([TaskFile(path, text.encode()) for path, text in files.items()], tmp_path)
    printed = outputs(rig, read_task(tmp_path), 'pwd; ls; cat total.txt; echo 8 >> all.csv; total; echo "$DATA"')
    assert printed == ["/srv/shop\nall.csv\nbin\nempty\ntotal.txt\n42\n50\n/srv/shop/data\n"]
