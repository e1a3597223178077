"""Checkpoints that are written, kept, removed, found damaged and read, on a real disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checkpoints import checkpoint, same
from child import child
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from t1x.campaign.checkpoint_folder import Checkpoint, StoredNetwork
from t1x.campaign.checkpoint_store import CheckpointStore
from t1x.campaign.checkpointing import Checkpointing
from t1x.campaign.manifest import read_manifest, verify

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(Path.cwd())])}
"""For a child that imports this file."""
BOTH = frozenset({"policy", "critic"})


def store(folder: Path, said: list[str] | None = None, keeps: frozenset = BOTH, **spec: object) -> CheckpointStore:
    return CheckpointStore(folder, Checkpointing(**spec), keeps, (said if said is not None else []).append)


def equal(one: Checkpoint, other: Checkpoint) -> bool:
    return (
        (one.name, one.index) == (other.name, other.index)
        and same(one.state, other.state)
        and list(one.networks) == list(other.networks)
        and all(
            one.networks[which].config == other.networks[which].config
            and same(dict(one.networks[which].weights), dict(other.networks[which].weights))
            for which in one.networks
        )
    )


def kinds(folder: Path) -> dict[str, str]:
    """What is there and sound, by name."""
    found = [path for path in folder.iterdir() if path.is_dir()]
    assert not any(verify(path) for path in found)
    manifests = [read_manifest(path) for path in found]
    return {manifest.name: manifest.kind for manifest in sorted(manifests, key=lambda each: each.index)}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_is_saved_is_read_back(tmp_path: Path, asynchronous: bool) -> None:
    first = store(tmp_path / "checkpoints", asynchronous=asynchronous)
    assert first.newest() is None
    assert first.newest_weights() is None
    for index in (0, 1, 2):
        assert first.save(checkpoint(index)) == tmp_path / "checkpoints" / checkpoint(index).name
    first.finish()
    said: list[str] = []
    again = store(tmp_path / "checkpoints", said)
    assert equal(again.newest(), checkpoint(2))
    assert again.newest_weights() == tmp_path / "checkpoints" / "step-2"
    assert said == []
    assert kinds(tmp_path / "checkpoints") == {"start": "weights", "step-1": "full", "step-2": "full"}


def test_weights_are_in_hugging_face_layout_in_float32(tmp_path: Path) -> None:
    half = StoredNetwork({"a": 1}, {"w": torch.tensor([[0.5, 1.0], [2.0, 3.0]]).t().to(torch.bfloat16)})
    store(tmp_path, asynchronous=False).save(Checkpoint("start", 0, {"policy": half}, {}))
    assert json.loads((tmp_path / "start" / "policy" / "config.json").read_text()) == {"a": 1}
    (weight,) = load_file(tmp_path / "start" / "policy" / "model.safetensors").values()
    assert weight.dtype == torch.float32
    assert weight.tolist() == [[0.5, 2.0], [1.0, 3.0]]
    assert not (tmp_path / "start" / "critic").exists()


def test_what_is_written_is_what_was_there_when_it_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is held up until the trainer has gone on."""
    goes_on, given = threading.Event(), checkpoint(3)
    write = CheckpointStore._save
    monkeypatch.setattr(CheckpointStore, "_save", lambda *args: (goes_on.wait(30), write(*args))[1])
    saving = store(tmp_path)
    saving.save(given)
    assert not (tmp_path / "step-3").exists()
    for network in given.networks.values():
        for weight in network.weights.values():
            weight.zero_()
    given.state["optimizer"][0]["exp_avg"].zero_()
    given.state["pending"][:] = 0
    given.state["standing"]["steps"] = 99
    goes_on.set()
    assert equal(saving.newest(), checkpoint(3))


