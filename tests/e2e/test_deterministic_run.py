"""A deterministic campaign comes out the same, to the bit, however its trials interleave."""

import asyncio
import json
import random
from pathlib import Path

import pytest
from open_folder import open_folder
from stores import with_store
from tiny import settings

import t1x
from t1x.config import load
from t1x.sandbox.local_host import LocalHost
from t1x.sandbox.local_lease import LocalLease
from t1x.tasks.task import Task

SMALLER = (
    "Campaign.deterministic = True",
    "Campaign.steps = 2",
    "Oversample.ratio = 1.5",
    "ReplayRouting.update = 'replay_with_grad'",
    "Campaign.router = @ReplayRouting()",
    "train/SyntheticPool.size = 20",
    "demo/SyntheticPool.size = 6",
    "SupervisedStart.verified = 2",
    "Supervised.steps = 2",
    "Campaign.batch = 6",
    "Campaign.critic_warmup = 0",
    "held_out/PoolSuite.greedy = 0",
    "held_out/PoolSuite.sampled = 2",
    "new_families/PoolSuite.greedy = 0",
    "validation/PoolSuite.greedy = 2",
)


def run(folder: Path, *changes: str) -> tuple[list[dict[str, object]], dict[str, bytes]]:
    """Logged metrics but those of time, and the last weights, file by file."""
    folder.mkdir()
    with open_folder() as sandboxes:
        recorded = t1x.run(load("experiments/quickstart.gin", set=settings(with_store(folder), sandboxes, *SMALLER, *changes)))
    lines = [json.loads(line) for line in (recorded.folder / "log.jsonl").read_text().splitlines()]
    logged = [
        {"step": line["step"], **{name: value for name, value in line["metrics"].items() if not _is_time(name)}} for line in lines
    ]
    assert recorded.weights is not None
    return logged, {
        str(path.relative_to(recorded.weights)): path.read_bytes() for path in sorted(recorded.weights.rglob("*.safetensors"))
    }


def _is_time(name: str) -> bool:
    return "time/" in name


def slow_down(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Sandboxes that take their time, each as long as it happens."""
    create, execute, chance = LocalHost.create, LocalLease.exec, random.Random(seed)

    async def slow_create(self: LocalHost, task: Task) -> LocalLease:
        await asyncio.sleep(chance.random() * 0.05)
        return await create(self, task)

    async def slow_exec(self: LocalLease, command: str, timeout: float) -> object:
        await asyncio.sleep(chance.random() * 0.05)
        return await execute(self, command, timeout)

    patch.setattr(LocalHost, "create", slow_create)
    patch.setattr(LocalLease, "exec", slow_exec)


@pytest.mark.ci
def test_two_runs_are_equal_to_the_bit_however_their_trials_interleave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged, weights = run(tmp_path / "one", "Campaign.concurrency = 3")
    slow_down(monkeypatch, 1)
    slowly_logged, slow_weights = run(tmp_path / "two", "Campaign.concurrency = 40")
    assert len(logged) > 5
    assert any("rollout/retention/length/below_64" in line for line in logged), "it oversamples"
    for line, slow_line in zip(logged, slowly_logged, strict=True):
        assert {name: value for name, value in line.items() if slow_line.get(name) != value} == {}
        assert set(line) == set(slow_line)
    assert {name.partition("/")[0] for name in weights} == {"policy", "critic", "state"}
    assert weights == slow_weights
