"""The bundled pool of synthetic shell tasks, made in memory from a seed.

Invariants:
- splits share no instance, whatever their seeds and sizes: a hash of what a task *is* (families, files, reference commands; not its
  wording nor the order of its parts) decides which split may hold it; `held_out_families` has families of its own;
- `pool[i]` is the same for the same seed, split and counts of sub-goals, whatever the size (unless the order is by quality);
- order and verifier change no task: the same pool holds the same ones in another order, or judged pass or fail;
- no two tasks of a pool are the same instance.
"""

import functools
import hashlib
import itertools
import random
from collections.abc import Iterator
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from t1x.config import Role
from t1x.tasks.assertions import to_json
from t1x.tasks.baseline import baseline
from t1x.tasks.families import HELD_OUT, TRAINED, Family, Instance, Scene
from t1x.tasks.pool import Pool, TaskPool
from t1x.tasks.task import SubGoal, Task, TaskFile

Split = Literal["demo", "train", "validation", "held_out", "held_out_families"]
Order = Literal["drawn", "quality"]

HASHED_SPLITS: tuple[Split, ...] = ("demo", "train", "validation", "held_out")
"""Share the instances of the trained families, a quarter each."""
MOST_COMMANDS = 6
ASSERTIONS = range(2, 9)
SUB_GOALS = (1, 2, 2, 3, 3)
"""Drawn from uniformly, but for counts that a pool leaves out: a fifth of all candidates has one sub-goal."""
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

    per_assertion: bool = True
    """Whether its verifiers report every assertion; else each reports one test, which passes only where all of them hold."""
    order: Order = "drawn"
    """`quality`: the tasks with the most assertions come first, as drawn where they have as many. A stand-in for the audited
    quality by which real pools are ranked (report, section 3.2): richer verifiers, and with them greater rewards, first."""
    sub_goals: Annotated[tuple[Literal[1, 2, 3], ...], Field(min_length=1)] = (1, 2, 3)
    """How many sub-goals a task may have; (3,) makes the longest tasks only."""

    def build(self) -> "SyntheticTasks":
        return SyntheticTasks(self)


class SyntheticTasks(TaskPool):
    """See the module's invariants. Tasks are made when they are first asked for; all at once where they are ranked."""

    def __init__(self, spec: SyntheticPool) -> None:
        self._spec = spec
        self._drawn = _drawn(spec)
        self._tasks: list[Task] = []

    def __len__(self) -> int:
        return self._spec.size

    def __getitem__(self, index: int) -> Task:
        if not 0 <= index < len(self):
            raise IndexError(f"task {index} of a pool of {len(self)}")
        if self._spec.order == "quality" and not self._tasks:
            all_drawn = itertools.islice(self._drawn, len(self))
            self._tasks = [task for _, task in sorted(all_drawn, key=lambda each: -each[0])]
        while len(self._tasks) <= index:
            self._tasks.append(next(self._drawn)[1])
        return self._tasks[index]


def _drawn(spec: SyntheticPool) -> Iterator[tuple[int, Task]]:
    """(how many assertions it has, the task), without end."""
    rng = random.Random(f"{spec.split}/{spec.seed}")
    families = HELD_OUT if spec.split == "held_out_families" else TRAINED
    counts = tuple(count for count in SUB_GOALS if count in spec.sub_goals)
    seen: set[bytes] = set()
    while True:
        parts = draw(rng, families, counts)
        digest = instance_digest(parts)
        if spec.split in (split_of(digest), "held_out_families") and digest not in seen:
            name = f"{spec.split}-{len(seen):06d}-{digest.hex()[:8]}"
            seen.add(digest)
            yield sum(len(part.assertions) for _, part in parts), assemble(name, parts, spec.per_assertion)


Parts = list[tuple[str, Instance]]
"""(family, its instance) in the order of the instruction."""


def draw(rng: random.Random, families: tuple[Family, ...], counts: tuple[int, ...]) -> Parts:
    """A candidate of as many different families as one of `counts`, within the bounds on commands and assertions."""
    while True:
        scene = Scene(rng)
        parts = [(family.__name__, family(scene)) for family in rng.sample(families, rng.choice(counts))]
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


def assemble(name: str, parts: Parts, per_assertion: bool = True) -> Task:
    """One task of independent sub-goals, whose verifier reports every assertion, or only whether all of them hold."""
    files = {path: body.encode() if isinstance(body, str) else body for _, part in parts for path, body in part.files.items()}
    assertions = [assertion for _, part in parts for assertion in part.assertions]
    assert len(files) == sum(len(part.files) for _, part in parts), f"two sub-goals of {name} share a file"
    return Task(
        name=name,
        instruction=" ; ".join(part.phrase for _, part in parts),
        environment=tuple(TaskFile(path, body) for path, body in sorted(files.items())),
        tests=(
            TaskFile("assertions.json", to_json(assertions, per_assertion)),
            TaskFile("test.sh", TEST_SCRIPT, 0o755),
            TaskFile("verify.py", verifier()),
        ),
        solution=tuple(SubGoal(family, part.commands, part.careless) for family, part in parts),
        families=tuple(family for family, _ in parts),
        difficulty=DIFFICULTY[len(parts)],
        assertions=len(assertions) if per_assertion else 1,
        agent_timeout=120.0,
        verifier_timeout=30.0,
        baseline=baseline(assertions, files, per_assertion),
    )