def files(folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    for index in (4, 5):
        store(folder, asynchronous=False).save(checkpoint(index))
    return folder


def test_every_file_of_a_checkpoint_is_in_its_manifest(saved: Path) -> None:
    assert {str(path) for path in files(saved / "step-5")} == {*read_manifest(saved / "step-5").files, "manifest.json"}
    assert len(files(saved / "step-5")) == 7


def flip(path: Path) -> str:
    """One bit of one byte, in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return "has changed" if path.name != "manifest.json" else "manifest.json"


def cut(path: Path) -> str:
    path.write_bytes(path.read_bytes()[:-1])
    return "bytes" if path.name != "manifest.json" else "manifest.json"


def remove(path: Path) -> str:
    path.unlink()
    return "is missing"


@pytest.mark.parametrize("damage", [flip, cut, remove])
@pytest.mark.parametrize("number", range(7))
def test_damage_to_any_file_is_found_said_and_the_one_before_used(tmp_path: Path, saved: Path, number: int, damage) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(saved, folder)
    name = files(folder / "step-5")[number]
    wrong = damage(folder / "step-5" / name)
    said: list[str] = []
    found = store(folder, said).newest()
    assert equal(found, checkpoint(4))
    (text,) = said
    assert text.startswith("checkpoint step-5 is damaged: ")
    assert text.endswith("step-4 is used, the newest one that is sound")
    assert str(name) in text
    assert wrong in text


def test_every_bit_of_a_manifest_counts(tmp_path: Path, saved: Path) -> None:
    folder = tmp_path / "step-5"
    shutil.copytree(saved / "step-5", folder)
    whole = (folder / "manifest.json").read_bytes()
    for place in range(len(whole)):
        (folder / "manifest.json").write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        assert verify(folder, ()), place
    (folder / "manifest.json").write_bytes(whole)
    assert verify(folder) == []


def test_where_none_is_sound_the_run_begins_anew(tmp_path: Path, saved: Path) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    flip(tmp_path / "step-4" / "state" / "tree.json")
    flip(tmp_path / "step-5" / "policy" / "config.json")
    said: list[str] = []
    found = store(tmp_path, said)
    assert found.newest() is None
    assert [text.split()[1] for text in said] == ["step-5", "step-4"]
    assert all(text.endswith("no sound one is left, so the run begins anew") for text in said)
    assert found.newest_weights() == tmp_path / "step-4"


def test_a_checkpoint_of_another_format_is_not_read(tmp_path: Path, saved: Path) -> None:
    shutil.copytree(saved / "step-5", tmp_path / "step-5")
    text = (tmp_path / "step-5" / "manifest.json").read_text()
    (tmp_path / "step-5" / "manifest.json").write_text(text.replace('"format": 1', '"format": 2'))
    (wrong,) = verify(tmp_path / "step-5")
    assert "format 2" in wrong


def test_a_run_that_went_on_from_before_leaves_that_past(tmp_path: Path, saved: Path) -> None:
    """Step 5 was damaged; its second version takes its place, and what came after the first is gone."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    store(tmp_path, asynchronous=False, last=3).save(checkpoint(6))
    for name in ("step-5", "step-6"):
        flip(tmp_path / name / "state" / "tensors.safetensors")
    again = store(tmp_path, asynchronous=False, last=3)
    assert again.newest().name == "step-4"
    second = replace(checkpoint(5), state={"second": True})
    again.save(second)
    assert equal(store(tmp_path).newest(), second)
    assert kinds(tmp_path) == {"step-4": "full", "step-5": "full"}


def test_only_kept_networks_stay_where_the_state_goes(tmp_path: Path) -> None:
    saving = store(tmp_path, keeps=frozenset({"critic"}), asynchronous=False, last=1, weights_every=2)
    for index in range(6):
        saving.save(checkpoint(index))
    assert kinds(tmp_path) == {"start": "weights", "step-2": "weights", "step-4": "weights", "step-5": "full"}
    assert {str(path) for path in files(tmp_path / "step-2")} == {
        "critic/config.json",
        "critic/model.safetensors",
        "manifest.json",
    }
    assert {path.name for path in (tmp_path / "step-2").iterdir()} == {"critic", "manifest.json"}


def test_best_survives_a_restart_and_a_second_version_of_a_step_is_judged_anew(tmp_path: Path) -> None:
    spec = {"last": 1, "best": "validation", "asynchronous": False}
    first = store(tmp_path, **spec)
    for index, value in enumerate([0.1, 0.6, 0.3]):
        first.save(checkpoint(index))
        first.scored("validation", checkpoint(index).name, value)
        first.scored("test", checkpoint(index).name, 1 - value)
    assert kinds(tmp_path) == {"start": "weights", "step-1": "weights", "step-2": "full"}
    second = store(tmp_path, **spec)
    second.save(checkpoint(3))
    assert kinds(tmp_path) == {"start": "weights", "step-1": "weights", "step-3": "full"}
    second.save(checkpoint(1))
    second.save(checkpoint(2))
    assert kinds(tmp_path) == {"start": "weights", "step-2": "full"}, "no value of the second step 1 is known"


def test_damaged_scores_are_said(tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text('{"validation": {"step-1"')
    said: list[str] = []
    store(tmp_path, said, best="validation")
    assert "scores.json can't be read" in said[0]


@pytest.mark.parametrize("asynchronous", [True, pytest.param(False, marks=pytest.mark.ci)])
def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path: Path, asynchronous: bool) -> None:
    """The child may write files of 100 kB only."""
    folder = tmp_path / "checkpoints"
    store(folder, asynchronous=False).save(checkpoint(1))
    code = f"""
import resource, signal, sys
from pathlib import Path
from checkpoints import checkpoint
from test_checkpoint_store import store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
saving = store(Path(sys.argv[1]), asynchronous={asynchronous})
try:
    saving.save(checkpoint(2, size=100_000))
    saving.save(checkpoint(3, size=100_000))
except ValueError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=HERE, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"checkpoint step-2 can't be written to {folder}: ")
    assert "File too large" in done.stdout
    assert [path.name for path in folder.iterdir()] == ["step-1"]
    assert equal(store(folder).newest(), checkpoint(1))


def test_an_error_of_the_last_write_is_said_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    saving = store(tmp_path / "file", said)
    saving.save(checkpoint(1))
    with pytest.raises(ValueError, match="step-1 can't be written"):
        saving.finish()
    saving.save(checkpoint(2))
    saving.close()
    assert "step-2 can't be written" in said[0]


OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.scandir", "os.utime"}
"""Names of Python's audit events; each is raised before its operation."""


def killed_before(number: int, work: Callable[[], object]) -> bool:
    """Does it in a process of its own that is killed before its file operation `number`; False where it has fewer."""
    if forked := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) != 0
    left = iter(range(number))

    def kill(event: str, _: object) -> None:
        if event in OPERATIONS and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(kill)
        work()
    finally:
        os._exit(0)


