"""Does warming the critic up pay? Two runs from the same start and with the same seed, with and without it, and one figure.

    python benchmarks/critic_warmup.py [--start RUN/checkpoints/start/policy] [--steps 8] [--seed 0]

Without `--start` the quickstart's start is made first.
"""

import argparse
import json
from pathlib import Path

import t1x
from t1x.config import load
from t1x.tracking.figures import study_curve

EXPERIMENT = "experiments/quickstart.gin"
METRIC = "critic/explained_variance"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, help="policy weights to start both runs from")
    parser.add_argument("--steps", type=int, default=8, help="training steps of each run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/critic_warmup.png"))
    arguments = parser.parse_args()
    common = [f"Campaign.seed = {arguments.seed}", "Campaign.suites = []"]
    start = arguments.start or _start(common)
    common += ["Campaign.start = @CheckpointStart()", f"CheckpointStart.path = '{start}'", f"Campaign.steps = {arguments.steps}"]
    curves = {}
    for name, batches in (("warm", 4), ("cold", 0)):
        folder = t1x.run(load(EXPERIMENT, set=[*common, f"Campaign.critic_warmup = {batches}"])).folder
        curves[f"{name} critic ({batches} warm-up batches)"] = _history(folder)
    study_curve(arguments.out, curves, 1, title=f"Critic from the same start, seed {arguments.seed}")
    print(f"{'step':>4}" + "".join(f"{name:>32}" for name in curves))
    for index, step in enumerate(next(iter(curves.values()))[0]):
        print(f"{step:>4}" + "".join(f"{_shown(values[index]):>32}" for _, values in curves.values()))
    print(f"figure: {arguments.out}")


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}"


def _start(common: list[str]) -> Path:
    folder = t1x.run(load(EXPERIMENT, set=[*common, "Campaign.steps = 0"])).folder
    return folder / "checkpoints" / "start" / "policy"


def _history(folder: Path) -> tuple[list[int], list[float | None]]:
    """(steps, explained variance before each step's critic update; None where all returns were equal)."""
    points = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    steps = [point for point in points if "critic/loss" in point["metrics"]]
    return [point["step"] for point in steps], [point["metrics"].get(METRIC) for point in steps]


if __name__ == "__main__":
    main()
