"""Claim: a PPO update is faster here than on the same model through transformers.

V_old, behaviour log-probabilities, the critic's update and the actor's, on the same weights, data and objective; the losses of both
are compared. transformers runs a plain loop over right-padded micro-batches, ours packed ones. One thread, float32, CPU time,
median of interleaved runs, each in a process of its own, whose peak memory stands beside it.

The ragged batch is the first one that the quickstart trains on (data/quickstart_rollout.npz: 64 trials, 20 to 256 tokens).
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from t1x.model.checkpoint import load_pretrained, save_pretrained
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.router import RouterMode
from t1x.model.value import ValueModel
from t1x.training.batch import Batch
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO
from t1x.training.trainer import TorchTrainer
from t1x.trajectory.records import Trajectory, VersionSpan

MODEL = Qwen3Moe(
    vocab_size=700,
    hidden_size=128,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=4,
    head_dim=32,
    num_experts=8,
    num_experts_per_tok=2,
    moe_intermediate_size=64,
    tie_word_embeddings=True,
    max_position_embeddings=256,
)
ROLLOUT = Path(__file__).parent / "data" / "quickstart_rollout.npz"
ADAM = Adam(lr=1e-4, weight_decay=0.0)
ALGORITHM = PPO(actor_optimizer=ADAM, critic_optimizer=ADAM)
AIMS = {"ragged": 1.5, "equal": 1.0}
PADDED_SAMPLES = {"ragged": 4, "equal": 16}
"""Samples of one padded micro-batch; of 1 to 64 the fastest for transformers."""
RUNS = 7


def ragged() -> Batch:
    """The stored rollout batch."""
    with np.load(ROLLOUT) as stored:
        parts = {name: np.split(stored[name], np.cumsum(stored["lengths"])[:-1]) for name in ("token_ids", "loss_mask", "logprobs")}
        rewards, trials = stored["rewards"], stored["trials"]
    return Batch([_trajectory(*streams) for streams in zip(*parts.values(), strict=True)], rewards, trials, seed=0)


def equal() -> Batch:
    """32 samples of 128 positions, of which a third carries loss."""
    random = np.random.default_rng(0)
    masks = [(np.arange(129) % 12 >= 8) for _ in range(32)]
    made = [
        _trajectory(random.integers(0, MODEL.vocab_size, 129), mask, np.where(mask, -random.exponential(size=129), 0))
        for mask in masks
    ]
    return Batch(made, random.integers(0, 2, 32), np.arange(32), seed=0)


BATCHES = {"ragged": ragged, "equal": equal}


def _trajectory(token_ids: np.ndarray, loss_mask: np.ndarray, logprobs: np.ndarray) -> Trajectory:
    routing = np.zeros((len(token_ids) - 1, MODEL.num_hidden_layers, MODEL.num_experts_per_tok), np.uint8)
    span = VersionSpan(0, len(token_ids), 0)
    return Trajectory(token_ids.astype(np.int32), loss_mask, logprobs.astype(np.float32), routing, (span,), (), 1.0)


def ours(folder: Path, _case: str) -> Callable[[Batch], tuple[float, float]]:
    """One update by our trainer: losses of critic and actor."""
    trainer = TorchTrainer().build(load_pretrained(folder / "actor"), load_pretrained(folder / "critic", ValueModel), ALGORITHM)

    def update(batch: Batch) -> tuple[float, float]:
        values, behaviour = trainer.values(batch), trainer.log_probs(batch, RouterMode.FREE)
        advantages, returns = ALGORITHM.advantages(batch, values)
        critic = trainer.update_critic(batch, values, returns)
        return critic["critic/loss"], trainer.update_actor(batch, advantages, behaviour, RouterMode.FREE)["actor/loss"]

    return update


def theirs(folder: Path, case: str) -> Callable[[Batch], tuple[float, float]]:
    """The same through transformers."""
    from transformers import Qwen3MoeForCausalLM, Qwen3MoeForTokenClassification

    actor = Qwen3MoeForCausalLM.from_pretrained(folder / "actor")
    critic = Qwen3MoeForTokenClassification.from_pretrained(folder / "critic")
    optimizers = [
        torch.optim.AdamW(model.parameters(), lr=ADAM.lr, betas=ADAM.betas, eps=ADAM.eps, weight_decay=0.0, fused=True)
        for model in (actor, critic)
    ]

    def logprobs(ids: Tensor, mask: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        logits = actor(input_ids=ids[:, :-1], attention_mask=mask[:, :-1], use_cache=False).logits[keep[:, 1:]]
        every = logits.log_softmax(-1)
        with torch.no_grad():
            entropy = -(every.exp() * every).sum(-1)
        return every.gather(1, ids[:, 1:][keep[:, 1:]][:, None])[:, 0], entropy

    def values(ids: Tensor, mask: Tensor, keep: Tensor) -> Tensor:
        logits = critic(input_ids=ids[:, :-1], attention_mask=mask[:, :-1], use_cache=False).logits
        return logits[..., 0][keep[:, 1:]]

    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), ADAM.clip_norm)
        optimizer.step()
        optimizer.zero_grad()

    def update(batch: Batch) -> tuple[float, float]:
        size = PADDED_SAMPLES[case]
        micros = [_padded(batch, slice(at, at + size)) for at in range(0, len(batch.trajectories), size)]
        with torch.no_grad():
            old_values = torch.cat([values(*micro) for micro in micros])
            behaviour = torch.cat([logprobs(*micro)[0] for micro in micros])
        advantages, returns = (
            torch.from_numpy(vector).float() for vector in ALGORITHM.advantages(batch, old_values.double().numpy())
        )
        sizes, losses = [int(keep.sum()) for _, _, keep in micros], [0.0, 0.0]
        for micro, v, r in zip(micros, old_values.split(sizes), returns.split(sizes), strict=True):
            now = values(*micro)
            clipped = v + (now - v).clamp(-0.2, 0.2)
            loss = torch.maximum((now - r) ** 2, (clipped - r) ** 2).sum() / batch.loss_tokens
            loss.backward()
            losses[0] += loss.item()
        step(critic, optimizers[1])
        for micro, o, a in zip(micros, behaviour.split(sizes), advantages.split(sizes), strict=True):
            ratio = (logprobs(*micro)[0] - o).exp()
            loss = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a).sum() / batch.loss_tokens
            loss.backward()
            losses[1] += loss.item()
        step(actor, optimizers[0])
        return losses[0], losses[1]

    return update


def _padded(batch: Batch, samples: slice) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids, attention mask and loss mask [b, T] of some samples, right-padded."""
    trajectories = batch.trajectories[samples]
    width = max(len(trajectory.token_ids) for trajectory in trajectories)
    ids, mask, keep = (torch.zeros(len(trajectories), width, dtype=kind) for kind in (torch.long, torch.long, torch.bool))
    for row, trajectory in enumerate(trajectories):
        n = len(trajectory.token_ids)
        ids[row, :n], mask[row, :n], keep[row, :n] = (
            torch.from_numpy(trajectory.token_ids),
            1,
            torch.from_numpy(trajectory.loss_mask),
        )
    return ids, mask, keep


