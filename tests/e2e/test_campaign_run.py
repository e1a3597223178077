"""A whole campaign, every part real: sandboxes, verifier, engine, trainer, MLflow."""

import json
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pytest
import torch
from open_folder import open_folder
from stores import with_store
from tiny import settings

import t1x
from t1x.campaign import record
from t1x.campaign.identity import run_digest_of
from t1x.campaign.progress import ProgressReport
from t1x.config import Root, load
from t1x.config.digest import study_digest
from t1x.config.requirements import NotHere
from t1x.grading.report import VerifierReport
from t1x.grading.reward import Reward, Spent
from t1x.model.checkpoint import load_pretrained
from t1x.model.value import ValueModel

EXPERIMENT = "experiments/quickstart.gin"


class LengthOfReport(Reward):
    """T/20: differs from task to task whatever the policy does, so that a policy that knows nothing has something to learn from."""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return report.total / 20


@dataclass
class Run:
    record: record.Run
    tags: dict[str, str]
    """As MLflow has them."""
    history: dict[str, dict[int, float]]
    """Metric to its values by step, as MLflow has them."""
    params: dict[str, str]
    root: Root
    left: list[Path]
    """What is left where sandboxes were."""
    phases: list[tuple[str, int]]
    """Title and size of each phase that was shown."""
    said: list[str]

    @property
    def folder(self) -> Path:
        return self.record.folder


def run_tiny(runs: Path, *changes: str) -> Run:
    with open_folder() as sandboxes:
        reward = "Campaign.reward = @LengthOfReport()"
        resolved = load(EXPERIMENT, set=settings(with_store(runs), sandboxes, reward, *changes))
        phases, said = [], []
        with pytest.MonkeyPatch.context() as patch:
            phase, say = ProgressReport.phase, ProgressReport.say
            patch.setattr(ProgressReport, "phase", lambda self, *args, **of: (phases.append(args), phase(self, *args, **of))[1])
            patch.setattr(ProgressReport, "say", lambda self, text: (said.append(text), say(self, text))[1])
            recorded = t1x.run(resolved)
        left = list(sandboxes.iterdir())
    client = mlflow.MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")
    (found,) = client.search_runs([client.get_experiment_by_name("t1x").experiment_id])
    assert found.info.status == "FINISHED"
    history = {name: {m.step: m.value for m in client.get_metric_history(found.info.run_id, name)} for name in found.data.metrics}
    assert found.info.run_id == recorded.tracking_id
    return Run(recorded, found.data.tags, history, found.data.params, resolved.root, left, phases, said)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_tiny(tmp_path_factory.mktemp("runs"))


def test_it_logs_what_a_campaign_is_judged_by(run: Run) -> None:
    for name in (
        "rollout/reward_mean",
        "rollout/turns_mean",
        "rollout/resolved_rate",
        "mismatch/engine_gap",
        "mismatch/version_skew",
        "mismatch/logprob_gap",
        "actor/entropy",
        "actor/clip_fraction",
        "critic/loss",
        "time/rollout",
        "time/step",
        "fidelity/own_turn_violations",
    ):
        assert sorted(run.history[name]) == [1, 2], name
    for name in ("eval/held_out/resolved_rate", "eval/held_out/resolved_rate_greedy"):
        assert sorted(run.history[name]) == [0, 2], name
    assert sorted(run.history["eval/validation/resolved_rate_greedy"]) == [0, 1, 2]
    assert sorted(run.history["untrained/held_out/resolved_rate"]) == [0]
    assert run.params["reward.class"] == "LengthOfReport"


def test_its_record_says_what_it_was_and_what_it_came_to(run: Run) -> None:
    kept = record.read_run(run.folder)
    assert kept == run.record
    assert (kept.status, kept.name, kept.kind, kept.seed) == (record.Status.FINISHED, "quickstart", "Campaign", 0)
    assert (kept.run_digest, kept.study_digest) == (run_digest_of(run.root), study_digest(run.root))
    assert run.folder.name == f"quickstart-{kept.run_digest[:8]}-0"
    assert kept.weights == run.folder / "checkpoints" / "step-2"
    last = kept.scores["held_out"]["resolved_rate_greedy"]
    assert (last.mean, last.n) == (run.history["eval/held_out/resolved_rate_greedy"][2], 2)
    assert last.se == run.history["eval/held_out/resolved_rate_se_greedy"][2]
    assert (run.tags["run_digest"], run.tags["study_digest"], run.tags["seed"]) == (kept.run_digest, kept.study_digest, "0")


def test_sampler_and_trainer_agree_on_one_policy(run: Run) -> None:
    assert max(run.history["mismatch/engine_gap"].values()) < 1e-5
    assert set(run.history["mismatch/version_skew"].values()) == {0.0}


def test_every_stream_is_what_its_turns_sampled(run: Run) -> None:
    assert set(run.history["fidelity/own_turn_violations"].values()) == {0.0}
    assert set(run.history["fidelity/context"].values()) == {1.0}


def test_recording_demonstrations_is_one_phase(run: Run) -> None:
    assert [size for title, size in run.phases if title == "recording demonstrations"] == [12]


def test_a_reader_is_told_modes_as_the_report_names_them(run: Run) -> None:
    told = [*run.said, *(title for title, _ in run.phases)]
    assert not [text for text in told if "sampled" in text]
    assert "evaluating start on held_out, T = 1" in told
    assert [text for text in run.said if text.startswith("step 2 on held_out, T = 1: resolved ")]


