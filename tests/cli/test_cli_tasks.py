"""`t1x tasks check`, `stats` and `overlap`: what they print and how they exit."""

import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from t1x.cli import main
from t1x.cli.tasks_findings import print_findings
from t1x.curation.meaning import Group
from t1x.tasks.manifest import NAME

BROKEN = Path(__file__).parents[1] / "curation" / "broken"
FEW = ("--set", "train/SyntheticPool.size = 4", "--set", "held_out/SyntheticPool.size = 3")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a pool `tasks` of a sound task."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    shutil.copytree(BROKEN / "fine", tmp_path / "tasks" / "fine")
    return tmp_path


def test_a_sound_pool_exits_with_0_and_leaves_its_manifest_in_its_folder(folder, capsys):
    assert main(["tasks", "check", "tasks", "--repeats", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 tasks: 1 without findings, 0 with" in out
    assert "tasks/s (each untouched, and solved once)" in out
    assert f"manifest: tasks/{NAME}" in out
    assert json.loads((folder / "tasks" / NAME).read_text())["tasks"]["fine"]["findings"] == []
    assert main(["tasks", "check", "tasks", "--repeats", "1"]) == 0
    assert "1 of 1 tasks were checked before" in capsys.readouterr().out


def test_findings_are_grouped_by_fault_and_exit_with_1(folder, capsys):
    for name in ("no_solution", "malformed_toml", "missing_tests"):
        shutil.copytree(BROKEN / name, folder / "tasks" / name)
    assert main(["tasks", "check", "tasks", "--repeats", "1", "--out", "elsewhere/found.json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "unreadable (2): the task's folder can't be read"
    assert lines[1].startswith("  malformed_toml: tasks/malformed_toml/task.toml: not valid TOML")
    assert lines[2].startswith("  missing_tests: tasks/missing_tests/tests/test.sh: missing")
    assert lines[3] == "no_solution (1): nothing shows that the task can be solved"
    assert "4 tasks: 1 without findings, 3 with" in lines
    assert list(json.loads((folder / "elsewhere/found.json").read_text())["tasks"]) == sorted(
        ("fine", "no_solution", "malformed_toml", "missing_tests")
    )


@pytest.mark.parametrize("terminal", [False, True])
def test_findings_stay_short_and_harmless_on_the_screen(terminal, capsys):
    tasks = tuple((f"task-{index}", "\x1b[31mred\nline " + "x" * 5000) for index in range(25))
    print_findings([Group("flaky", tasks)], Console(force_terminal=terminal, width=100))
    out = capsys.readouterr().out
    assert "\x1b[31m" not in out
    assert "[31mred line" in out
    assert "task-19" in out
    assert "task-20" not in out
    assert "and 5 more" in out
    assert len(out) < 25_000


def test_what_a_long_finding_says_and_the_end_of_what_was_printed_are_shown(capsys):
    said = "crashed: " + "a cause that takes some words to tell " * 6 + "No module named 'pandas'; exit status 2"
    printed = "beginning " + "line of a log\n" * 200 + "the very last line"
    print_findings([Group("verifier_unusable", (("one", f"{said}; it printed: {printed}"),))], Console(width=100))
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith(f"  one: {said}; it printed: beginning line")
    assert " … " in line
    assert line.endswith("line of a log the very last line")
    assert len(line) < 600


def test_a_pool_without_a_folder_leaves_its_manifest_in_the_working_directory(folder, capsys):
    command = ["experiments/quickstart.gin", "--site", "laptop", *FEW]
    assert main(["tasks", "check", *command, "--repeats", "1"]) == 0
    assert main(["tasks", "check", *command, "--repeats", "1", "--suite", "held_out"]) == 0
    out = capsys.readouterr().out
    assert "4 tasks: 4 without findings" in out
    assert "3 tasks: 3 without findings" in out
    assert {path.name for path in folder.glob("*.json")} == {"quickstart-manifest.json", "quickstart-held_out-manifest.json"}
    assert main(["tasks", "stats", *command]) == 0
    assert "4 tasks, 4 of them checked" in capsys.readouterr().out


def test_the_experiments_sandbox_and_deadlines_are_the_checks(folder, capsys):
    set_ = [part for binding in ("Campaign.pool = @FolderPool()", "FolderPool.path = 'tasks'") for part in ("--set", binding)]
    set_ += ["--set", "Campaign.verifier_deadline = 0.4", "--set", "BubblewrapSandbox.files = 7777"]
    shutil.copytree(BROKEN / "hanging_verifier", folder / "tasks" / "hanging")
    assert main(["tasks", "check", "experiments/quickstart.gin", "--site", "laptop", *set_]) == 1
    assert "the verifier ran longer than 0.4 s" in capsys.readouterr().out
    settings = json.loads((folder / "tasks" / NAME).read_text())["settings"]
    assert settings["verifier_deadline"] == 0.4
    assert settings["sandbox"] == "BubblewrapSandbox"
    assert settings["sandbox_fields"]["files"] == 7777


def test_statistics_are_printed_and_drawn(folder, capsys):
    command = ["tasks", "stats", "experiments/quickstart.gin", "--site", "laptop", *FEW]
    assert main([*command, "--figure", "pool.png"]) == 0
    out = capsys.readouterr().out
    for part in ("4 tasks, none checked", "S = ", "nearest rank", "family", "difficulty", "words of its instruction"):
        assert part in out
    assert (folder / "pool.png").is_file()


def test_overlap_names_pairs_and_exits_with_1_only_above_the_threshold(folder, capsys):
    shutil.copytree(folder / "tasks", folder / "held-out")
    assert main(["tasks", "overlap", "tasks", "held-out"]) == 1
    out = capsys.readouterr().out
    assert "1 of 1 tasks of held-out have a task of tasks that is like them by 0.5 or more, in 3 pairs" in out
    assert "1.00" in out
    (folder / "held-out/fine/instruction.md").write_text("Pack the archives of last year, and send nobody a message.")
    for path, text in (("tests/test.sh", "exec pack --verify"), ("solution/solve.sh", "zip year")):
        (folder / "held-out/fine" / path).write_text(text)
    assert main(["tasks", "overlap", "tasks", "held-out"]) == 0
    assert "0 of 1 tasks of held-out" in capsys.readouterr().out


def test_a_suite_is_one_of_the_experiment_or_of_a_file(folder, capsys):
    command = ["tasks", "overlap", "experiments/dense_t1_15k.gin", "--site", "laptop", "--most", "1"]
    for suite in ("tb21", "registry/suites/tb21.gin"):
        assert main([*command[:3], suite, *command[3:]]) in (0, 1)
        assert "of 89 tasks of tb21" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "nowhere"], "there is no folder nowhere, and no Gin file of that name"),
        (["check", "nowhere.gin"], "there is no file nowhere.gin"),
        (["overlap", "tasks", "nowhere/"], "there is no folder nowhere/"),
        (["overlap", "tasks", "experiments/quickstart.gin"], "--suite names one of validation, held_out, new_families"),
        (["stats", "nowhere", "--figure", "pool.foo"], "--figure pool.foo: a figure's name ends in .png, .pdf or .svg"),
        (["stats", "nowhere", "--figure", "deep/pool.png"], "--figure deep/pool.png: there is no folder deep"),
        (["check", "empty"], "empty: holds no task"),
        (["check", "tasks", "--suite", "held_out"], "tasks is a folder of tasks; --suite and --set belong to an experiment"),
        (["check", "experiments/quickstart.gin", "--suite", "held_ou"], "no suite 'held_ou'; it has validation, held_out"),
        (["check", "experiments/eval_tb21.gin"], "has no training pool; --suite names one of its suites (tb21)"),
        (["check", "experiments/grids/reward.gin"], "describes a Grid, which has no pool of tasks"),
        (["check", "tasks/fine"], "tasks/fine: this is a task; give the folder above it"),
        (["stats", "tasks/fine"], "tasks/fine: this is a task; give the folder above it"),
        (["overlap", "tasks", "tasks/fine"], "tasks/fine: this is a task; give the folder above it"),
        (["check", "above"], "above: holds no task; each task is a folder of its own in it, with a task.toml"),
        (["check", "tasks", "--out", "tasks/fine/found.json"], "would lie in a task"),
        (["check", "tasks", "--out", "notes.txt"], "not a manifest of this t1x"),
        (["check", "tasks", "--out", "notes.txt/x.json"], "with --out"),
        (["stats", "tasks", "--manifest", "tasks/fine/task.toml"], "not a manifest of this t1x"),
        (["overlap", "experiments/quickstart.gin", "held_ut"], "is no folder, Gin file or suite of the experiment"),
        (["overlap", "experiments/quickstart.gin", "experiments/quickstart.gin"], "has 3 suites; --suite names one of"),
    ],
)
def test_mistakes_exit_with_2_and_say_what_to_do(arguments, said, folder, capsys):
    (folder / "empty").mkdir()
    (folder / "above" / "tasks").mkdir(parents=True)
    (folder / "notes.txt").write_text("none")
    on = ["--site", "laptop"]
    assert main(["tasks", *arguments, *on]) == 2
    assert said in capsys.readouterr().err
    assert not list(folder.glob("**/*manifest*"))


def test_a_pools_folder_that_is_not_here_exits_with_3(folder, capsys):
    assert main(["tasks", "check", "experiments/dense_t1_15k.gin", "--site", "cluster"]) == 3
    assert "folder pools/t1_15k" in capsys.readouterr().err
