"""A pool is a sequence of tasks that always gives the same one for an index."""

import random
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from t1x.config import Role, Smoke
from t1x.tasks.pool import Pool
from t1x.tasks.task import SubGoal, Task, TaskFile

VERIFIER = b"""#!/bin/bash
there=failed right=failed passed=0
if test -f sum.txt; then there=passed; passed=1; fi
if test "$(cat sum.txt 2>/dev/null)" = "$(cat /tests/sum)"; then right=passed; passed=$((passed + 1)); fi
cat >/logs/verifier/ctrf.json <<END
{"results": {"tool": {"name": "sum"},
  "summary": {"tests": 2, "passed": $passed, "failed": $((2 - passed)), "skipped": 0, "pending": 0, "other": 0,
              "start": 0, "stop": 1},
  "tests": [{"name": "sum.txt is there", "status": "$there", "duration": 0},
            {"name": "sum.txt holds the sum", "status": "$right", "duration": 0}]}}
END
"""


class SumPool(Pool):
    """Tasks that ask for the sum of two numbers in a file."""

    size: Annotated[int, Role.SCALE, Field(ge=1), Smoke(4)]
    """Number of tasks."""
    largest: Annotated[int, Field(ge=1)] = 99
    """The largest number that is added."""

    def build(self) -> "Sums":
        return Sums(self.size, self.largest)


class Sums(Sequence[Task]):
    """The tasks, each made when it is asked for."""

    def __init__(self, size: int, largest: int) -> None:
        self._size = size
        self._largest = largest

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Task:  # type: ignore[override]  # no slices
        if not 0 <= index < self._size:
            raise IndexError(f"task {index} of a pool of {self._size}")
        numbers = random.Random(index)
        a, b = numbers.randint(0, self._largest), numbers.randint(0, self._largest)
        return Task(
            name=f"sum-{index:04d}",
            instruction=f"write {a} + {b} to sum.txt",
            environment=(),
            tests=(TaskFile("test.sh", VERIFIER, 0o755), TaskFile("sum", f"{a + b}\n".encode())),
            solution=(SubGoal("sum", (f"echo $(({a} + {b})) > sum.txt",)),),
            families=("sum",),
            difficulty="easy",
            assertions=2,
            agent_timeout=60.0,
            verifier_timeout=10.0,
        )
