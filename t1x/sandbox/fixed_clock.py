"""The clock of deterministic sandboxes: it stands still.

Bubblewrap can give a sandbox its own host name and network, but not its own time of day. So a library stands before libc in every
program of the sandbox (`fixed_clock.c`, compiled where the sandbox is built).
"""

import os
import random
import subprocess
from importlib.resources import files
from pathlib import Path

from t1x.sandbox.isolation import program

COMPILER = "cc"
NOW = "1577836800"
"""What `date +%s` prints in a deterministic sandbox: 2020-01-01 00:00:00 UTC."""
INSTALL = "apt-get install gcc libc6-dev: it makes the clock of deterministic sandboxes"
_LIBRARY, _PRELOAD = "fixed_clock.so", "ld.so.preload"
_SHOWN = 500
_COUNTERS = {"proc-uptime": b"1.00 1.00\n", "proc-loadavg": b"0.00 0.00 0.00 1/1 1\n"}
_NOISE, _NOISE_BYTES = "noise", 16 << 20
"""In place of the random devices, which never end; so much that commands hardly reach the end."""


def write_clock(etc: Path) -> None:
    """Puts the clock into a sandbox's /etc, for every program that starts there. Raises `ValueError` where it can't be compiled."""
    source = files("t1x.sandbox").joinpath("fixed_clock.c").read_text()
    argv = (program(COMPILER), "-shared", "-fPIC", "-O2", "-x", "c", "-o", str(etc / _LIBRARY), "-", "-ldl")
    run = subprocess.run(argv, input=source, capture_output=True, text=True)
    if run.returncode != 0:
        raise ValueError(f"the clock of deterministic sandboxes can't be compiled ({run.stderr[:_SHOWN].strip()}): {INSTALL}")
    (etc / _LIBRARY).chmod(0o755)
    (etc / _PRELOAD).write_text(f"/etc/{_LIBRARY}\n")
    (etc / _PRELOAD).chmod(0o644)
    for name, content in {**_COUNTERS, _NOISE: random.Random(0).randbytes(_NOISE_BYTES)}.items():
        (etc / name).write_bytes(content)
        (etc / name).chmod(0o644)


def fixed_files(etc: Path) -> tuple[str, ...]:
    """Bubblewrap's words that put files of ours in the place of the kernel's uptime, its load and its random devices."""
    places = {f"/{name.replace('-', '/')}": name for name in _COUNTERS} | {"/dev/random": _NOISE, "/dev/urandom": _NOISE}
    return tuple(word for place, name in places.items() for word in ("--ro-bind", str(etc / name), place))


def same_addresses() -> tuple[str, ...]:
    """The words before a command whose programs lie at the same addresses each time: bash and mktemp draw from those as well."""
    return (program("setarch"), os.uname().machine, "--addr-no-randomize")
