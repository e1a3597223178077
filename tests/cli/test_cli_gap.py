"""`t1x gap` as a user gives it, on a run with an untrained policy and stored trials."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from t1x.campaign.campaign import Campaign
from t1x.cli import main
from t1x.config import dump, load
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding, Sampling
from t1x.model.checkpoint import save_pretrained, to_hf
from t1x.model.transformer import MoeTransformer
from t1x.text.tokenizer import ChatTokenizer
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Turn
from t1x.trajectory.storage_reader import read_trials
from t1x.trajectory.storage_writer import TrialWriter
from t1x.trajectory.stored import StoredTrial

SIZES = ("Qwen3Moe.hidden_size = 16", "Qwen3Moe.head_dim = 8", "Qwen3Moe.moe_intermediate_size = 8")


async def conversations(campaign: Campaign, policy: MoeTransformer, tokenizer: ChatTokenizer, count: int) -> list[StoredTrial]:
    """Trials without a sandbox: what is observed is made up."""
    engine = EmbeddedEngine().build(policy.config, to_hf(policy))
    trials = []
    for index in range(count):
        history, turns = tokenizer.first_prompt(f"Sort file {index}."), []
        for turn in range(2):
            sampling = Sampling(Decoding(1.0), 8, tokenizer.stop_ids, 7 * index + turn)
            completion = await engine.generate(history, sampling, str(index))
            turns.append(Turn(turn, history, completion, 1.0))
            closing = np.array([] if completion.finish_reason == "stop" else tokenizer.stop_ids[:1], np.int32)
            history = np.concatenate([history, completion.ids, closing, tokenizer.glue("done")])
        stitcher = campaign.stitcher.build(tokenizer, campaign.model.routing_layout)
        for each in turns:
            stitcher.add(each)
        trials.append(StoredTrial(f"train-1-{index}", "toy", EndedBy.DONE, 0.5, True, tuple(turns), tuple(stitcher.finish())))
    await engine.close()
    broken = StoredTrial("train-1-broken", "toy", EndedBy.SANDBOX_ERROR, None, None, trials[0].turns, ())
    return [broken, *trials]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder; made once, since nothing writes into it."""
    torch.set_num_threads(1)
    runs = tmp_path_factory.mktemp("gap") / "runs"
    campaign = load("experiments/quickstart.gin", site="laptop", set=[*SIZES, f"Campaign.runs = '{runs}'"]).root
    assert isinstance(campaign, Campaign)
    folder = runs / "toy-1a-0"
    policy, tokenizer = campaign.model.build(0), campaign.tokenizer.build()
    for name in ("start", "step-2"):
        save_pretrained(policy, folder / "checkpoints" / name / "policy")
    (folder / "config.gin").write_text(dump(campaign))
    record = {"name": "toy", "kind": "Campaign", "run_digest": "d", "study_digest": "s", "seed": 0, "site": "laptop"}
    more = {"experiment": "", "status": "finished", "steps": 2, "started": 1.0, "checkpoint": "checkpoints/step-2"}
    (folder / "run.json").write_text(json.dumps(record | more))
    trials = asyncio.run(conversations(campaign, policy, tokenizer, 5))
    for step, stored in ((1, trials), (2, trials[:4])):
        with TrialWriter(folder / "trajectories" / f"train-{step}.parquet", {}) as writer:
            for trial in stored:
                writer.add(trial)
    return runs


