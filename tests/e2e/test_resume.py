"""A campaign that is killed at any moment and gone on with comes to what it would have come to."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pytest
import starting
from killed import PHASES
from open_folder import open_folder
from stores import with_store

from t1x.campaign.record import Run, Status, alive, runs
from t1x.trajectory.storage_reader import read_header

LINES = (
    "include 'registry/models/tiny_moe.gin'",
    "Campaign.start = @ScratchStart()",
    "Campaign.router = @ReplayRouting()",
    "Campaign.scheduler = @Oversample()",
    "Oversample.ratio = 1.5",
    "Campaign.suites = [@PoolSuite()]",
    "PoolSuite.name = 'validation'",
    "PoolSuite.every = 1",
    "PoolSuite.sampled = 2",
    "PoolSuite.pool = @held/SyntheticPool()",
    "held/SyntheticPool.split = 'held_out'",
    "held/SyntheticPool.size = 4",
    "Campaign.critic_warmup = 1",
    "Campaign.steps = 4",
)
STEPS = 4
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Lab:
    """A folder for runs of one campaign that can be killed."""

    folder: Path
    sandboxes: Path
    file: Path

    def run(self, name: str, *arguments: str, kill: tuple[str, int, float] = ("none", 0, 0.0)) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(HERE / "killed.py"), *map(str, kill), "run", str(self.file), *arguments]
        command += ["--set", f"Campaign.runs = '{self.runs(name)}'", "--set", f"BubblewrapSandbox.root = '{self.sandboxes}'"]
        paths = {"PYTHONPATH": os.pathsep.join([str(HERE), str(Path.cwd())])}
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **paths}, cwd=self.folder, check=False)

    def runs(self, name: str) -> Path:
        folder = self.folder / name
        return folder if folder.exists() else with_store(folder)

    def only(self, name: str) -> Run:
        (run,) = runs(self.folder / name)
        return run


def lab(folder: Path, sandboxes: Path, *more: str) -> Lab:
    return Lab(folder, sandboxes, starting.write(folder, "campaign", *LINES, *more))


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def logged(run: Run) -> dict[tuple[str, int], float | None]:
    """Each metric of the run's log by name and step, but for times."""
    found: dict[tuple[str, int], float | None] = {}
    for line in (run.folder / "log.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for name, value in entry["metrics"].items():
            if not name.removeprefix("warmup/").startswith("time/"):
                assert (name, entry["step"]) not in found, f"{name} stands twice at step {entry['step']}"
                found[name, entry["step"]] = value
    return found


def stored(run: Run) -> dict[tuple[str, int], float]:
    """The same from the tracking store."""
    client = mlflow.MlflowClient(f"sqlite:///{run.folder.parent / 'mlflow.db'}")
    assert run.tracking_id is not None
    names = client.get_run(run.tracking_id).data.metrics
    return {
        (name, point.step): point.value
        for name in names
        if not name.removeprefix("warmup/").startswith("time/")
        for point in client.get_metric_history(run.tracking_id, name)
    }


def weights(run: Run) -> dict[str, bytes]:
    assert run.weights is not None
    return {network: (run.weights / network / "model.safetensors").read_bytes() for network in ("policy", "critic")}


def trials(run: Run) -> dict[str, str]:
    """The stored trials by file: the digest of all rows. Beside them a file holds whose they are, and each run is another."""
    return {path.name: read_header(path).digest for path in (run.folder / "trajectories").iterdir()}


@pytest.fixture(
    scope="module", params=[pytest.param(0, marks=pytest.mark.soak, id="in turn"), pytest.param(1, id="one step ahead")]
)
def deterministic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sandboxes: Path) -> Lab:
    """A deterministic campaign; its run `whole` was left alone. It was to go on, and there was nothing to go on with."""
    made = lab(
        tmp_path_factory.mktemp("lab"), sandboxes, "Experiment.deterministic = True", f"Campaign.staleness = {request.param}"
    )
    done = made.run("whole", "--resume")
    assert done.returncode == 0, done.stderr
    assert "was interrupted; a new one begins" in done.stdout
    assert made.only("whole").resumed == 0
    return made


