"""Pools are judged by running them."""

import shutil
from pathlib import Path

import pytest

from t1x.curation.candidates import candidates
from t1x.curation.check import Check
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.folder import FolderPool
from t1x.tasks.manifest import Entry, Settings, read_manifest
from t1x.tasks.synthetic import SyntheticPool

BROKEN = Path(__file__).parent / "broken"
FAULT = {
    "failing_solution": ("solution_fails", "1 of 2 assertions fail: answer.txt holds 42; exit status 2; it printed: ls:"),
    "slow_solution": ("solution_fails", "ran out of the agent's 0.5 s"),
    "passes_untouched": ("passes_untouched", "every assertion (1) holds"),
    "no_assertion": ("asserts_nothing", "no assertion is reported"),
    "flaky": ("flaky", "ball"),
    "hanging_verifier": ("verifier_unusable", "timeout"),
    "crashing_verifier": ("verifier_unusable", "missing"),
    "bad_report": ("verifier_unusable", "truncated"),
    "unknown_instruction": ("unreadable", "Dockerfile:3: VOLUME"),
    "malformed_toml": ("unreadable", "task.toml: not valid TOML"),
    "missing_tests": ("unreadable", "test.sh: missing"),
    "twin": ("duplicate", "as fine"),
    "failing_run": ("environment_fails", "/failing_run/environment/Dockerfile:3: RUN"),
    "no_solution": ("no_solution", "solve.sh"),
    "idle_test": ("asserts_nothing", "test_outputs.py::test_the_answer_is_right"),
    "imports_the_answer": ("in_process", "the module /app/answer.py; run it as a program (subprocess)"),
    "bad_reward": ("verifier_unusable", "bad_reward"),
}
FINE = {"fine", "fine_pytest", "fine_harbor"}


def test_each_broken_task_is_named_with_its_fault_and_nothing_else_is(checked):
    manifest = checked(FolderPool(path=BROKEN), repeats=3)
    found = {name: [each.fault for each in entry.findings] for name, entry in manifest.tasks.items()}
    one = {name: [fault] for name, (fault, _) in FAULT.items()}
    assert found == {**{name: [] for name in FINE}, **one, "imports_pandas": ["verifier_unusable", "no_solution"]}
    unusable = manifest.tasks["imports_pandas"].findings[0].detail
    assert "task failing_run" not in manifest.tasks["failing_run"].findings[0].detail
    assert "untouched environment: not all tests can be collected: test_outputs.py: ModuleNotFoundError" in unusable
    for name, (_, said) in FAULT.items():
        assert said in manifest.tasks[name].findings[0].detail
    assert manifest.tasks["fine"].assertions == ("answer.txt is there", "answer.txt holds 42")
    assert manifest.tasks["fine"].baseline == ()
    assert manifest.tasks["passes_untouched"].baseline == ("the work folder is there",)
    assert manifest.tasks["fine_pytest"].baseline == ()
    assert len(manifest.tasks["fine_pytest"].assertions) == 2
    assert manifest.tasks["bad_report"].baseline is None
    assert manifest.tasks["fine_harbor"].assertions is None


@pytest.mark.parametrize("split", ["demo", "train", "validation", "held_out", "held_out_families"])
def test_every_bundled_reference_passes_and_nothing_untouched_does(split, checked):
    manifest = checked(SyntheticPool(split=split, size=12), repeats=1)
    assert len(manifest.tasks) == 12
    for entry in manifest.tasks.values():
        assert entry.findings == ()
        assert entry.baseline is not None
        assert len(entry.baseline) < len(entry.assertions)


class Dying(BubblewrapSandbox):
    """Its sandboxes are gone as soon as they are there."""

    def build_host(self, deterministic: bool):
        host = super().build_host(deterministic)
        create = host.create

        async def destroyed(task):
            lease = await create(task)
            await lease.destroy()
            return lease

        host.create = destroyed
        return host


def test_a_sandbox_that_fails_is_no_fault_of_the_tasks_and_is_tried_again(sandboxes, tmp_path):
    settings, tasks = Settings(sandbox="Dying", repeats=1), candidates(SyntheticPool(split="train", size=2))
    for sandbox, fault in ((Dying, ["sandbox_fails"]), (BubblewrapSandbox, [])):
        with Check(tasks, tmp_path / "manifest.json", settings) as check:
            assert len(check.due) == 2
            check.run(sandbox(root=sandboxes), 2, lambda name, entry: None)
            manifest = check.finish()
        for entry in manifest.tasks.values():
            assert [found.fault for found in entry.findings] == fault


def test_what_goes_wrong_in_the_check_itself_leaves_no_sandbox(sandboxes, tmp_path):
    tasks = candidates(SyntheticPool(split="train", size=8))

    def fail(name: str, entry: Entry) -> None:
        raise RuntimeError("no room")

    with Check(tasks, tmp_path / "manifest.json", Settings(sandbox="s", repeats=1)) as check, pytest.raises(RuntimeError):
        check.run(BubblewrapSandbox(root=sandboxes), 4, fail)
    with Check(tasks, tmp_path / "manifest.json", Settings(sandbox="s", repeats=1)) as check:
        assert len(check.known) >= 1, "what was found before is kept"


def test_only_what_has_changed_is_run_again(checked, tmp_path):
    pool = tmp_path / "pool"
    for name in ("fine", "failing_solution", "malformed_toml"):
        shutil.copytree(BROKEN / name, pool / name)
    first, again, mended, anew = [], [], [], []
    before = checked(FolderPool(path=pool), ran=first)
    assert sorted(first) == ["failing_solution", "fine"]
    assert checked(FolderPool(path=pool), ran=again) == before
    assert again == []
    shutil.copy(BROKEN / "fine/solution/solve.sh", pool / "failing_solution/solution/solve.sh")
    shutil.copy(BROKEN / "fine/task.toml", pool / "malformed_toml/task.toml")
    after = checked(FolderPool(path=pool), ran=mended)
    assert sorted(mended) == ["failing_solution", "malformed_toml"]
    assert [entry.findings for entry in after.tasks.values()] == [(), (), ()]
    assert read_manifest(tmp_path / "manifest.json") == after
    checked(FolderPool(path=pool), ran=anew, fresh=True)
    assert sorted(anew) == ["failing_solution", "fine", "malformed_toml"]
    checked(FolderPool(path=pool), repeats=1, ran=anew)
    assert len(anew) == 6, "other settings begin anew"
