"""The log-probability gap of a trained policy: sampler's precision × routing replay, on the same trajectories.

python benchmarks/gap.py [RUN/checkpoints/step-30/policy] [--tasks 200] [--seed 0]

Without a policy, the newest one in runs/.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Literal

import torch

from t1x.campaign.assembly import first, named, trial_runner
from t1x.campaign.campaign import Campaign
from t1x.campaign.gap import Gap, measure_gap
from t1x.config import load
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding
from t1x.model.checkpoint import load_pretrained, to_hf
from t1x.model.router import RouterMode
from t1x.model.value import ValueModel

EXPERIMENT = "experiments/quickstart.gin"
MODES = (RouterMode.FREE, RouterMode.REPLAY_NO_GRAD)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path, nargs="?", help="folder of a policy's weights")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    policy = arguments.policy or _newest()
    torch.set_num_threads(1)
    root = load(EXPERIMENT, set=[f"Campaign.seed = {arguments.seed}"]).root
    assert isinstance(root, Campaign)
    print(f"{policy}: {arguments.tasks} trials at temperature 1, seed {arguments.seed}; mean |o - q| ± standard error over trials")
    for dtype in ("float32", "bfloat16"):
        free, replayed = asyncio.run(_measure(root, policy, dtype, arguments.tasks))
        print(
            f"{dtype:>9} sampler: own routing {free.mean:.2e} ± {free.stderr:.1e}, "
            f"replayed {replayed.mean:.2e} ± {replayed.stderr:.1e}, "
            f"ratio {free.mean / replayed.mean:.2f}  ({free.loss_tokens} tokens, {free.own_turn_violations} own-turn violations)"
        )


def _newest() -> Path:
    found = sorted(Path("runs").glob("*/checkpoints/step-*/policy"), key=lambda path: path.stat().st_mtime)
    if not found:
        sys.exit("no trained policy in runs/; run `make quickstart` first or name the folder of one")
    return found[-1]


async def _measure(campaign: Campaign, path: Path, dtype: Literal["float32", "bfloat16"], tasks: int) -> list[Gap]:
    policy = load_pretrained(path)
    trainer = campaign.trainer.build(policy, ValueModel(policy.config), campaign.algorithm)
    engine = EmbeddedEngine(dtype=dtype).build(policy.config, to_hf(policy))
    host = campaign.sandbox.build()
    try:
        run = trial_runner(campaign, host, campaign.tokenizer.build(), engine, "gap", 0, Decoding(1.0))
        trials = named("gap", 0, first(campaign.pool.build(), tasks))
        return await measure_gap(trials, run, trainer, MODES, campaign.concurrency)
    finally:
        await engine.close()
        await host.close()


if __name__ == "__main__":
    main()
