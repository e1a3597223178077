"""Random streams that depend on what they are for, and on nothing else."""

import json
from hashlib import blake2b


def stream(*keys: int | str) -> int:
    """A 64-bit seed for the stream of `keys`, e.g. (campaign seed, "sample", step, trial, turn): the same in every process and on
    every machine, and unrelated between different keys."""
    return int.from_bytes(blake2b(json.dumps(keys).encode(), digest_size=8).digest(), "little")
