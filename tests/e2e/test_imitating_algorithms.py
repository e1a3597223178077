"""Campaigns whose algorithm imitates: demonstrations, and the policy's own successes."""

import json
from pathlib import Path

import pytest
import starting
from open_folder import open_folder
from stores import with_store

import t1x

LINES = ("include 'registry/models/tiny_moe.gin'", "Campaign.start = @ScratchStart()", "Campaign.steps = 2")
SFT = ("SFT.demonstrations = @MixedDemonstrations()", "SFT.optimizer = @Adam()", "ShellHarness.max_turns = 8")
RAFT = (
    "RejectionSampling.optimizer = @Adam()",
    "RejectionSampling.attempts = 2",
    "RejectionSampling.threshold = 0.1",
    "Campaign.scheduler = @WholeGroups()",
)


def steps(folder: Path, algorithm: str, *lines: str) -> tuple[list[dict[str, float]], set[str]]:
    """Metrics of each training step, and the networks of the last checkpoint."""
    file = starting.write(folder, "campaign", *LINES, *lines)
    text = [line for line in file.read_text().splitlines() if not line.startswith("PPO.")]
    file.write_text("\n".join(text).replace("@PPO()", f"@{algorithm}()") + "\n")
    with open_folder() as sandboxes:
        places = [f"Campaign.runs = '{with_store(folder / 'runs')}'", f"BubblewrapSandbox.root = '{sandboxes}'"]
        run = t1x.run(t1x.load(file, site=None, set=places))
    logged = [json.loads(line)["metrics"] for line in (run.folder / "log.jsonl").read_text().splitlines()]
    assert run.weights is not None
    return [each for each in logged if "actor/loss" in each], {path.name for path in run.weights.iterdir() if path.is_dir()}


@pytest.mark.parametrize(("algorithm", "lines"), [("SFT", SFT), ("RejectionSampling", RAFT)])
def test_it_trains_the_policy_alone_without_a_ratio(tmp_path: Path, algorithm: str, lines: tuple[str, ...]) -> None:
    trained, kept = steps(tmp_path, algorithm, *lines)
    assert len(trained) == 2
    for metrics in trained:
        assert metrics["actor/grad_norm"] > 0
        assert 0 < metrics["rollout/usable"] <= 4
        assert not [name for name in metrics if name.startswith(("critic/", "mismatch/", "actor/ratio"))]
    assert kept == {"policy", "state"}