def test_it_leaves_no_sandbox(run: Run) -> None:
    assert run.left == []


def test_a_store_that_cannot_be_opened_leaves_no_sandbox(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("not a database")
    store = f"MLflowTracking.uri = 'sqlite:///{tmp_path / 'store.db'}'"
    with open_folder() as sandboxes:
        with pytest.raises(ValueError, match=r"store\.db can't be used"):
            t1x.run(load(EXPERIMENT, set=settings(tmp_path / "runs", sandboxes, store)))
        assert list(sandboxes.iterdir()) == []
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    "changes",
    [
        ("Campaign.start = @CheckpointStart()", "CheckpointStart.path = 'nowhere'"),
        ("SupervisedStart.pool = @FolderPool()", "FolderPool.path = 'nowhere'"),
    ],
)
def test_a_start_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path, changes: tuple[str, ...]) -> None:
    with open_folder() as sandboxes:
        with pytest.raises(NotHere, match="folder nowhere"):
            t1x.run(load(EXPERIMENT, set=settings(tmp_path / "runs", sandboxes, *changes)))
        assert list(sandboxes.iterdir()) == []
    assert not (tmp_path / "runs").exists()


def test_a_start_of_another_architecture_is_refused(run: Run, tmp_path: Path) -> None:
    path = f"CheckpointStart.path = '{run.folder / 'checkpoints' / 'step-2' / 'policy'}'"
    with open_folder() as sandboxes:
        changes = ("Campaign.start = @CheckpointStart()", path, "Qwen3Moe.num_experts_per_tok = 1")
        with pytest.raises(ValueError, match="num_experts_per_tok = 2"):
            t1x.run(load(EXPERIMENT, set=settings(tmp_path / "runs", sandboxes, *changes)))
    assert not (tmp_path / "runs").exists()


def test_its_config_loads_back_to_the_same_tree(run: Run) -> None:
    again = load(run.folder / "config.gin").root
    assert again == run.root.model_copy(update={"name": "quickstart"})


def test_its_checkpoints_are_the_start_and_the_last_step(run: Run) -> None:
    start, final = (load_pretrained(run.folder / "checkpoints" / name / "policy") for name in ("start", "step-2"))
    assert any(not torch.equal(a, b) for a, b in zip(start.parameters(), final.parameters(), strict=True))
    cold, trained = (load_pretrained(run.folder / "checkpoints" / name / "critic", ValueModel) for name in ("start", "step-2"))
    assert cold.score.weight.abs().sum() == 0 < trained.score.weight.abs().sum()


def test_its_report_can_be_read(run: Run) -> None:
    report = run.folder / "report"
    assert (report / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    transcripts = (report / "transcripts.md").read_text()
    assert "# Best" in transcripts
    assert "8 trials of the evaluations after step 2, " in transcripts
    scores = json.loads((report / "scores.json").read_text())
    last = next(s for s in scores if (s["policy"], s["suite"], s["mode"]) == ("step 2", "held_out", "greedy"))
    assert last["metrics"]["resolved_rate"] == run.history["eval/held_out/resolved_rate_greedy"][2]


def test_a_run_can_start_from_anothers_weights(run: Run, tmp_path: Path) -> None:
    start = run.folder / "checkpoints" / "step-2" / "policy"
    other = run_tiny(
        tmp_path,
        "Campaign.start = @CheckpointStart()",
        f"CheckpointStart.path = '{start}'",
        "Campaign.steps = 0",
        "Campaign.suites = []",
    )
    assert not [name for name in other.history if name.startswith("warmup/")]
    assert (other.folder / "checkpoints/start/policy/model.safetensors").read_bytes() == (start / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Without an evaluation."""
    return run_tiny(tmp_path_factory.mktemp("runs"), "Campaign.suites = []", "Campaign.scheduler = @WaitAll()")


def test_a_warm_up_changes_nothing_but_the_critic(silent: Run, tmp_path: Path) -> None:
    cold = run_tiny(tmp_path, "Campaign.suites = []", "Campaign.scheduler = @WaitAll()", "Campaign.critic_warmup = 0")
    assert silent.history["rollout/reward_mean"] == cold.history["rollout/reward_mean"], "the same tasks in every step"
    assert silent.history["rollout/loss_tokens"][1] == cold.history["rollout/loss_tokens"][1], "the same samples of the start"
    assert silent.history["critic/value_mean"][1] != cold.history["critic/value_mean"][1]


@pytest.mark.ci
def test_evaluating_never_changes_training(silent: Run, tmp_path: Path) -> None:
    """Nor where nothing is deterministic. (tests/e2e/test_evaluation_run.py compares to the bit.)"""
    watched = run_tiny(tmp_path, "Campaign.scheduler = @WaitAll()")
    one, other = (load_pretrained(each.folder / "checkpoints" / "start" / "policy") for each in (silent, watched))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert silent.history["rollout/reward_mean"] == watched.history["rollout/reward_mean"], "the same tasks in every step"
    for name in ("rollout/turns_mean", "rollout/loss_tokens"):  # later steps start from weights that rounding has moved apart
        assert silent.history[name][1] == watched.history[name][1], name
