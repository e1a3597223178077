"""Claim: the command line answers without paying for what it doesn't use.

CPU time (user and system, of the child process) of `t1x --help` and of the commands that only read, against `import torch` alone in
the same Python: what any command would cost that imports the trainer. Runs are interleaved, medians are compared.

    python benchmarks/startup.py [RUNS]
"""

import os
import statistics
import subprocess
import sys

FILE = "experiments/dense_t1_15k.gin"
T1X = {
    "--help": [],
    "show": [FILE],
    "list": [],
    "diff": [f"{FILE}@laptop", f"{FILE}@laptop"],
    "check": [FILE],
    "schema": [],
}
COMMANDS = {f"t1x {name}": ["-m", "t1x.cli", name, *arguments] for name, arguments in T1X.items()} | {
    "import torch": ["-c", "import torch"],
}
BASE = "import torch"


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one run of this Python."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def main(runs: int) -> None:
    for arguments in COMMANDS.values():
        cpu_seconds(arguments)  # fills the caches of the file system
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            times[name].append(cpu_seconds(arguments))
    base = statistics.median(times[BASE])
    print(f"{'CPU seconds, median of ' + str(runs):26}{'median':>8}{'least':>8}{'most':>8}  of `{BASE}`")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:26}{median:8.2f}{min(values):8.2f}{max(values):8.2f}  {median / base:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
