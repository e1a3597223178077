"""Evaluations without training, every part real."""

import asyncio
import json
import re
from pathlib import Path

import mlflow
import pytest
from open_folder import open_folder
from starting import first
from stores import with_store

import t1x
from t1x.campaign.assembly import Assembly
from t1x.campaign.evaluation import Evaluation
from t1x.campaign.run import run_experiment
from t1x.config import load
from t1x.engine.protocol import Decoding
from t1x.grading.report import VerifierReport, unusable
from t1x.rollout.records import Trial
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.storage_folder import batch_files
from t1x.trajectory.storage_reader import read_trials

FILE = """
include 'registry/models/tiny_moe.gin'
Evaluation.model = @Qwen3Moe()
Evaluation.start = @ScratchStart()
Evaluation.sandbox = @BubblewrapSandbox()
Evaluation.suites = [@short/BenchmarkSuite(), @long/BenchmarkSuite()]
short/BenchmarkSuite.name = 'short'
short/BenchmarkSuite.pool = @short/SyntheticPool()
short/BenchmarkSuite.attempts = 2
short/SyntheticPool.split = 'held_out'
short/SyntheticPool.size = 3
short/SyntheticPool.per_assertion = False
long/BenchmarkSuite.name = 'long'
long/BenchmarkSuite.pool = @long/SyntheticPool()
long/BenchmarkSuite.attempts = 1
long/BenchmarkSuite.measure = 'partial_credit'
long/BenchmarkSuite.harness = @long/ShellHarness()
long/ShellHarness.max_turns = 4
long/SyntheticPool.split = 'held_out'
long/SyntheticPool.size = 4
long/SyntheticPool.sub_goals = (3,)
ShellHarness.max_turns = 2
"""


def evaluation(folder: Path, *changes: str) -> tuple[Evaluation, Path]:
    file = folder / "few.gin"
    file.write_text(FILE)
    runs = with_store(folder / "runs")
    root = load(file, set=[f"Evaluation.runs = '{runs}'", f"BubblewrapSandbox.root = '{folder}'", *changes]).root
    assert isinstance(root, Evaluation)
    return root, file


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Decoding, Trial]]:
    """Every trial that was run: its purpose, how its tokens were sampled, what came of it."""
    seen = []
    original = Assembly.runner

    def runner(self, engine, purpose, step, decoding, harness=None):
        run = original(self, engine, purpose, step, decoding, harness)

        async def watched(trial_id, task):
            trial = await run(trial_id, task)
            seen.append((purpose, decoding, trial))
            return trial

        return watched

    monkeypatch.setattr(Assembly, "runner", runner)
    return seen


def test_each_suite_is_run_once_as_it_says(trials: list[tuple[str, Decoding, Trial]], capsys: pytest.CaptureFixture[str]) -> None:
    with open_folder() as folder:
        run = run_experiment(*evaluation(folder))
        scores = json.loads((run.folder / "report" / "scores.json").read_text())
        (found,) = mlflow.MlflowClient(f"sqlite:///{folder / 'runs' / 'mlflow.db'}").search_runs(["1"])
        kept = {file.name: [trial.turns for trial in read_trials(file.path)] for file in batch_files(run.folder)}
    assert {name: len(turns) for name, turns in kept.items()} == {"eval-long-benchmark-0": 4, "eval-short-benchmark-0": 6}
    ids = {turn.completion.ids.tobytes() for _, _, trial in trials for turn in trial.turns}
    assert {turn.completion.ids.tobytes() for stored in kept.values() for turns in stored for turn in turns} == ids
    assert [(s["suite"], s["policy"], s["measure"]) for s in scores] == [
        ("short", "start", "resolved_rate"),
        ("long", "start", "partial_credit"),
    ]
    assert {decoding for _, decoding, _ in trials} == {Decoding(0.1, 0.95, 20)}
    short = [trial for purpose, _, trial in trials if purpose == "eval-short-benchmark"]
    assert sorted(trial.id.removeprefix("eval-short-benchmark-0-") for trial in short) == ["0", "0.1", "1", "1.1", "2", "2.1"]
    assert {trial.report.total for trial in short if trial.report} == {1}, "a binary-only verifier"
    longest = max(len(trial.turns) for purpose, _, trial in trials if purpose == "eval-long-benchmark")
    assert max(len(trial.turns) for trial in short) <= 2 < longest <= 4, "the suite's own harness"
    names = {name for name in found.data.metrics if name.startswith("eval/")}
    assert {"eval/short/resolved_rate", "eval/short/resolved_rate_se", "eval/long/partial_credit", "eval/long/valid"} <= names
    assert (found.data.metrics["eval/short/valid"], found.data.metrics["eval/short/tasks"]) == (6, 3)
    said = capsys.readouterr().out
    assert "start on short, T = 0.1, 2 attempts: resolved 0.000 ± 0.000 of 3 tasks" in said
    assert "start on long, T = 0.1: partial credit 0.0" in said


