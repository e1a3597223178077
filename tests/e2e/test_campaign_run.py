"""A whole campaign, every part real: sandboxes, verifier, engine, trainer, MLflow."""

import json
from pathlib import Path

import mlflow
import pytest
import torch
from tiny import settings

from t1x.campaign.run import run_campaign
from t1x.config import load
from t1x.model.checkpoint import load_pretrained
from t1x.model.value import ValueModel


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, dict[int, float]]]:
    """(run folder, folder of sandboxes, metric to its values by step)"""
    runs, sandboxes = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("sandboxes")
    folder = run_campaign(load("experiments/quickstart.gin", set=settings(runs, sandboxes)))
    client = mlflow.MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")
    (found,) = client.search_runs([client.get_experiment_by_name("t1x").experiment_id])
    assert found.info.status == "FINISHED"
    history = {name: {m.step: m.value for m in client.get_metric_history(found.info.run_id, name)} for name in found.data.metrics}
    assert found.data.params["reward.class"] == "TestCountReward"
    return folder, sandboxes, history


def test_it_logs_what_a_campaign_is_judged_by(run) -> None:
    _, _, history = run
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
        assert sorted(history[name]) == [1, 2], name
    for name in ("eval/held_out/resolved_rate", "eval/held_out/resolved_rate_greedy"):
        assert sorted(history[name]) == [0, 2], name
    assert sorted(history["eval/validation/resolved_rate_greedy"]) == [0, 1, 2]
    assert sorted(history["untrained/held_out/resolved_rate"]) == [0]


def test_the_same_policy_in_sampler_and_trainer_agrees(run) -> None:
    _, _, history = run
    assert max(history["mismatch/engine_gap"].values()) < 1e-5
    assert set(history["mismatch/version_skew"].values()) == {0.0}
    assert set(history["fidelity/own_turn_violations"].values()) == {0.0}
    assert set(history["fidelity/context"].values()) == {1.0}


def test_it_leaves_no_sandbox(run) -> None:
    _, sandboxes, _ = run
    assert list(sandboxes.iterdir()) == []


def test_its_config_loads_back_to_the_same_tree(run) -> None:
    folder, sandboxes, _ = run
    assert load(folder / "config.gin").root == load("experiments/quickstart.gin", set=settings(folder.parent, sandboxes)).root


def test_its_checkpoints_are_the_start_and_the_last_step(run) -> None:
    folder, _, _ = run
    start, final = (load_pretrained(folder / "checkpoints" / name / "policy") for name in ("start", "final"))
    assert any(not torch.equal(a, b) for a, b in zip(start.parameters(), final.parameters(), strict=True))
    critic = load_pretrained(folder / "checkpoints" / "final" / "critic", ValueModel)
    assert critic.score.weight.abs().sum() > 0


def test_its_report_can_be_read(run) -> None:
    folder, _, history = run
    report = folder / "report"
    assert (report / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert "# Best" in (report / "transcripts.md").read_text()
    scores = json.loads((report / "scores.json").read_text())
    last = next(s for s in scores if (s["policy"], s["suite"], s["mode"]) == ("step 2", "held_out", "greedy"))
    assert last["metrics"]["resolved_rate"] == history["eval/held_out/resolved_rate_greedy"][2]


def test_a_run_can_start_from_anothers_weights(run, tmp_path: Path) -> None:
    folder, _, _ = run
    start = folder / "checkpoints" / "final" / "policy"
    changes = (
        "Campaign.start = @CheckpointStart()",
        f"CheckpointStart.path = '{start}'",
        "Campaign.steps = 0",
        "Campaign.suites = []",
        "Campaign.critic_warmup = 0",
    )
    sandboxes = tmp_path / "sandboxes"
    sandboxes.mkdir()
    other = run_campaign(load("experiments/quickstart.gin", set=settings(tmp_path / "runs", sandboxes, *changes)))
    assert (other / "checkpoints/start/policy/model.safetensors").read_bytes() == (start / "model.safetensors").read_bytes()


def test_evaluating_never_changes_training(run, tmp_path: Path) -> None:
    folder, _, _ = run
    sandboxes = tmp_path / "sandboxes"
    sandboxes.mkdir()
    silent = run_campaign(load("experiments/quickstart.gin", set=settings(tmp_path / "runs", sandboxes, "Campaign.suites = []")))
    last, other = (load_pretrained(path / "checkpoints" / "final" / "policy") for path in (folder, silent))
    assert all(torch.equal(a, b) for a, b in zip(last.parameters(), other.parameters(), strict=True))