@pytest.mark.parametrize("already", [True, pytest.param(False, marks=pytest.mark.ci)])
def test_killed_before_any_file_operation_of_a_save(tmp_path: Path, already: bool) -> None:
    """That of step 4 makes weights of step 2 and removes step 1; `already` is whether another step 4 was there, damaged."""
    spec = {"asynchronous": False, "last": 2, "weights_every": 2, "keeps": frozenset({"policy"})}
    before = tmp_path / "before"
    preparing = store(before, asynchronous=False, last=9)
    for index in (1, 2, 3, 4) if already else (1, 2, 3):
        preparing.save(checkpoint(index))
    if already:
        flip(before / "step-4" / "state" / "tree.json")
    number, reached = 0, set()
    while True:
        folder = tmp_path / str(number)
        shutil.copytree(before, folder)
        saving = store(folder, **spec)
        killed = killed_before(number, lambda saving=saving: saving.save(checkpoint(4)))
        again = store(folder, said := [], **spec)
        newest = again.newest()
        reached.add(newest.name)
        assert equal(newest, checkpoint(newest.index))
        assert said == [] or (already and newest.name == "step-3")
        unsound = {path.name for path in folder.iterdir() if path.is_dir() and verify(path)}
        assert unsound == ({"step-4"} if said else set())
        again.save(checkpoint(newest.index + 1))
        wanted = {"step-2": "weights", "step-3": "full", "step-4": "full"}
        assert kinds(folder) == (wanted if newest.index == 3 else {"step-2": "weights", "step-4": "full", "step-5": "full"})
        assert {path.name for path in (folder / "step-2").iterdir()} == {"policy", "manifest.json"}
        assert not any(path.name.startswith(".") for path in folder.iterdir())
        if not killed:
            break
        number += 1
        shutil.rmtree(folder)
    assert reached == {"step-3", "step-4"}
    assert number > 30