@pytest.fixture
def runs(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return template


def in_folder(sandboxes: Path) -> list[str]:
    return ["--set", "Campaign.sandbox = @BubblewrapSandbox()", "--set", f"BubblewrapSandbox.root = '{sandboxes}'"]


def test_the_newest_stored_trials_of_a_run_and_what_sampled_them_and_all_numbers_and_figures(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gap", "toy-1a", "--runs", str(runs), "--out", "found/gap"]) == 0
    said = capsys.readouterr().out
    assert f"weights: {runs}/toy-1a-0/checkpoints/start/policy\ntrials: 3 stored trials of {runs}/toy-1a-0/trajectories/" in said
    assert "train-2.parquet" in said
    assert "measured with start of toy-1a-0, since no stored trials are of step-2 of toy-1a-0" in " ".join(said.split())
    assert "note:" not in said
    found = json.loads((tmp_path / "found" / "gap" / "gap.json").read_text())
    assert len(found["cells"]) == 8
    cells = {(cell["engine"], cell["experts"], cell["stitcher"]): cell for cell in found["cells"]}
    plain = cells["float32", "own", "TokenStitcher"]
    assert plain["mean"] < 1e-5 < cells["bfloat16", "own", "TokenStitcher"]["mean"]
    assert plain["loss_tokens"] == 3 * 2 * 8
    both = cells["bfloat16", "own", "RetokenizingStitcher"]["mean"] - cells["bfloat16", "replayed", "TokenStitcher"]["mean"]
    assert found["effects"]["bfloat16"]["both"]["mean"] == pytest.approx(both)
    assert f"{plain['mean']:.2e}" in said
    assert found["margins"]["float32"]["flips"]["mean"] == 0
    bounds = {dtype: each["perturbation"] for dtype, each in found["margins"].items()}
    assert bounds["float32"] is None
    assert [f"≥ {bounds['bfloat16']:.2e}" if bounds["bfloat16"] else "-"] == [
        line.split("  ")[-1].strip() for line in said.splitlines() if line.startswith("perturbation ϵ")
    ]
    rows = [tuple(line.split()[:3]) for line in said.splitlines() if "Stitcher " in line and line.split()[0].endswith(("32", "16"))]
    assert {(engine, experts, stitcher) for engine, stitcher, experts in rows} == set(cells), "in the same words"
    for name in ("gap.png", "margin.png"):
        assert (tmp_path / "found" / "gap" / name).stat().st_size > 10_000


def test_the_newest_weights_are_measured_on_what_they_sampled_in_an_evaluation(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "runs" / "toy-1a-0"
    run.mkdir(parents=True)
    for name in ("checkpoints", "config.gin", "run.json"):
        (run / name).symlink_to(runs / "toy-1a-0" / name)
    shutil.copytree(runs / "toy-1a-0" / "trajectories", run / "trajectories")
    for name, version in (("eval-held_out-sampled-2", 2), ("eval-held_out-sampled-untrained", 2)):
        with TrialWriter(run / "trajectories" / f"{name}.parquet", {"step": name.split("-")[-1]}) as writer:
            for trial in read_trials(run / "trajectories" / "train-1.parquet"):
                turns = tuple(replace(turn, completion=replace(turn.completion, version=version)) for turn in trial.turns)
                writer.add(replace(trial, turns=turns))
    assert main(["gap", str(run), "--limit", "2"]) == 0
    said = capsys.readouterr().out
    assert (
        f"weights: {run}/checkpoints/step-2/policy\ntrials: 2 stored trials of {run}/trajectories/eval-held_out-sampled-2" in said
    )
    assert "version 2; measured with step-2 of toy-1a-0\n" in said
    assert "note:" not in said

    file = run / "trajectories" / "eval-held_out-sampled-untrained.parquet"
    assert main(["gap", str(run / "checkpoints" / "start"), "--trajectories", str(file), "--limit", "1"]) == 0
    assert "note: the untrained policy sampled these trials, not start of toy-1a-0" in " ".join(capsys.readouterr().out.split())


def test_other_trials_by_step_by_file_and_only_some(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start, first = str(runs / "toy-1a-0" / "checkpoints" / "start"), str(runs / "toy-1a-0" / "trajectories" / "train-1.parquet")
    for words in (["--step", "1", "--limit", "2"], ["--trajectories", first, "--limit", "2"]):
        assert main(["gap", start, *words]) == 0
        said = capsys.readouterr().out
        assert f"weights: {start}/policy\ntrials: 2 stored trials of {first}\n" in said
        assert "sampled by a run without a name, version 0; measured with start of toy-1a-0\n" in said
        assert "note:" not in said


def test_who_sampled_the_trials_is_told_and_a_note_where_it_was_another_policy(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = runs / "toy-1a-0" / "trajectories" / "train-1.parquet"
    for run, name in (("toy-1a-0", "own.parquet"), ("else-2b-1", "others.parquet")):
        with TrialWriter(tmp_path / name, {"run": run}) as writer:
            for trial in read_trials(first):
                writer.add(trial)

    def told(checkpoint: str, file: str, *words: str) -> str:
        given = str(runs / "toy-1a-0" / "checkpoints" / checkpoint)
        assert main(["gap", given, "--trajectories", file, "--limit", "1", *words]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert "note:" not in told("start", "own.parquet")
    said = told("step-2", "own.parquet", "--out", "out")
    assert "sampled by toy-1a-0, version 0; measured with step-2 of toy-1a-0" in said
    assert "note: step-2 of toy-1a-0 has version 2, which didn't sample these trials; the gap is that of this policy on ids" in said
    found = json.loads(Path("out/gap.json").read_text())
    assert (found["sampled_by"], found["versions"]) == ("toy-1a-0", [0])
    said = told("start", "others.parquet")
    assert "sampled by else-2b-1, version 0; measured with start of toy-1a-0" in said
    assert "note: another run sampled these trials than the one that start of toy-1a-0 is of" in said


def test_a_single_trial_has_no_error(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gap", str(runs / "toy-1a-0"), "--limit", "1", "--out", "one"]) == 0
    said = capsys.readouterr().out
    cells = json.loads(Path("one/gap.json").read_text())["cells"]
    assert {cell["stderr"] for cell in cells} == {None}
    assert f"{cells[0]['mean']:.2e} ± -" in said
    assert "0.0e+00" not in said


def test_it_fits_into_80_columns_and_paths_stay_whole(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["gap", str(runs / "toy-1a-0"), "--limit", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith(("weights:", "trials:"))) <= 80
    assert any(line.endswith("train-2.parquet") for line in lines)
    assert not any("…" in line for line in lines)


def test_what_is_there_is_not_overwritten(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "margin.png").write_text("mine")
    assert main(["gap", str(runs / "toy-1a-0"), "--out", "out"]) == 2
    assert "out/margin.png exists; remove it or name another folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["margin.png"]


def test_a_name_that_is_not_there_is_told_before_anything_large_is_imported(tmp_path: Path) -> None:
    code = "import sys; from t1x.cli import main; code = main(['gap', 'nosuch']); print(code, 'torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["2", "False"], ran.stderr
    assert "there is no run 'nosuch'" in ran.stderr


def test_a_turn_that_the_policy_can_not_have_taken_ends_in_one_message(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = [trial for trial in read_trials(runs / "toy-1a-0" / "trajectories" / "train-2.parquet") if trial.trajectories]
    foreign = replace(stored[1].turns[1], prompt_ids=stored[1].turns[1].prompt_ids + np.int32(100_000))
    with TrialWriter(Path("foreign.parquet"), {}) as writer:
        writer.add(stored[0])
        writer.add(replace(stored[1], turns=(stored[1].turns[0], foreign)))
    assert main(["gap", "toy-1a", "--runs", str(runs), "--trajectories", "foreign.parquet"]) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line]
    assert told[-1].startswith(f"error: trial {stored[1].id}, turn 1 can't go through this policy: ")
    assert "Traceback" not in "".join(told)


def test_new_trials_in_real_sandboxes(runs: Path, sandboxes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--sample", "2", *in_folder(sandboxes), "--set", "Campaign.seed = 5", "--set", "ShellHarness.max_turns = 1"]
    assert main(["gap", str(runs / "toy-1a-0"), *words]) == 0
    assert "trials: 2 new trials (temperature 1, seed 5, by a float32 engine)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["toy-1a-0", "--step", "7"],
            "has kept no batch train-7; it has train-1, train-2; --sample N runs new ones",
        ),
        (["toy-1a-0", "--trajectories", "nowhere.parquet"], "nowhere.parquet"),
        (
            ["toy-1a-0", "--step", "1", "--trajectories", "a.parquet"],
            "--step names a batch of the run and --trajectories another file",
        ),
        (
            ["toy-1a-0", "--sample", "2", "--limit", "1"],
            "--sample runs new trials; --step, --trajectories and --limit choose stored",
        ),
        (["toy-1a-0", "--trajectories", "tracking.db"], "tracking.db isn't a Parquet file of trials"),
        (["toy-1a-0", "--out", "file"], "--out file: that isn't a folder"),
        (["toy-2"], "there is no run 'toy-2'"),
        (["policy"], "lies in no run, so nothing says which trainer and tokenizer go with it"),
        (["policy", "--like", "eval_tb21.gin"], "describes an Evaluation, which trains nothing"),
        (
            ["policy", "--like", "quickstart.gin", "--sample", "1"],
            "holds another model: hidden_size = 16 (the experiment has 128), head_dim = 8",
        ),
        (["toy-1a-0", "--limit", "0"], "--limit"),
    ],
)
def test_what_a_user_can_mend(
    words: list[str], message: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "tracking.db").write_bytes(b"SQLite format 3\0" * 100)
    shutil.copytree(runs / "toy-1a-0" / "checkpoints" / "start" / "policy", tmp_path / "policy")
    experiments = request.config.rootpath / "experiments"
    words = [str(experiments / word) if word.endswith(".gin") else word for word in words]
    assert main(["gap", *words, "--runs", str(runs)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_run_without_stored_trials_says_what_else_there_is(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "runs" / "toy-1a-0"
    bare.mkdir(parents=True)
    for name in ("checkpoints", "config.gin", "run.json"):
        (bare / name).symlink_to(runs / "toy-1a-0" / name)
    assert main(["gap", str(bare)]) == 2
    assert "a run that stopped before its first batch has none; --sample N runs new ones" in " ".join(
        capsys.readouterr().err.split()
    )


def test_ctrl_c_leaves_no_sandbox(runs: Path, sandboxes: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "t1x.cli", "gap", str(runs / "toy-1a-0"), "--sample", "60", *in_folder(sandboxes)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    deadline = time.monotonic() + 60
    while not list(sandboxes.glob("*/*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.strip().splitlines()[-1]) == (130, "interrupted")
    assert list(sandboxes.iterdir()) == []
