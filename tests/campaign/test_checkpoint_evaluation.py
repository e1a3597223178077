"""What `t1x eval` makes of a checkpoint, suites and settings; nothing is run here."""

import json
import os
import shutil
from pathlib import Path

import pytest
from test_run_listing import make_run

from t1x.campaign.campaign import Campaign
from t1x.campaign.checkpoint_evaluation import evaluation_of, find_weights
from t1x.campaign.experiment import Experiment
from t1x.campaign.record import Run
from t1x.campaign.suite import BenchmarkSuite
from t1x.campaign.suite_file import suites_in
from t1x.config import ConfigError, dump, load
from t1x.grading.reward import BinaryReward
from t1x.harness.shell import ShellHarness

QUICKSTART = "experiments/quickstart.gin"


def weights_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of the quickstart with a start and a step."""
    runs = tmp_path / "runs"
    folder = runs / "quickstart-1a-0"
    for name in ("start", "step-2"):
        weights_in(folder / "checkpoints" / name / "policy")
    made = load(
        QUICKSTART, site="laptop", set=[f"Campaign.runs = '{tmp_path}'", "Campaign.seed = 7", "ShellHarness.max_turns = 5"]
    ).root
    (folder / "config.gin").write_text(dump(made))
    record = make_run(tmp_path / "records", "quickstart", checkpoint="checkpoints/step-2", tracking_id="ab12")
    (folder / "run.json").write_text((record.folder / "run.json").read_text())
    return find_weights(str(folder), runs).run  # type: ignore[return-value]


def test_a_run_stands_for_its_newest_policy_and_a_folder_for_its_own(run: Run) -> None:
    newest = run.folder / "checkpoints" / "step-2" / "policy"
    for name in (str(run.folder), "quickstart-1a-0", "ab12"):
        found = find_weights(name, run.folder.parent)
        assert (found.policy, found.name) == (newest, "quickstart-step-2"), name
    start = run.folder / "checkpoints" / "start"
    for folder in (start, start / "policy"):
        found = find_weights(str(folder), Path("nowhere"))
        assert (found.policy, found.run, found.name) == (
            start / "policy",
            find_weights(str(run.folder), Path()).run,
            "quickstart-start",
        )


def test_a_checkpoint_that_is_not_there_is_told_with_those_that_are(run: Run) -> None:
    checkpoints = run.folder / "checkpoints"
    for at, name in enumerate(("start", "step-2")):
        os.utime(checkpoints / name / "policy" / "config.json", (at, at))
    with pytest.raises(ValueError, match=f"there is no {checkpoints}/step-9; {checkpoints} has start, step-2$"):
        find_weights(str(checkpoints / "step-9"), Path())
    (checkpoints / "critic-only").mkdir()
    with pytest.raises(ValueError, match=f"critic-only holds no policy: .*; {checkpoints} has start, step-2$"):
        find_weights(str(checkpoints / "critic-only"), Path())
    shutil.rmtree(checkpoints)
    with pytest.raises(ValueError, match=f"there is no {checkpoints}/start; quickstart-1a-0 has kept no weights of a policy$"):
        find_weights(str(checkpoints / "start"), Path())


def test_a_run_that_was_killed_has_weights_too(run: Run) -> None:
    content = json.loads((run.folder / "run.json").read_text())
    (run.folder / "run.json").write_text(json.dumps(content | {"checkpoint": None}))
    (run.folder / "checkpoints" / ".writing-step-3" / "policy").mkdir(parents=True)
    (run.folder / "checkpoints" / ".writing-step-3" / "policy" / "config.json").write_text("{}")
    assert find_weights(str(run.folder), Path()).policy == run.folder / "checkpoints" / "step-2" / "policy", "not half a one"


def test_the_rest_is_as_in_the_run(run: Run) -> None:
    evaluation = evaluation_of(str(run.folder), ["held_out"])
    campaign = load(run.folder / "config.gin").root
    assert isinstance(campaign, Campaign)
    changed = {"start", "suites", "name", "runs"}
    for field in Experiment.model_fields.keys() - changed:
        assert getattr(evaluation, field) == getattr(campaign, field), field
    assert evaluation.seed == 7
    assert evaluation.start.path == run.folder / "checkpoints" / "step-2" / "policy"  # type: ignore[attr-defined]
    assert [suite.name for suite in evaluation.suites] == ["held_out"]
    assert (evaluation.name, evaluation.runs) == ("eval-quickstart-step-2", run.folder.parent)


def test_suites_come_from_the_run_from_files_and_from_experiments(run: Run) -> None:
    suites = ["validation", "registry/suites/tb21.gin", "experiments/eval_lhtb.gin"]
    found = evaluation_of(str(run.folder), suites).suites
    assert [suite.name for suite in found] == ["validation", "tb21", "lhtb"]
    assert found[1] == load("experiments/eval_tb21.gin", site="laptop").root.suites[0]  # type: ignore[attr-defined]
    assert suites_in("registry/suites/tb21.gin", "cluster")[0] != found[1], "as the site has it"


def test_a_suite_file_and_the_runs_settings_stay_apart(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.gin"
    file.write_text(
        "a/BenchmarkSuite.name = 'a'\na/BenchmarkSuite.harness = @ShellHarness()\n"
        "BenchmarkSuite.name = 'b'\nBenchmarkSuite.pool = @SyntheticPool()\n"
        "SyntheticPool.split = 'held_out'\nSyntheticPool.size = 3\nShellHarness.command_timeout = 3.0\n"
    )
    found = evaluation_of(str(run.folder), [str(file)])
    a, b = found.suites
    assert isinstance(a, BenchmarkSuite)
    assert (a.name, b.name, a.harness) == ("a", "b", ShellHarness(command_timeout=3.0))
    assert found.harness == ShellHarness(max_turns=5)


def test_settings_win(run: Run) -> None:
    settings = ["Evaluation.seed = 9", "BenchmarkSuite.attempts = 5", "Experiment.concurrency = 3"]
    found = evaluation_of(str(run.folder), ["registry/suites/tb21.gin"], set=settings)
    (suite,) = found.suites
    assert isinstance(suite, BenchmarkSuite)
    assert (found.seed, suite.attempts, found.concurrency) == (9, 5, 3)
    with pytest.raises(ConfigError, match="BenchmarkSuite has no field atempts"):
        evaluation_of(str(run.folder), ["registry/suites/tb21.gin"], set=["BenchmarkSuite.atempts = 5"])


def test_a_setting_of_a_campaign_is_told_what_it_is_in_an_evaluation(run: Run) -> None:
    settings = ["Campaign.reward = @BinaryReward()", "Campaign.steps = 3", "Evaluation.seed = 1"]
    with pytest.raises(ConfigError) as caught:
        evaluation_of(str(run.folder), ["held_out"], set=settings)
    assert [(str(problem.origin), problem.message) for problem in caught.value.problems] == [
        (f"--set {settings[0]!r}", "this is an Evaluation and no Campaign; write Evaluation.reward or Experiment.reward"),
        (f"--set {settings[1]!r}", "this is an Evaluation and no Campaign; it has no field steps"),
    ]
    found = evaluation_of(str(run.folder), ["held_out"], set=["Evaluation.reward = @BinaryReward()"])
    assert found.reward == BinaryReward()


def test_a_policy_of_no_run_needs_an_experiment_to_be_like(tmp_path: Path) -> None:
    policy = weights_in(tmp_path / "mine")
    with pytest.raises(ValueError, match=r"mine lies in no run, .* as in --like experiments/quickstart\.gin"):
        evaluation_of(str(policy), ["held_out"])
    found = evaluation_of(str(policy), ["held_out"], like=QUICKSTART, site="laptop")
    assert (found.name, found.runs, found.start.path) == ("eval-mine", Path("runs"), policy)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("suites", "said"),
    [
        ([], "nothing to evaluate on; name a suite; its experiment has validation, held_out, new_families; a Gin file is one too"),
        (["heldout"], "there is no suite 'heldout'; did you mean 'held_out'?"),
        (["registry/suites/tb12.gin"], "there is no file registry/suites/tb12.gin; did you mean 'registry/suites/tb21.gin'?"),
        (["registry/models/tiny_moe.gin"], "registry/models/tiny_moe.gin has no suite"),
        (["held_out", "held_out"], "two suites are named 'held_out'"),
    ],
)
def test_what_cannot_be_evaluated_on_is_told(run: Run, suites: list[str], said: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        evaluation_of(str(run.folder), suites)
    assert said in str(caught.value)


def test_what_holds_no_policy_is_told(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no policy: neither it nor .*/policy has a config\.json"):
        find_weights(str(run.folder / "checkpoints"), Path())
    empty = make_run(tmp_path / "runs", "empty")
    with pytest.raises(ValueError, match="empty has kept no weights of a policy"):
        find_weights(str(empty.folder), Path())
    with pytest.raises(ValueError, match="there is no run 'nothing' in"):
        find_weights("nothing", tmp_path / "runs")