@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(
    last=st.integers(1, 3),
    weights_every=st.integers(0, 3),
    values=st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=9),
    best=st.sampled_from([None, "validation"]),
)
def test_what_is_kept(tmp_path_factory, last: int, weights_every: int, values: list[int | None], best: str | None) -> None:
    """Against a list of what is there; `values` are those of the suite after each checkpoint, None where it wasn't run."""
    folder = tmp_path_factory.mktemp("kept")
    spec = {"last": last, "weights_every": weights_every, "best": best, "asynchronous": False}
    full: list[int] = []
    weights: list[int] = []
    for index, value in enumerate(values):
        store(folder, **spec).save(checkpoint(index, size=1))
        full.append(index)
        weights += full[:-last]
        full = full[-last:]
        judged = [each for each in [*weights, *full] if best and values[each] is not None and each < index]
        highest = max((values[each] for each in judged), default=None)
        champion = next((each for each in judged if values[each] == highest), None)
        weights = [each for each in weights if each == 0 or (weights_every and each % weights_every == 0) or each == champion]
        expected = {checkpoint(each).name: "weights" for each in weights} | {checkpoint(each).name: "full" for each in full}
        assert kinds(folder) == expected
        if value is not None:
            store(folder, **spec).scored("validation", checkpoint(index).name, float(value))


KILLED = """
import sys
from pathlib import Path
from checkpoints import checkpoint
from test_checkpoint_store import store
saving = store(Path(sys.argv[1]), keeps=frozenset({"policy"}), last=2, weights_every=3, asynchronous=sys.argv[2] == "True")
newest = saving.newest()
index = newest.index if newest else 0
print("ready", flush=True)
while True:
    index += 1
    saving.save(checkpoint(index, size=20_000))
"""


def killed_repeatedly(folder: Path, kills: int, seed: int) -> None:
    """Each process goes on from what the one before left; the newest full one is always there, whole, and never older."""
    random = torch.Generator().manual_seed(seed)
    reached = 0
    for kill in range(kills):
        command = [sys.executable, "-c", KILLED, str(folder), str(kill % 2 == 0)]
        with child(command, cwd=HERE, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as saving:
            assert saving.stdout.readline() == "ready\n"
            time.sleep(0.02 + 0.3 * torch.rand(1, generator=random).item())
        said: list[str] = []
        found = CheckpointStore(folder, Checkpointing(), BOTH, said.append)
        newest = found.newest()
        assert said == []
        if newest is None:
            assert reached == 0
            continue
        assert newest.index >= reached
        reached = newest.index
        assert equal(newest, checkpoint(reached, size=20_000))
        for name, kind in kinds(folder).items():
            index = int(name.removeprefix("step-"))
            assert kind == "full" or index % 3 == 0
            if kind == "weights":
                assert {path.name for path in (folder / name).iterdir()} == {"policy", "manifest.json"}
        assert not any(path.name.startswith(".") for path in folder.iterdir())
    assert reached > 0


def test_killed_at_random_moments(tmp_path: Path) -> None:
    killed_repeatedly(tmp_path / "checkpoints", kills=2, seed=0)


@pytest.mark.soak
def test_killed_at_many_random_moments(tmp_path: Path) -> None:
    killed_repeatedly(tmp_path / "checkpoints", kills=60, seed=1)
