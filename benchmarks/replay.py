"""Claim: routing replay makes a training step of the actor at most 5 % slower, and its record is a fifth of what engines send.

python benchmarks/replay.py [--pairs N]

README has the figures of 120 pairs, which is the default, on a machine that does nothing else.

A step is what the torch trainer does with a rollout batch: the behaviour pass and the update, forward and backward, called as in a
run. The record holds the experts that the network chooses freely, so that both kinds of step send every token through the same
ones. Steps with and without replay come in pairs, in random order, on one thread; what is measured is CPU time. `quickstart` is the
quickstart's model and half of its first batch, once with activations recomputed; `larger` has 8 layers of 32 experts, 8 of them for
a token.

The ratio is the Hodges-Lehmann estimate over pairs, the median of all means of two log ratios, with Wilcoxon's interval. As the
order is drawn, two equal sides have log ratios as likely above 0 as below by the same amount, whatever else the machine does, and
the interval needs nothing more. A mean of ratios exceeds 1 for two equal sides, by the square of a side's relative scatter, and
follows the few steps that the machine disturbed most.

Bytes a token: of a record in memory, in a Parquet file of stored trials (what the file grows by), and of the same rows as base64 of
int32, as engines send them.
"""

import argparse
import base64
import gc
import math
import random
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from t1x.campaign.campaign import Campaign
from t1x.config import load
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.router import FreeRouting, ReplayRouting, Router
from t1x.model.transformer import MoeTransformer
from t1x.training.batch import Batch
from t1x.training.grpo import GRPO
from t1x.training.optimizer import Adam
from t1x.training.trainer import TorchTrainer, TrainerWorker
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Trajectory, VersionSpan
from t1x.trajectory.storage_writer import TrialWriter
from t1x.trajectory.stored import StoredTrial

ROLLOUT = Path(__file__).parent / "data" / "quickstart_rollout.npz"
LARGER = {"hidden_size": 256, "num_hidden_layers": 8, "num_experts": 32, "num_experts_per_tok": 8}
STEADY = Adam(lr=1e-12)
"""So small a rate that the weights, and with them the free choices, stay those of the record."""
AIM = 1.05


def quickstart_model() -> Qwen3Moe:
    root = load("experiments/quickstart.gin").root
    assert isinstance(root, Campaign)
    assert isinstance(root.model, Qwen3Moe)
    return root.model


@torch.no_grad()
def rollout(policy: MoeTransformer, samples: int) -> Batch:
    """The quickstart's first trials, routed as this policy routes."""
    with np.load(ROLLOUT) as stored:
        ends = np.cumsum(stored["lengths"])[:-1]
        streams = zip(*(np.split(stored[name], ends) for name in ("token_ids", "loss_mask", "logprobs")), strict=True)
        made = []
        for ids, mask, logprobs in list(streams)[:samples]:
            experts = policy(torch.from_numpy(ids[:-1]).long(), lengths=[len(ids) - 1]).routed_experts
            rows = experts.numpy().astype(policy.config.routing_layout.dtype)
            span = (VersionSpan(0, len(ids), 0),)
            made.append(Trajectory(ids.astype(np.int32), mask, logprobs.astype(np.float32), rows, span, (), 1.0))
        return Batch(made, stored["rewards"][:samples], np.arange(samples), seed=0)


def seconds(trainer: TrainerWorker, batch: Batch, router: Router) -> float:
    """CPU time of one step. The batch is made anew, so that its records are looked at as in a run."""
    fresh, advantages = replace(batch), np.ones(batch.loss_tokens)
    gc.collect()
    begun = time.process_time()
    behaviour = trainer.log_probs(fresh, router.behaviour)
    trainer.update_actor(fresh, advantages, behaviour, router.update)
    return time.process_time() - begun


def compare(name: str, model: Qwen3Moe, samples: int, pairs: int, recompute: bool = False) -> Batch:
    """Prints the ratio of steps with replay to those without."""
    policy = model.build(seed=0)
    batch = rollout(policy, samples)
    trainer = TorchTrainer(recompute=recompute).build(policy, None, GRPO(optimizer=STEADY))
    sides = {"free": FreeRouting(), "replayed": ReplayRouting()}
    times: dict[str, list[float]] = {side: [] for side in sides}
    order = random.Random(0)
    for pair in range(pairs + 1):  # the first warms up
        for side in order.sample(list(sides), 2):
            taken = seconds(trainer, batch, sides[side])
            if pair:
                times[side].append(taken)
    ratio, low, high = shift(np.log(times["replayed"]) - np.log(times["free"]))
    tokens = int(batch.lengths.sum())
    print(
        f"{name}: {tokens} tokens, free {statistics.median(times['free']):.3f} s, "
        f"replayed {statistics.median(times['replayed']):.3f} s; ratio {ratio:.4f}, 95 % interval {low:.4f} to {high:.4f} "
        f"({pairs} pairs; aim: at most {AIM}, {'reached' if high <= AIM else 'missed'})",
        flush=True,
    )
    return batch


def shift(logs: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """What log ratios [n] lie around, as a ratio, and its 95 % interval (Hodges and Lehmann 1963; Wilcoxon's signed ranks, as
    normally distributed)."""
    n = len(logs)
    means = np.sort(((logs[:, None] + logs) / 2)[np.triu_indices(n)])
    spread = statistics.NormalDist().inv_cdf(0.975) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    at = max(0, math.floor(n * (n + 1) / 4 - spread))
    ratio, low, high = np.exp([np.median(means), means[at], means[-1 - at]]).tolist()
    return ratio, low, high


def report_bytes(name: str, batch: Batch) -> None:
    """Prints what a token's record takes."""
    tokens = int(batch.lengths.sum())
    rows = np.concatenate([trajectory.routed_experts for trajectory in batch.trajectories])
    sent = len(base64.b64encode(rows.astype("<i4").tobytes()))
    stored = _file_size(batch, routing=True) - _file_size(batch, routing=False)
    print(
        f"{name}: {rows.shape[1]} layers x {rows.shape[2]}, bytes a token: {rows.nbytes / tokens:.1f} in memory, "
        f"{stored / tokens:.1f} stored, {sent / tokens:.1f} as base64 of int32; ratio {sent / rows.nbytes:.2f} in memory, "
        f"{sent / stored:.2f} stored",
        flush=True,
    )


def _file_size(batch: Batch, routing: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.parquet"
        with TrialWriter(path, {"purpose": "benchmark"}, routing) as writer:
            for index, trajectory in enumerate(batch.trajectories):
                writer.add(StoredTrial(str(index), "task", EndedBy.DONE, 1.0, True, (), (trajectory,)))
        return path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=120, help="of steps with and without replay")
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    model = quickstart_model()
    larger = Qwen3Moe(**{**model.model_dump(), **LARGER})
    report_bytes("quickstart", compare("quickstart", model, 32, pairs))
    compare("quickstart, recomputed", model, 32, pairs, recompute=True)
    report_bytes("larger", compare("larger", larger, 8, pairs))


if __name__ == "__main__":
    main()