def serve(side: str, folder: Path, case: str) -> None:
    """Runs one update for each line that arrives and answers with seconds, losses and memory."""
    torch.set_num_threads(1)
    update, batch = {"ours": ours, "theirs": theirs}[side](folder, case), BATCHES[case]()
    resident = _resident()
    for _ in sys.stdin:
        begun = time.process_time()
        losses = update(batch)
        seconds = time.process_time() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": seconds, "losses": losses, "peak": peak, "grown": peak - resident}), flush=True)


def _resident() -> float:
    """MiB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def compare(folder: Path, case: str) -> None:
    sides = {}
    for side in ("ours", "theirs"):
        command = [sys.executable, __file__, "--serve", side, str(folder), case]
        sides[side] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    answers: dict[str, list[dict]] = {side: [] for side in sides}
    for _ in range(1 + RUNS):  # the first warms up
        for side, process in sides.items():
            assert process.stdin is not None
            assert process.stdout is not None
            print(file=process.stdin, flush=True)
            answers[side].append(json.loads(process.stdout.readline()))
    for process in sides.values():
        process.communicate()
    np.testing.assert_allclose(answers["ours"][0]["losses"], answers["theirs"][0]["losses"], atol=1e-4, err_msg="losses differ")
    tokens = int(BATCHES[case]().lengths.sum())
    seconds = {side: statistics.median(answer["seconds"] for answer in found[1:]) for side, found in answers.items()}
    for side, found in answers.items():
        memory = f"peak {found[-1]['peak']:.0f} MiB, {found[-1]['grown']:.0f} of them while updating"
        print(f"  {side:>6}: {seconds[side]:.3f} s, {tokens / seconds[side]:,.0f} tokens/s, {memory}")
    ratio = seconds["theirs"] / seconds["ours"]
    print(f"{case}: ratio {ratio:.2f} (aim {AIMS[case]}), {tokens} tokens, losses agree", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", nargs=3, metavar=("SIDE", "FOLDER", "CASE"), help=argparse.SUPPRESS)
    if serving := parser.parse_args().serve:
        return serve(serving[0], Path(serving[1]), serving[2])
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(MODEL.build(seed=0), Path(folder) / "actor")
        critic = MODEL.build_value(seed=1)
        torch.nn.init.normal_(critic.score.weight, std=0.1, generator=torch.Generator().manual_seed(2))
        save_pretrained(critic, Path(folder) / "critic")
        for case in BATCHES:
            compare(Path(folder), case)
    return None


if __name__ == "__main__":
    main()
