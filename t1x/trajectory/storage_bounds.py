"""How much memory the rows of a file may take, judged before any is taken: a few bytes, compressed, may claim to be many.

A Parquet file says of each page of values how large it is, in its footer and once more at the page itself, which is what readers
follow. Both are read here, and must agree. What a page takes is told by these numbers only where its values stand in it one by one
(encoding PLAIN), as the writer leaves them; a dictionary would repeat a long text for a bit.
"""

import math
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq

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

_PLAIN = _DATA_PAGE = 0
"""Of an encoding, of a kind of page."""
_TRUE, _FALSE, _INTEGERS, _STRUCT = 1, 2, (4, 5, 6), 12
"""Kinds of fields in Thrift's compact protocol."""
_LONGEST_HEADER = 128
"""Bytes of a page's header; one that was written has some 30."""


def check_group(path: Path, metadata: pq.FileMetaData, index: int) -> None:
    """Raises `ValueError` for a group of rows that would take more, or that doesn't say how much."""
    group = metadata.row_group(index)
    columns = [group.column(each) for each in range(group.num_columns)]
    size, values = sum(each.total_uncompressed_size for each in columns), sum(each.num_values for each in columns)
    most = max(group.num_rows, *(each.num_values for each in columns if not _of_numbers(each)))
    for what, has, may in (("bytes", size, LARGEST), ("values", values, MOST_VALUES), ("rows or turns", most, MOST_RECORDS)):
        if has > may:
            raise ValueError(f"it has {has:,} {what}, but at most {may:,} are read")
    with path.open("rb") as file:
        for each in columns:
            if min(each.num_values, each.total_uncompressed_size, each.total_compressed_size, each.data_page_offset) < 0:
                raise ValueError(f"column {each.path_in_schema} has sizes below 0")
            if each.has_dictionary_page:
                raise ValueError(f"column {each.path_in_schema} has a dictionary, which t1x doesn't write")
            if _pages(file, each) != (each.num_values, each.total_uncompressed_size):
                raise ValueError(f"the pages of column {each.path_in_schema} are larger or smaller than the file's end says")


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


def _of_numbers(column: pq.ColumnChunkMetaData) -> bool:
    return column.path_in_schema.endswith(".list.element") and column.physical_type != "BYTE_ARRAY"


def _pages(file: BinaryIO, column: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Values and bytes of all pages of a column, as their headers have them. Raises `ValueError` for pages that no writer of ours
    makes."""
    at, end = column.data_page_offset, column.data_page_offset + column.total_compressed_size
    values = size = 0
    while at < end:
        file.seek(at)
        data = file.read(_LONGEST_HEADER)
        page, length = _struct(data, 0)
        kind, of_data = page.get(1), page.get(5)
        if kind != _DATA_PAGE or not isinstance(of_data, dict) or of_data.get(2) != _PLAIN:
            raise ValueError(f"column {column.path_in_schema} has a page of another kind than t1x writes")
        sizes = [number for number in (page.get(2), page.get(3), of_data.get(1)) if isinstance(number, int) and number >= 0]
        if len(sizes) < 3:
            raise ValueError(f"a page of column {column.path_in_schema} doesn't say how large it is")
        values, size, at = values + sizes[2], size + length + sizes[0], at + length + sizes[1]
    return values, size


_Fields = dict[int, Any]
"""Values by field: integers, truth values, and fields of a struct."""


def _struct(data: bytes, at: int) -> tuple[_Fields, int]:
    """A struct of integers and such structs in Thrift's compact protocol, and where it ends."""
    found: _Fields = {}
    field = 0
    while kind := (head := _byte(data, at)) & 15:
        at += 1
        if not head >> 4:
            raise ValueError("a page's header has fields that t1x doesn't write")
        field += head >> 4
        if kind in (_TRUE, _FALSE):
            found[field] = kind == _TRUE
        elif kind in _INTEGERS:
            found[field], at = _integer(data, at)
        elif kind == _STRUCT:
            found[field], at = _struct(data, at)
        else:
            raise ValueError("a page's header has fields that t1x doesn't write")
    return found, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; even ones count up from 0, odd ones down from -1."""
    number = shift = 0
    more = True
    while more:
        byte = _byte(data, at)
        number, shift, at, more = number | (byte & 127) << shift, shift + 7, at + 1, byte > 127
    return number >> 1 ^ -(number & 1), at


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise ValueError("a page's header has no end")
    return data[at]
