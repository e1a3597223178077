"""The quickstart in a form that takes seconds: every part is the real one, only the sizes are small."""

from pathlib import Path

SIZES = (
    "demo/SyntheticPool.size = 12",
    "train/SyntheticPool.size = 40",
    "SupervisedStart.verified = 4",
    "Supervised.steps = 4",
    "Supervised.batch = 8",
    "Campaign.steps = 2",
    "Campaign.batch = 8",
    "Campaign.critic_warmup = 1",
    "ShellHarness.max_turns = 3",
    "validation/PoolSuite.greedy = 2",
    "validation/PoolSuite.every = 1",
    "held_out/PoolSuite.greedy = 2",
    "held_out/PoolSuite.sampled = 2",
    "new_families/PoolSuite.greedy = 2",
)


def settings(runs: Path, sandboxes: Path, *more: str) -> list[str]:
    """`--set` texts for a run that keeps everything below the two folders."""
    return [
        *SIZES,
        f"Campaign.runs = '{runs}'",
        "Campaign.sandbox = @BubblewrapSandbox()",
        f"BubblewrapSandbox.root = '{sandboxes}'",
        *more,
    ]


def command_line(runs: Path, sandboxes: Path, *more: str) -> list[str]:
    """The same as arguments of `t1x run`."""
    arguments = ["experiments/quickstart.gin"]
    for text in settings(runs, sandboxes, *more):
        arguments += ["--set", text]
    return arguments
