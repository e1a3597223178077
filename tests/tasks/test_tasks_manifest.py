"""A pool's manifest, and what its folder makes of it."""

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from t1x.tasks.digest import folder_digest, task_digest
from t1x.tasks.export import export_pool
from t1x.tasks.folder import FolderPool
from t1x.tasks.manifest import NAME, Entry, Finding, Manifest, Settings, read_manifest, write_manifest
from t1x.tasks.synthetic import SyntheticPool

SETTINGS = Settings(sandbox="BubblewrapSandbox", repeats=3)


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Three tasks that don't say how many assertions they have."""
    export_pool(SyntheticPool(split="train", size=3).build(), tmp_path / "pool")
    for toml in (tmp_path / "pool").glob("*/task.toml"):
        kept = [line for line in toml.read_text().splitlines() if not line.startswith("assertions")]
        toml.write_text("\n".join(kept))
    return tmp_path / "pool"


def write(pool: Path, **findings: str) -> list[str]:
    """A manifest in which the task at index i has the fault `findings["t<i>"]`; names of all tasks."""
    names = sorted(path.name for path in pool.iterdir() if path.is_dir())
    entries = {
        name: Entry(
            sha256=folder_digest(pool / name),
            assertions=("p", "q", "r"),
            baseline=("q",),
            findings=tuple(Finding(fault=fault, detail="") for fault in [findings.get(f"t{index}")] if fault),
        )
        for index, name in enumerate(names)
    }
    write_manifest(pool / NAME, Manifest(settings=SETTINGS, tasks=entries))
    return names


def test_tasks_get_their_baseline_and_their_number_of_assertions_from_it(pool):
    bare = FolderPool(path=pool).build()
    assert {(task.baseline, task.assertions) for task in (bare[0], bare[1], bare[2])} == {(None, None)}
    write(pool)
    known = FolderPool(path=pool).build()
    for index in range(3):
        assert known[index] == dataclasses.replace(bare[index], baseline=frozenset({"q"}), assertions=3)


def test_a_number_that_the_task_gives_itself_stays(pool):
    (name, *_) = write(pool)
    (pool / name / "task.toml").write_text("[metadata]\nassertions = 7\n")
    write(pool)
    assert FolderPool(path=pool).build()[0].assertions == 7


def test_a_task_that_has_changed_since_gets_nothing_from_it_and_that_is_said(pool):
    names = write(pool)
    (pool / names[1] / "instruction.md").write_text("Something else.")
    with pytest.warns(UserWarning, match=rf"{names[1]}, have changed since .*`t1x tasks check"):
        tasks = FolderPool(path=pool).build()
    assert [tasks[index].baseline for index in range(3)] == [frozenset({"q"}), None, frozenset({"q"})]


def test_tasks_with_a_fault_are_left_out_where_that_is_asked_for(pool):
    names = write(pool, t0="flaky", t2="no_solution")
    (pool / names[0] / "instruction.md").unlink()  # what is left out isn't read
    write(pool, t0="flaky", t2="no_solution")
    with pytest.warns(UserWarning, match="FolderPool.without leaves out 1 of its 3 tasks"):
        left = FolderPool(path=pool, without=("flaky", "solution_fails")).build()
    assert [left[index].name for index in range(len(left))] == names[1:]
    write(pool, t0="flaky", t1="flaky", t2="flaky")
    with pytest.raises(ValueError, match="every task has one of the faults"):
        FolderPool(path=pool, without=("flaky",)).build()


def test_leaving_out_needs_a_check_of_every_task(pool):
    with pytest.raises(ValueError, match=r"3 of its tasks haven't been checked as they are, such as .*; run `t1x tasks check "):
        FolderPool(path=pool, without=("flaky",)).build()
    names = write(pool)
    (pool / names[2] / "tests/test.sh").chmod(0o700)
    with pytest.raises(ValueError, match=f"1 of its tasks haven't been checked as they are, such as {names[2]}"):
        FolderPool(path=pool, without=("flaky",)).build()


def test_a_fault_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="flakey"):
        FolderPool(path=Path("x"), without=("flakey",))


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2, "settings": {"sandbox": "s", "repeats": 3}, "tasks": {}}', "[1"])
def test_what_is_no_manifest_is_refused_by_its_path(text, pool):
    (pool / NAME).write_text(text)
    with pytest.raises(ValueError, match=f"{NAME}: not a manifest of this t1x"):
        FolderPool(path=pool).build()


def test_a_manifest_is_read_back_as_it_was_written(tmp_path):
    manifest = Manifest(
        settings=SETTINGS,
        tasks={'a "ü"': Entry(sha256="0", findings=(Finding(fault="flaky", detail="one\ntwo"),)), "b": Entry(sha256="1")},
    )
    write_manifest(tmp_path / NAME, manifest)
    assert read_manifest(tmp_path / NAME) == manifest
    assert os.listdir(tmp_path) == [NAME]
    assert len((tmp_path / NAME).read_text().splitlines()) == 2 + len(manifest.tasks)
    assert read_manifest(tmp_path / "nothing") is None


def test_a_baseline_that_names_no_assertion_is_refused(pool):
    write(pool)
    manifest = pool / NAME
    manifest.write_text(manifest.read_text().replace('"baseline":["q"]', '"baseline":["q","z"]', 1))
    with pytest.raises(ValueError, match=r"t1x-manifest\.json: not a manifest .*'z', which isn't among the assertions"):
        read_manifest(manifest)


def test_every_file_mode_path_and_content_counts_and_the_folders_name_does_not(tmp_path):
    def changed(name: str, change) -> str:
        folder = tmp_path / name
        folder.mkdir()
        for path in ("a.txt", "b.txt"):
            (folder / path).write_text(path)
            (folder / path).chmod(0o644)
        change(folder)
        return folder_digest(folder)

    same = changed("one", lambda folder: None)
    assert changed("two", lambda folder: (folder / "empty").mkdir()) == same
    others = [
        changed("mode", lambda folder: (folder / "a.txt").chmod(0o755)),
        changed("content", lambda folder: (folder / "a.txt").write_text("b")),
        changed("path", lambda folder: (folder / "a.txt").rename(folder / "c.txt")),
        changed("more", lambda folder: (folder / "c.txt").write_text("")),
        changed("less", lambda folder: (folder / "a.txt").unlink()),
        changed("link", lambda folder: (folder / "c").symlink_to("a.txt")),
        changed("other link", lambda folder: (folder / "c").symlink_to("b.txt")),
        changed("fifo", lambda folder: os.mkfifo(folder / "c")),
        changed("swapped", lambda folder: shutil.copy(folder / "a.txt", folder / "b.txt")),
    ]
    assert len({same, *others}) == 1 + len(others)


def test_the_checksum_of_a_task_without_a_folder_leaves_out_name_and_baseline_only():
    first, second = (SyntheticPool(split="train", size=2).build()[index] for index in range(2))
    assert task_digest(first) == task_digest(dataclasses.replace(first, name="x", baseline=frozenset({"a", "b"})))
    others = [second, dataclasses.replace(first, instruction="x"), dataclasses.replace(first, verifier_timeout=1.0)]
    assert len({task_digest(task) for task in (first, *others)}) == 4
