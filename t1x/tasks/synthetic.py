"""The bundled pool of synthetic shell tasks, made in memory from a seed.

Invariants:
- splits share no instance, whatever their seeds and sizes: a hash of what a task *is* (families, files, reference commands; not its
  wording nor the order of its parts) decides which split may hold it; `held_out_families` has families of its own;
- `pool[i]` is the same for the same seed and split, whatever the size;
- no two tasks of a pool are the same instance.
"""

import functools
import hashlib
import random
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from t1x.config import Role
from t1x.tasks.assertions import to_json
from t1x.tasks.families import HELD_OUT, TRAINED, Family, Instance, Scene
from t1x.tasks.pool import Pool, TaskPool
from t1x.tasks.task import SubGoal, Task, TaskFile

Split = Literal["demo", "train", "validation", "held_out", "held_out_families"]

HASHED_SPLITS: tuple[Split, ...] = ("demo", "train", "validation", "held_out")
"""Share the instances of the trained families, a quarter each."""
MOST_COMMANDS = 6
ASSERTIONS = range(2, 9)
SUB_GOALS = (1, 2, 2, 3, 3)
"""Drawn from uniformly: a fifth of all candidates has one sub-goal."""
DIFFICULTY = {1: "easy", 2: "medium", 3: "hard"}
TEST_SCRIPT = b"""#!/bin/bash
exec python3 -I -S -B /tests/verify.py
"""


class SyntheticPool(Pool):
    """Tasks of one to three sub-goals from families of shell work: short instructions, short commands, 2 to 8 assertions."""

    seed: int = Field(0, ge=0)
    """Of the random stream that the tasks come from. Another seed gives other tasks of the same split."""
    split: Split
    """Which instances: demo (for demonstrations), train, validation or held_out; held_out_families has families of its own."""
    size: Annotated[int, Role.SCALE] = Field(ge=1)
    """Number of tasks."""

    def build(self) -> "SyntheticTasks":
        return SyntheticTasks(self.seed, self.split, self.size)


class SyntheticTasks(TaskPool):
    """See the module's invariants. Tasks are made when they are first asked for."""

    def __init__(self, seed: int, split: Split, size: int) -> None:
        self._split = split
        self._size = size
        self._rng = random.Random(f"{split}/{seed}")
        self._families = HELD_OUT if split == "held_out_families" else TRAINED
        self._tasks: list[Task] = []
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Task:
        if not 0 <= index < self._size:
            raise IndexError(f"task {index} of a pool of {self._size}")
        while len(self._tasks) <= index:
            self._tasks.append(self._next())
        return self._tasks[index]

    def _next(self) -> Task:
        while True:
            parts = draw(self._rng, self._families)
            digest = instance_digest(parts)
            if self._split in (split_of(digest), "held_out_families") and digest not in self._seen:
                self._seen.add(digest)
                return assemble(f"{self._split}-{len(self._tasks):06d}-{digest.hex()[:8]}", parts)


Parts = list[tuple[str, Instance]]
"""(family, its instance) in the order of the instruction."""


def draw(rng: random.Random, families: tuple[Family, ...]) -> Parts:
    """A candidate: different families, within the bounds on commands and assertions."""
    while True:
        scene = Scene(rng)
        parts = [(family.__name__, family(scene)) for family in rng.sample(families, rng.choice(SUB_GOALS))]
        if (
            sum(len(part.assertions) for _, part in parts) in ASSERTIONS
            and sum(len(part.commands) for _, part in parts) <= MOST_COMMANDS
        ):
            return parts


def instance_digest(parts: Parts) -> bytes:
    """What the task is: equal for two tasks that differ in wording or order only."""
    identity = sorted((family, sorted(part.files.items()), part.commands) for family, part in parts)
    return hashlib.blake2b(repr(identity).encode(), digest_size=16).digest()


def split_of(digest: bytes) -> Split:
    """The one split that may hold this instance."""
    return HASHED_SPLITS[digest[0] % len(HASHED_SPLITS)]


@functools.cache
def verifier() -> bytes:
    """The verifier that every synthetic task ships."""
    return (resources.files("t1x.tasks") / "verify.py").read_bytes()


def assemble(name: str, parts: Parts) -> Task:
    """One task of independent sub-goals."""
    files = {path: body for _, part in parts for path, body in part.files.items()}
    assertions = [assertion for _, part in parts for assertion in part.assertions]
    assert len(files) == sum(len(part.files) for _, part in parts), f"two sub-goals of {name} share a file"
    return Task(
        name=name,
        instruction=" ; ".join(part.phrase for _, part in parts),
        environment=tuple(TaskFile(path, body.encode() if isinstance(body, str) else body) for path, body in sorted(files.items())),
        tests=(
            TaskFile("assertions.json", to_json(assertions)),
            TaskFile("test.sh", TEST_SCRIPT, 0o755),
            TaskFile("verify.py", verifier()),
        ),
        solution=tuple(SubGoal(family, part.commands, part.careless) for family, part in parts),
        families=tuple(family for family, _ in parts),
        difficulty=DIFFICULTY[len(parts)],
        assertions=len(assertions),
        agent_timeout=120.0,
        verifier_timeout=30.0,
    )
