"""How much memory the rows of a file may take, judged before any is taken: a few bytes, compressed, may claim to be many.

A Parquet file says of each page of values how large it is, at its end and once more at the page itself, which is what readers
follow. Both are read here, and must agree (by ourselves: where numbers at the end contradict each other, asking Arrow for them ends
the process). What a page takes is told by these numbers only where its values stand in it one by one
(encoding PLAIN), as the writer leaves them; a dictionary would repeat a long text for a bit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from t1x.trajectory.storage_table import Row
from t1x.trajectory.storage_thrift import Fields, read_struct

LARGEST = 2**30
"""Bytes of a group of rows, uncompressed, and of what a trial's routing comes to. A group has 16 MiB and one trial, and a trial of
262,144 tokens with 8 experts in each of 94 layers has 188 MiB."""
MOST_VALUES = 2**28
"""Of a group in all columns: a list takes a few bytes of memory for each, also for an empty one, which takes none on disk."""
MOST_RECORDS = 2**18
"""Rows of a file, values of a group in a column that isn't one of numbers, and what a trial's trajectories list (boundaries,
versions, substituted rows, parts of routing): of these each becomes an object."""
MOST_REPEATED = 2**28
"""Ids and characters of the turn before that the prompts of a trial may repeat: in memory they stand once a turn, on disk once."""
LARGEST_END = 2**24
"""Bytes of a file's end, which has some 6,000 a group."""

_PLAIN = _DATA_PAGE = 0
"""Of an encoding, of a kind of page."""
_TEXT = 6
"""Of a column's type: bytes of any length."""
_LONGEST_HEADER = 128
"""Bytes of a page's header; one that was written has some 30."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a group, as the file's end has it."""

    path: str
    text: bool
    values: int
    bytes: int
    """Uncompressed, page headers among them."""
    compressed: int
    start: int
    """Where its first page begins in the file."""
    dictionary: bool

    @property
    def of_numbers(self) -> bool:
        """Whether it has lists of numbers, which become arrays."""
        return self.path.endswith(".list.element") and not self.text


@dataclass(frozen=True, slots=True)
class Group:
    """A group of rows."""

    rows: int
    columns: Sequence[Column]


def groups_of(path: Path) -> list[Group]:
    """What a Parquet file's end says of its groups of rows. Raises `ValueError` where it can't be read."""
    with path.open("rb") as file:
        size = file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        if length > min(size, LARGEST_END):
            raise ValueError(f"its end has {length:,} bytes, but at most {LARGEST_END:,} are read")
        file.seek(size - length)
        end, _ = read_struct(file.read(length))
    try:
        return [Group(_number(group[3]), [_column(each[3]) for each in group[1]]) for group in end[4]]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("its end doesn't say what is in it") from error


def check_group(path: Path, group: Group) -> None:
    """Raises `ValueError` for a group of rows that would take more, or that doesn't say how much."""
    size, values = sum(each.bytes for each in group.columns), sum(each.values for each in group.columns)
    most = max(group.rows, *(each.values for each in group.columns if not each.of_numbers))
    for what, has, may in (("bytes", size, LARGEST), ("values", values, MOST_VALUES), ("rows or turns", most, MOST_RECORDS)):
        if has > may:
            raise ValueError(f"it has {has:,} {what}, but at most {may:,} are read")
    with path.open("rb") as file:
        for each in group.columns:
            if each.dictionary:
                raise ValueError(f"column {each.path} has a dictionary, which t1x doesn't write")
            if _pages(file, each) != (each.values, each.bytes):
                raise ValueError(f"the pages of column {each.path} are larger or smaller than the file's end says")


def check_row(row: Row) -> None:
    """Raises `ValueError` for a trial that would take more once its turns have their whole prompts, and its trajectories their
    routing."""
    repeated = before = 0
    for turn in row["turns"]:
        rendered = turn["rendered"] or {}
        again = [
            turn["kept"] if turn["kept"] != before else 0,
            *(rendered.get(f"kept_{of}", 0) for of in ("text", "ids", "starts")),
        ]
        repeated += sum(map(abs, again))
        before = turn["kept"] + len(turn["prompt_ids"]) + len(turn["ids"])
    if repeated > MOST_REPEATED:
        raise ValueError(
            f"its prompts repeat {repeated:,} ids and characters of those before, but at most {MOST_REPEATED:,} are kept"
        )
    listed = routing = 0
    for stream in row["trajectories"]:
        listed += sum(len(stream[name]) for name in ("boundaries", "versions", "substituted_rows", "routing_parts"))
        routing += len(stream["token_ids"]) * math.prod(stream["routing"][name] for name in ("layers", "k", "bytes"))
    if routing > LARGEST:
        raise ValueError(f"the routing of its trajectories has {routing:,} bytes, but at most {LARGEST:,} are kept")
    if (most := max(listed, len(row["turns"]), len(row["trajectories"]))) > MOST_RECORDS // 2:
        raise ValueError(f"it lists {most:,} turns, trajectories or parts of them, but at most {MOST_RECORDS // 2:,} are kept")


def _column(said: Fields) -> Column:
    values, size, compressed, start = (_number(said[field]) for field in (5, 6, 7, 9))
    path = b".".join(said[3]).decode()
    return Column(path, said[1] == _TEXT, values, size, compressed, start, 11 in said)


def _pages(file: BinaryIO, column: Column) -> tuple[int, int]:
    """Values and bytes of all pages of a column, as their headers have them. Raises `ValueError` for pages that no writer of ours
    makes."""
    at, values, size = column.start, 0, 0
    while at < column.start + column.compressed:
        file.seek(at)
        page, length = read_struct(file.read(_LONGEST_HEADER))
        of_data = page.get(5)
        if page.get(1) != _DATA_PAGE or not isinstance(of_data, dict) or of_data.get(2) != _PLAIN:
            raise ValueError(f"column {column.path} has a page of another kind than t1x writes")
        uncompressed, compressed, count = (_number(each) for each in (page.get(2), page.get(3), of_data.get(1)))
        values, size, at = values + count, size + length + uncompressed, at + length + compressed
    return values, size


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a size of it isn't a number from 0 on")
    return value
