"""What a family of shell work is: a function from the unused names of a task to one instance."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from t1x.tasks.assertions import Assertion

# fmt: off
WORDS = (
    "amber", "apple", "berry", "birch", "cedar", "coral", "daisy", "delta", "elm", "ember", "fern", "flint", "grape", "hazel",
    "iris", "jade", "kiwi", "lemon", "maple", "nutmeg", "olive", "peach", "quartz", "rose", "sage", "tulip", "umber", "violet",
    "walnut", "zinc",
)
# fmt: on
"""No word is part of another, so that grep finds whole words."""
FOLDERS = ("build", "cache", "data", "depot", "docs", "logs", "notes", "pack", "rack", "shelf", "store", "vault")


@dataclass(frozen=True, slots=True)
class Instance:
    """One sub-goal before it becomes part of a task."""

    phrase: str
    """Its part of the instruction."""
    commands: tuple[str, ...]
    """The reference solution, one command a turn."""
    assertions: tuple[Assertion, ...]
    """What holds afterwards; at least one of them doesn't before."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """What it needs in the work folder."""
    careless: tuple[str, ...] = ()
    """As people get it wrong; at least one assertion fails after it."""


class Scene:
    """The random stream of one task, and the names that no other sub-goal of it uses."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._files = rng.sample(WORDS, len(WORDS))
        self._folders = rng.sample(FOLDERS, len(FOLDERS))

    def file(self, extension: str = ".txt") -> str:
        return self._files.pop() + extension

    def files(self, count: int, extension: str = ".txt") -> list[str]:
        return [self.file(extension) for _ in range(count)]

    def folder(self) -> str:
        return self._folders.pop()

    def words(self, count: int) -> list[str]:
        """Different words, in random order."""
        return self.rng.sample(WORDS, count)

    def say(self, *phrases: str) -> str:
        return self.rng.choice(phrases)


def text(*lines: str) -> str:
    """The content of a file with these lines."""
    return "\n".join(lines) + "\n"


Family = Callable[[Scene], Instance]
"""Its name is the function's."""
