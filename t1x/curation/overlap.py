"""Near-duplicates between a pool and held-out tasks, exactly: every pair is compared.

The likeness of two texts is the Jaccard index of their shingles (Broder 1997), each weighted by its rarity:

    sum of w(s) over s in A ∩ B  /  sum of w(s) over s in A ∪ B,    w(s) = ln((1 + N) / n(s))

n(s) of all N texts of a field have the shingle, so what all of them share weighs nothing. The sums over A ∩ B are a product of two
sparse matrices, which for one suite costs seconds; MinHash would only approximate them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from t1x.curation.shingles import FIELDS, documents, shared_files, shingles
from t1x.tasks.task import Task

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK = 1024
"""Tasks of the pool that are compared at a time."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A task of the pool and one of the suite that are alike."""

    field: str
    score: float
    """From 0 to 1."""
    task: str
    held_out: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a pool and a suite have in common."""

    pairs: tuple[Pair, ...]
    """All whose score reaches the threshold, the most alike first."""
    nearest: dict[str, tuple[Pair, ...]]
    """By field, for each held-out task that says something in it, the most alike task of the pool."""


def overlap(pool: Sequence[Task], suite: Sequence[Task], threshold: float, advance: Callable[[], None] = lambda: None) -> Overlap:
    """Compares every task of a pool with every one of a suite; calls `advance` after each text that was read (see `texts`). Raises
    `ValueError` where one of them is empty."""
    if not pool or not suite:
        raise ValueError(f"the {'suite' if pool else 'pool'} has no task that can be read, so there is nothing to compare")
    tasks = [*pool, *suite]
    texts = documents(tasks, shared_files(tasks))
    pairs: list[Pair] = []
    nearest: dict[str, tuple[Pair, ...]] = {}
    for field in FIELDS:
        scores = _likeness(texts[field], len(pool), advance)
        best = scores.argmax(axis=0)
        told = [column for column in range(len(suite)) if texts[field][len(pool) + column].strip()]
        nearest[field] = tuple(_pair(field, scores, int(best[column]), column, pool, suite) for column in told)
        rows, columns = np.nonzero((scores >= threshold) & (scores > 0))
        pairs += [_pair(field, scores, int(row), int(column), pool, suite) for row, column in zip(rows, columns, strict=True)]
    return Overlap(tuple(sorted(pairs, key=lambda pair: (-pair.score, pair.held_out, pair.task))), nearest)


def texts(pool: Sequence[Task], suite: Sequence[Task]) -> int:
    """How many texts `overlap` reads."""
    return len(FIELDS) * (len(pool) + len(suite))


def _pair(field: str, scores: np.ndarray, row: int, column: int, pool: Sequence[Task], suite: Sequence[Task]) -> Pair:
    return Pair(field, float(scores[row, column]), pool[row].name, suite[column].name)


def _likeness(texts: Sequence[str], size: int, advance: Callable[[], None]) -> np.ndarray:
    """[size, len(texts) - size] float32: the first `size` texts against the others. Two texts without shingles aren't alike."""
    has = _matrix(texts, advance)
    weights = np.log((1 + len(texts)) / np.maximum(has.sum(axis=0), 1)).astype(np.float32)
    whole = has @ weights
    theirs = (has[size:] * weights[None, :]).T.tocsr()
    scores = np.zeros((size, len(texts) - size), np.float32)
    for start in range(0, size, _BLOCK):
        rows = slice(start, min(start + _BLOCK, size))
        common = (has[rows] @ theirs).toarray()
        either = whole[rows, None] + whole[None, size:] - common
        np.divide(common, either, out=scores[rows], where=either > 0)
    return scores


def _matrix(texts: Sequence[str], advance: Callable[[], None]) -> "csr_array":
    """[texts, different shingles] float32 of 0 and 1."""
    from scipy.sparse import csr_array

    numbers: dict[str, int] = {}
    columns: list[np.ndarray] = []
    for text in texts:
        columns.append(np.fromiter((numbers.setdefault(shingle, len(numbers)) for shingle in shingles(text)), np.int32))
        advance()
    starts = np.concatenate([[0], np.cumsum([len(each) for each in columns])])
    values = np.ones(starts[-1], np.float32)
    return csr_array((values, np.concatenate(columns), starts), shape=(len(texts), len(numbers)))
