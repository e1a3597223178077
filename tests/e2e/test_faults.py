"""What agents, tasks and machines do wrong: the rollout goes on, each trial says why it ended, others aren't touched, nothing
stays."""

import asyncio
import dataclasses
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import starting
from faulty_rollout import HARNESS, POOL, Attempt, Outcome, play, reference
from leftovers import alive, started, wait_until_nothing_is_left
from open_folder import open_folder
from stores import with_store

import t1x
from t1x.campaign.record import Status
from t1x.campaign.validity import causes
from t1x.harness.records import EndedBy
from t1x.rollout.records import Trial
from t1x.sandbox.child import children
from t1x.sandbox.removal import remove_tree
from t1x.tasks.export import write_task
from t1x.tasks.task import Run, Task, TaskFile
from t1x.tracking.log import read_log

TASK = POOL[0]
SOLVED = TASK.assertions / 20
SLEEP = f"sleep {os.getpid()}11"
"""A command that nothing else on this machine runs."""


@pytest.fixture
def root() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def untouched(outcome: Outcome) -> None:
    """The trials without a fault came to what they always come to."""
    assert outcome.healthy
    for trial in outcome.healthy:
        assert (trial.ended_by, trial.error) == (EndedBy.DONE, "")
        assert trial.report.resolved
        assert trial.reward == trial.task.assertions / 20


def shown(trial: Trial) -> list[str]:
    """What the agent was shown of each command."""
    return [text for role, text in trial.transcript if role == "tool"]


AGENT_FAULTS = {
    "fork bomb": (["bomb() { bomb | bomb & }; bomb; sleep 1; echo $?"], {"processes": 40}, ""),
    "endless output": (["yes"], {}, "timeout"),
    "endless output without a newline": (["tr '\\0' x </dev/zero"], {}, "timeout"),
    "escapes and invalid UTF-8": (["printf '\\033[2J\\033]0;title\\007\\033[?1049h\\377\\376 end'"], {}, "end"),
    "waits for input": (["read line; cat; python3 -c 'input()'"], {}, "EOFError"),
    "a background process that outlives its turn": ([f"{SLEEP} & setsid nohup {SLEEP} & disown -a"], {}, ""),
    "a file of 1 GB": (["head -c 1000000000 /dev/zero >big; echo $?; ls -s big; rm big"], {"file_size": 4}, "153"),
    "a full disk": (["head -c 40M /dev/zero >big; sleep 20"], {"disk": 8}, "disk limit"),
    "a deleted cwd": (["mkdir gone; cd gone; rmdir ../gone", "ls; pwd; touch x", "cd /app"], {}, "No such file"),
    "exit typed by the agent": (["exit 3", "exec true", "kill -9 $$"], {}, "shell restarted"),
    "kills whatever it can": (["kill -9 -1; kill -9 1"], {}, ""),
}


@pytest.mark.parametrize("fault", AGENT_FAULTS)
def test_what_an_agent_does_wrong_it_can_go_on_from(root: Path, fault: str) -> None:
    commands, fields, seen = AGENT_FAULTS[fault]
    quick = HARNESS.model_copy(update={"command_timeout": 2.0}) if seen == "timeout" else HARNESS
    outcome = play(root, [Attempt(TASK, [*commands, *reference(TASK)])], harness=quick, **fields)
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.error) == (EndedBy.DONE, ""), shown(trial)
    assert trial.report.resolved, shown(trial)
    assert trial.reward == SOLVED
    told = "\n".join(shown(trial)[: len(commands)])
    assert seen in told
    assert not set(told) & {chr(code) for code in (*range(9), *range(11, 32), 127)}, "a control character reached the transcript"
    assert not alive(SLEEP)
    assert outcome.metrics["rollout/invalid"] == 0


def test_a_verifier_that_hangs(root: Path) -> None:
    hanging = dataclasses.replace(TASK, tests=(TaskFile("test.sh", f"{SLEEP} & exec {SLEEP}\n".encode()),), verifier_timeout=1.0)
    outcome = play(root, [Attempt(hanging, reference(TASK))])
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward, trial.report.cause) == (EndedBy.VERIFIER_ERROR, None, "timeout")
    assert "the verifier ran longer than 1 s" in trial.error
    assert not alive(SLEEP)
    assert (outcome.metrics["rollout/invalid/verifier_error"], outcome.metrics["rollout/admitted"]) == (1, 2)