def killed_and_gone_on_with(made: Lab, name: str, *kills: tuple[str, int, float]) -> Run:
    """Kills a run so often (later kills only where it still comes to that moment), and then goes on with it to its end."""
    for number, kill in enumerate(kills):
        done = made.run(name, *(["--resume"] if number else []), kill=kill)
        if number and done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
        assert made.only(name).status is Status.KILLED
    done = made.run(name, "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    return made.only(name)


def same_as_whole(made: Lab, run: Run) -> None:
    whole = made.only("whole")
    assert logged(run) == logged(whole)
    assert stored(run) == stored(whole) == {key: value for key, value in logged(whole).items() if value is not None}
    assert weights(run) == weights(whole)
    assert trials(run) == trials(whole)
    passes = (f"eval-validation-sampled-{step}" for step in ("untrained", *range(STEPS + 1)))
    batches = ("warmup-0", *(f"train-{step}" for step in range(1, STEPS + 1)))
    assert set(trials(run)) == {f"{name}.parquet" for name in (*passes, *batches)}
    assert run.status is Status.FINISHED
    assert run.scores == whole.scores


def moment(random_: random.Random, phase: str) -> tuple[str, int, float]:
    """Some moment of a phase that the campaign has at least so often."""
    often = {"rollout": STEPS, "verification": 20, "epoch end": 2, "evaluation": STEPS}.get(phase, STEPS - 1)
    return (
        phase,
        random_.randint(1, often),
        random_.random() ** 2 * (0.3 if phase in ("rollout", "evaluation", "epoch end") else 0.03),
    )


def test_a_killed_run_goes_on_as_if_nothing_had_happened(deterministic: Lab) -> None:
    """Unless somebody works on it."""
    done = deterministic.run("killed", kill=("actor update", 2, 0.0))
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    killed = deterministic.only("killed")
    assert killed.status is Status.KILLED
    with alive(killed.folder):
        done = deterministic.run("killed", "--resume")
    assert done.returncode == 2
    assert "works on" in done.stderr
    done = deterministic.run("killed", "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    run = deterministic.only("killed")
    same_as_whole(deterministic, run)
    assert run.resumed == 1


@pytest.mark.ci
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_killed_in_some_phases(deterministic: Lab, seed: int) -> None:
    """Six runs, each killed once to three times (`make soak` has each phase)."""
    random_ = random.Random(f"{seed}, {deterministic.folder.name[-1]}")
    phases = random_.sample(PHASES, 3)
    same_as_whole(
        deterministic, killed_and_gone_on_with(deterministic, f"some-{seed}", *(moment(random_, each) for each in phases))
    )


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_each_phase(deterministic: Lab, phase: str, seed: int) -> None:
    random_ = random.Random(f"{phase}, {seed}")
    name = f"{phase.replace(' ', '-')}-{seed}"
    same_as_whole(deterministic, killed_and_gone_on_with(deterministic, name, moment(random_, phase)))


@pytest.mark.ci
def test_without_determinism_steps_and_tasks_go_on_exactly(tmp_path: Path, sandboxes: Path) -> None:
    made = lab(tmp_path, sandboxes)
    run = killed_and_gone_on_with(made, "killed", ("critic update", 3, 0.0), ("evaluation", 2, 0.05))
    steps = Counter(step for name, step in logged(run) if name == "rollout/launched")
    assert steps == dict.fromkeys(range(1, STEPS + 1), 1)
    assert json.loads((run.folder / run.checkpoint / "state" / "tree.json").read_text())


@pytest.fixture
def stopped(deterministic: Lab, request: pytest.FixtureRequest) -> tuple[Lab, str]:
    """A run that was killed in its third step."""
    name = request.node.name.replace("[", "-").replace(" ", "-")
    done = deterministic.run(name, kill=("actor update", 3, 0.0))
    assert done.returncode == -signal.SIGKILL, done.stderr
    return deterministic, name


@pytest.mark.ci
@pytest.mark.parametrize("harm", ["flip", pytest.param("remove", marks=pytest.mark.soak)])
def test_a_damaged_checkpoint_is_told_and_the_one_before_is_used(stopped: tuple[Lab, str], harm: str) -> None:
    made, name = stopped
    file = made.only(name).folder / "checkpoints" / "step-2" / "critic" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content) if harm == "flip" else file.unlink()
    done = made.run(name, "--resume")
    assert done.returncode == 0, done.stderr
    assert "critic/model.safetensors" in done.stdout
    assert f"{made.only(name).folder.name} goes on from step-1" in done.stdout
    same_as_whole(made, made.only(name))


@pytest.mark.ci
def test_a_changed_experiment_needs_leave_to_go_on(stopped: tuple[Lab, str]) -> None:
    made, name = stopped
    before = made.only(name)
    change = ("--set", "PPO.lam = 0.9", "--set", "Campaign.steps = 5")
    refused = made.run(name, "--resume", *change)
    assert refused.returncode == 2
    assert "steps: 4 → 5" in refused.stderr
    assert "algorithm.lam: 1.0 → 0.9" in refused.stderr
    assert "--allow-changes" in refused.stderr
    assert made.only(name) == before
    done = made.run(name, "--resume", "--allow-changes", *change)
    assert done.returncode == 0, done.stderr
    after = made.only(name)
    assert after.run_digest != before.run_digest
    whole = logged(made.only("whole"))
    found = logged(after)
    assert {key: found[key] for key in whole if key[1] <= 2} == {key: value for key, value in whole.items() if key[1] <= 2}
    assert ("actor/loss", 5) in found


def test_a_finished_run_has_nothing_left_to_do(deterministic: Lab) -> None:
    whole = deterministic.only("whole")
    done = deterministic.run("whole", "--resume")
    assert done.returncode == 0
    assert "has finished" in done.stdout
    assert deterministic.only("whole") == whole


@pytest.mark.soak
def test_ranks_go_on_too(tmp_path: Path, sandboxes: Path) -> None:
    lines = ("Campaign.trainer = @TorchTrainer()", "TorchTrainer.plan = @TorchPlan()", "TorchPlan.data = 2")
    made = lab(tmp_path, sandboxes, "Experiment.deterministic = True", "Campaign.staleness = 1", *lines)
    assert made.run("whole").returncode == 0
    same_as_whole(made, killed_and_gone_on_with(made, "killed", ("publication", 4, 0.0)))


@pytest.mark.ci
def test_a_run_that_learned_nothing_does_not_finish_by_going_on(tmp_path: Path, sandboxes: Path) -> None:
    nothing = (
        "Campaign.reward = @BinaryReward()",
        "Campaign.algorithm = @GRPO()",
        "GRPO.optimizer = @Adam()",
        "GRPO.group_size = 2",
    )
    made = lab(
        tmp_path, sandboxes, *nothing, "Campaign.scheduler = @WholeGroups()", "Campaign.critic_warmup = 0", "Campaign.steps = 2"
    )
    text = made.file.read_text().splitlines()
    made.file.write_text("\n".join(line for line in text if not line.startswith(("PPO.", "Oversample."))) + "\n")
    for arguments in ((), ("--resume",)):
        done = made.run("nothing", *arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "nothing was learned" in done.stderr
        assert made.only("nothing").status is Status.FAILED