def test_scores_that_are_there_outlive_the_total_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of the first suite take no time, those of the second have no end."""

    def runner(self, engine, purpose, *more):
        async def run(trial_id, task):
            if "long" in purpose:
                await asyncio.get_running_loop().create_future()
            return Trial(trial_id, task, (), EndedBy.DONE, VerifierReport((("a", True),)), 1.0, (), ())

        return run

    monkeypatch.setattr(Assembly, "runner", runner)
    with open_folder() as folder:
        with pytest.raises(
            ValueError, match=r"total_deadline = 1 s is over: 1 of 2 scores are there, long \(T = 0\.1\) was being run"
        ):
            run_experiment(*evaluation(folder, "Evaluation.total_deadline = 1.0"))
        (report,) = (folder / "runs").glob("few-*/report/scores.json")
        assert [(row["suite"], row["metrics"]["resolved_rate"]) for row in json.loads(report.read_text())] == [("short", 1.0)]


def test_invalid_trials_are_told_in_short_and_shown_in_the_transcripts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the first suite one trial in two is invalid, of the second all are, which ends the run."""

    def runner(self, engine, purpose, *more):
        async def run(trial_id, task):
            if "short" in purpose and "." in trial_id:
                return Trial(trial_id, task, (), EndedBy.DONE, VerifierReport((("a", True),)), 1.0, (), ())
            report = unusable("missing", "[/bold] Traceback\n" * 99)
            return Trial(trial_id, task, (), EndedBy.VERIFIER_ERROR, report, None, (), (), error=f"missing: {report.detail}")

        return run

    monkeypatch.setattr(Assembly, "runner", runner)
    with open_folder() as folder:
        with pytest.raises(ValueError, match=r"on long has no valid trial: 4 × verifier_error: missing: \[/bold\] Traceback"):
            run_experiment(*evaluation(folder))
        (transcripts,) = (folder / "runs").glob("few-*/report/transcripts.md")
        shown = transcripts.read_text()
    assert "10 trials of the evaluations at the start, 3 with a reward, mean reward 1.000, 7 invalid." in shown
    assert "[/bold] Traceback\n" * 99 in shown
    said = [line for line in capsys.readouterr().out.splitlines() if "[/bold]" in line]
    assert said[0].startswith("  3 × verifier_error: missing: [/bold] Traceback")
    assert all(len(line) < 500 for line in said)


SUITES = (
    "Campaign.suites = [@PoolSuite(), @BenchmarkSuite()]",
    "PoolSuite.name = 'every_step'",
    "PoolSuite.pool = @held_out/SyntheticPool()",
    "PoolSuite.sampled = 3",
    "PoolSuite.every = 1",
    "BenchmarkSuite.name = 'at_the_ends'",
    "BenchmarkSuite.pool = @held_out/SyntheticPool()",
    "BenchmarkSuite.attempts = 2",
    "held_out/SyntheticPool.split = 'held_out'",
    "held_out/SyntheticPool.size = 3",
)


def trained(folder: Path, name: str, *changes: str) -> tuple[dict[int, dict[str, float]], list[tuple[str, int | None]]]:
    """A deterministic campaign of three steps: the metrics of each that aren't seconds, and (suite, step) of its scores."""
    file = first(folder, "Campaign.steps = 3", "Campaign.deterministic = True", "Campaign.critic_warmup = 1", *changes)
    runs = with_store(folder / name)
    run = t1x.run(load(file, set=[f"Campaign.runs = '{runs}'", f"BubblewrapSandbox.root = '{folder}'"]))
    steps: dict[int, dict[str, float]] = {}
    for line in (run.folder / "log.jsonl").read_text().splitlines():
        entry = json.loads(line)
        own = {key: value for key, value in entry["metrics"].items() if not re.match(r"(warmup/)?time/|eval/|untrained/", key)}
        steps.setdefault(entry["step"], {}).update(own)
    scores = json.loads((run.folder / "report" / "scores.json").read_text())
    return steps, [(score["suite"], score["step"]) for score in scores]


def test_evaluating_never_changes_training() -> None:
    """To the bit; and suites are run on the untrained policy, the start, after every step or the last one."""
    with open_folder() as folder:
        silent, nothing = trained(folder, "silent")
        watched, scores = trained(folder, "watched", *SUITES)
    assert nothing == []
    assert scores == [
        *(("every_step", None), ("at_the_ends", None)),
        *(("every_step", 0), ("at_the_ends", 0)),
        *(("every_step", 1), ("every_step", 2)),
        *(("every_step", 3), ("at_the_ends", 3)),
    ]
    assert {"actor/loss", "critic/loss", "rollout/reward_mean", "mismatch/engine_gap"} <= silent[3].keys()
    assert watched == silent