def test_an_agent_that_hangs(root: Path) -> None:
    """In a command that would outlast its deadline; what it had done counts."""
    task = dataclasses.replace(TASK, agent_timeout=3.0)
    outcome = play(root, [Attempt(task, [*reference(TASK), f"trap '' TERM INT; {SLEEP}"])])
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward) == (EndedBy.AGENT_DEADLINE, SOLVED)
    assert not alive(SLEEP)


def sandbox_of(pid: int) -> int:
    """The bubblewrap process on this side of the sandbox in which a process runs."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != "bwrap":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def test_a_sandbox_that_is_killed_in_the_middle_of_a_turn_begins_anew(root: Path) -> None:
    """The files are there still: the agent is told and goes on."""

    async def kill() -> None:
        os.kill(sandbox_of(await started(SLEEP)), signal.SIGKILL)

    outcome = play(root, [Attempt(TASK, [SLEEP, *reference(TASK)])], meanwhile=kill)
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward) == (EndedBy.DONE, SOLVED)
    assert "shell restarted" in shown(trial)[0]


def test_a_sandbox_that_dies_for_good_in_the_middle_of_a_turn(root: Path) -> None:
    def folder() -> Path:
        (file,) = root.glob("t1x-sandboxes-*/*/work/here")
        return file.parents[1]

    async def kill() -> None:
        pid = await started(SLEEP)
        taken = folder()
        moved = taken.rename(taken.with_name("taken"))
        os.kill(sandbox_of(pid), signal.SIGKILL)
        while alive(SLEEP):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        remove_tree(moved)

    outcome = play(root, [Attempt(TASK, ["touch here", SLEEP, *reference(TASK)])], meanwhile=kill)
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward, trial.trajectories) == (EndedBy.SANDBOX_ERROR, None, ())
    assert trial.error
    assert len(trial.turns) == 2
    assert outcome.metrics["rollout/invalid/sandbox_error"] == 1


def broken(task: Task, command: str = "echo no wood; exit 7") -> Task:
    return dataclasses.replace(task, environment=(*task.environment, Run(command, "/app", place="environment/Dockerfile:3: RUN")))


def test_a_creation_that_fails_sometimes(root: Path) -> None:
    outcome = play(root, [Attempt(broken(TASK), reference(TASK))] * 3, create_concurrency=2, per_node=3)
    untouched(outcome)
    for trial in outcome.faulty:
        assert (trial.ended_by, trial.turns, trial.report, trial.reward) == (EndedBy.SANDBOX_ERROR, (), None, None)
        assert "environment/Dockerfile:3: RUN" in trial.error
        assert "no wood" in trial.error
    assert (outcome.metrics["sandbox/failed"], outcome.metrics["sandbox/created"]) == (3, 2)


def test_a_creation_that_fails_every_time(root: Path) -> None:
    outcome = play(root, [Attempt(broken(TASK), reference(TASK))] * 4, healthy=0)
    assert outcome.batch.admitted == ()
    assert causes(outcome.batch.others).startswith("4 × sandbox_error: ")
    assert (outcome.metrics["rollout/invalid"], outcome.metrics["rollout/invalid/sandbox_error"]) == (4, 4)
    assert (outcome.metrics["sandbox/failed"], outcome.metrics["sandbox/created"]) == (4, 0)


def test_a_creation_that_never_ends(root: Path) -> None:
    outcome = play(root, [Attempt(broken(TASK, SLEEP), reference(TASK))] * 2, setup_deadline=5.0)
    untouched(outcome)
    assert {trial.ended_by for trial in outcome.faulty} == {EndedBy.SANDBOX_ERROR}
    assert {trial.error for trial in outcome.faulty} == {f"task {TASK.name}: its sandbox wasn't made within setup_deadline (5 s)"}
    assert not alive(SLEEP)


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
def small_disk(root: Path) -> Iterator[SmallDisk]:
    options = "size=24m,nr_inodes=2000,mode=755"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "t1x-test", root], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting takes root")
    try:
        (root / "sandboxes").mkdir(mode=0o755)
        yield SmallDisk(root)
    finally:
        subprocess.run(["umount", root], check=True)


@pytest.mark.parametrize(("what", "room"), [("files", 0), ("files", 2), ("files", 6), ("files", 30), ("blocks", 0), ("blocks", 20)])
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


CAMPAIGN = ("Campaign.start = @ScratchStart()", "Campaign.pool = @FolderPool()", "Campaign.steps = 2", "Campaign.batch = 6")


def a_pool(folder: Path, *broken: Task) -> Path:
    """These tasks and as many good ones, all in the folders of a pool."""
    pool = folder / "pool"
    pool.mkdir()
    for i, task in enumerate([*broken, *(POOL[i] for i in range(len(broken)))]):
        write_task(dataclasses.replace(task, name=f"task-{i}"), pool)
    return pool


def campaign(folder: Path, root: Path, pool: Path, *more: str) -> list[str]:
    """The arguments of `t1x run` for one."""
    runs = with_store(folder / "runs")
    lines = [*CAMPAIGN, f"FolderPool.path = '{pool}'", f"Campaign.runs = '{runs}'", f"BubblewrapSandbox.root = '{root}'", *more]
    file = starting.write(folder, "faulty", *lines)
    file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("SyntheticPool.")))
    return [str(file)]


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path.cwd())])}
    program = [sys.executable, "-m", "t1x.cli", "run", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(program, cwd=folder, env=environment, text=True, start_new_session=True, **pipes)


def killed_with_its_janitor(process: subprocess.Popen[str]) -> None:
    """SIGKILL to both at once, so that nobody is left to tidy up."""
    os.kill(process.pid, signal.SIGSTOP)
    janitors = [pid for pid in children(process.pid) if b"t1x-sandboxes" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in (*janitors, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate()


def test_a_campaign_goes_on_and_counts_what_went_wrong(root: Path, tmp_path: Path) -> None:
    """Also where the one before it was killed outright with its janitor, whose work is left to it."""
    hanging = dataclasses.replace(TASK, tests=(TaskFile("test.sh", b"sleep 100\n"),), verifier_timeout=1.0)
    silent = dataclasses.replace(TASK, tests=(TaskFile("test.sh", b"true\n"),))
    pool = a_pool(tmp_path, hanging, silent, broken(TASK))
    arguments = campaign(tmp_path, root, pool, "BubblewrapSandbox.per_node = 2")
    process = start([*arguments, "--set", "Campaign.steps = 50"], tmp_path)
    assert process.stdout is not None
    next(line for line in process.stdout if "step 1/" in line)
    killed_with_its_janitor(process)
    assert os.listdir(root) != [], "nothing was left to tidy up"
    process = start(arguments, tmp_path)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    wait_until_nothing_is_left([], root, process.pid)
    (run,) = (run for run in t1x.runs(tmp_path / "runs") if run.status is Status.FINISHED)
    entries = [entry for entry in read_log(run.folder) if "rollout/launched" in entry.metrics]
    assert [entry.step for entry in entries] == [1, 2]
    for entry in entries:
        metrics = entry.metrics
        assert (metrics["rollout/admitted"], metrics["rollout/invalid"]) == (3, 3)
        assert (metrics["rollout/invalid/verifier_error"], metrics["rollout/invalid/sandbox_error"]) == (2, 1)
        assert (metrics["sandbox/created"], metrics["sandbox/failed"]) == (5, 1)
        assert metrics["time/sandbox_most_at_once"] == 2
        assert metrics["time/sandbox_wait_p95"] > 0


def test_a_campaign_whose_sandboxes_never_come_stops_and_says_why(root: Path, tmp_path: Path) -> None:
    pool = a_pool(tmp_path, broken(TASK), broken(POOL[1]), broken(POOL[2]))
    arguments = campaign(tmp_path, root, pool, "Guards.empty_steps = 1", "BubblewrapSandbox.setup_deadline = 0.000001")
    process = start(arguments, tmp_path)
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 2, output
    assert "nothing to learn from in step 1: of 6 trials none had a learning signal (0 admitted, 6 invalid)" in errors
    assert "its sandbox wasn't made within setup_deadline (1e-06 s)" in errors
    wait_until_nothing_is_left([], root, process.pid)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_campaigns_killed_at_random_moments_leave_nothing(root: Path, tmp_path: Path) -> None:
    """Half of them with their janitor, whose work the next start does; the last one tidies up."""
    arguments = campaign(tmp_path, root, a_pool(tmp_path, TASK), "Campaign.steps = 10_000", "Campaign.batch = 16")
    rng = random.Random(0)
    for number in range(20):
        process = start(arguments, tmp_path)
        with suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(2, 12))
        assert process.poll() is None, process.communicate()
        if number % 2:
            process.kill()
            process.communicate()
            until = time.monotonic() + 30
            while (left := list(root.glob(f"t1x-sandboxes-{process.pid}-*"))) and time.monotonic() < until:
                time.sleep(0.1)
            assert not left
        else:
            killed_with_its_janitor(process)
    process = start([*arguments, "--set", "Campaign.steps = 1"], tmp_path)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    wait_until_nothing_is_left([], root, process.pid)
