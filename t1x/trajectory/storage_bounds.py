"""How much memory the rows of a file may take, judged before any is taken: a few bytes, compressed, may claim to be many.

What a page takes is told by the numbers of the file's end and of the page itself, which must agree, only where its values stand in
it one by one, as the writer leaves them: a dictionary would repeat a long text for a bit.
"""

import math

import pyarrow as pa

from t1x.trajectory.storage_footer import Group, pages_of
from t1x.trajectory.storage_table import Row

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


def check_group(file: pa.NativeFile, group: Group) -> None:
    """Raises `ValueError` for a group of rows that would take more, or that doesn't say how much."""
    size, values = sum(each.bytes for each in group.columns), sum(each.values for each in group.columns)
    most = max(group.rows, *(each.values for each in group.columns if not each.of_numbers))
    for what, has, may in (("bytes", size, LARGEST), ("values", values, MOST_VALUES), ("rows or turns", most, MOST_RECORDS)):
        if has > may:
            raise ValueError(f"it has {has:,} {what}, but at most {may:,} are read")
    for each in group.columns:
        if each.dictionary:
            raise ValueError(f"column {each.path} has a dictionary, which t1x doesn't write")
        if pages_of(file, each) != (each.values, each.bytes):
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
