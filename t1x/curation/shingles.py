"""Text of a task as shingles: one word, or two words in a row.

What a copy changes first plays no part: upper case, the digits of numbers, and names of files and folders but for their extension.
Words of a snake_case name are words, and so are operators of the shell.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from t1x.tasks.task import Task, TaskFile

FIELDS = ("instruction", "tests", "solution")

_PATH = re.compile(r"[\w.~+-]*/[\w.~+/-]*|\w[\w-]*(?:\.\w[\w-]*)+")
_WORD = re.compile(r"[^\W\d_]+|\d+|[<>|&]+")
_SHARED, _FEWEST = 0.1, 4
"""A file that stands in more than this share of the tasks, and in at least so many, is furniture of the pool."""


def shingles(text: str) -> list[str]:
    """All different ones, in no order in particular."""
    words = ["0" if word[0].isdigit() else word for word in _WORD.findall(_PATH.sub(_extension, text.lower()))]
    return list({*words, *(f"{first} {second}" for first, second in pairwise(words))})


def _extension(path: re.Match[str]) -> str:
    name = path[0].rstrip(".").rpartition("/")[2]
    return f" {name.rpartition('.')[2]} " if "." in name[1:] else " "


def documents(tasks: Sequence[Task], shared: frozenset[bytes]) -> dict[str, list[str]]:
    """By field, the text of each task in it. Files in `shared` are left out."""
    return {
        "instruction": [task.instruction for task in tasks],
        "tests": ["\n".join(_text(file) for file in task.tests if file.content not in shared) for task in tasks],
        "solution": ["\n".join(command for part in task.solution for command in part.commands) for task in tasks],
    }


def shared_files(tasks: Sequence[Task]) -> frozenset[bytes]:
    """Contents of the tests' files that say nothing about a task, since so many have them: a common verifier, a common test.sh."""
    counts = Counter(content for task in tasks for content in _different(task.tests))
    return frozenset(content for content, count in counts.items() if count >= max(_FEWEST, _SHARED * len(tasks)))


def _different(files: Iterable[TaskFile]) -> set[bytes]:
    return {file.content for file in files}


def _text(file: TaskFile) -> str:
    return "" if b"\0" in file.content else file.content.decode("utf-8", "ignore")
