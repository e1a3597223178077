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
from stores import with_store
from tiny import open_folder

from t1x.campaign.record import Run, Status, runs

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
    "held/SyntheticPool.split = 'test'",
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


@pytest.fixture(scope="module", params=[0, 1], ids=["in turn", "one step ahead"])
def deterministic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sandboxes: Path) -> Lab:
    """A deterministic campaign; its run `whole` was left alone."""
    made = lab(
        tmp_path_factory.mktemp("lab"), sandboxes, "Experiment.deterministic = True", f"Campaign.staleness = {request.param}"
    )
    done = made.run("whole")
    assert done.returncode == 0, done.stderr
    return made


def killed_and_gone_on_with(made: Lab, name: str, *kills: tuple[str, int, float]) -> Run:
    """Kills a run so often, and then goes on with it to its end."""
    for number, kill in enumerate(kills):
        done = made.run(name, *(["--resume"] if number else []), kill=kill)
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
    assert run.status is Status.FINISHED
    assert run.scores == whole.scores


def moment(random_: random.Random, phase: str) -> tuple[str, int, float]:
    """Some moment of a phase that the campaign has at least so often."""
    often = {"rollout": STEPS, "verification": 20, "epoch end": 2, "evaluation": STEPS}.get(phase, STEPS - 1)
    return phase, random_.randint(1, often), random_.random() ** 2 * (0.3 if phase in ("rollout", "evaluation", "epoch end") else 0.03)


def test_a_killed_run_goes_on_as_if_nothing_had_happened(deterministic: Lab) -> None:
    run = killed_and_gone_on_with(deterministic, "killed", ("actor update", 2, 0.0))
    same_as_whole(deterministic, run)
    assert run.resumed == 1


@pytest.mark.ci
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_in_some_phases(deterministic: Lab, seed: int) -> None:
    """Five runs' kills, two or three in one run (`make soak` has each phase)."""
    random_ = random.Random(f"{seed}, {deterministic.folder.name[-1]}")
    phases = random_.sample(PHASES, 3)
    same_as_whole(deterministic, killed_and_gone_on_with(deterministic, f"some-{seed}", *(moment(random_, each) for each in phases)))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_each_phase(deterministic: Lab, phase: str, seed: int) -> None:
    random_ = random.Random(f"{phase}, {seed}")
    name = f"{phase.replace(' ', '-')}-{seed}"
    same_as_whole(deterministic, killed_and_gone_on_with(deterministic, name, moment(random_, phase)))


def test_without_determinism_steps_and_tasks_go_on_exactly(tmp_path: Path, sandboxes: Path) -> None:
    made = lab(tmp_path, sandboxes)
    run = killed_and_gone_on_with(made, "killed", ("critic update", 3, 0.0), ("evaluation", 2, 0.05))
    steps = Counter(step for name, step in logged(run) if name == "rollout/launched")
    assert steps == dict.fromkeys(range(1, STEPS + 1), 1)
    assert json.loads((run.folder / run.checkpoint / "state" / "tree.json").read_text())
