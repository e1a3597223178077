"""What a Parquet file says of its groups of rows, at its end and at each page.

It's read here, not by Arrow, since Arrow believes a page's header over the file's end, so that the end alone bounds nothing, and
since an end that contradicts itself makes Arrow end the process.

Both are structs of Apache Parquet's parquet.thrift: `FileMetaData`, `RowGroup`, `ColumnChunk` and `ColumnMetaData` at the end,
`PageHeader` and `DataPageHeader` before each page. Fields have the numbers that they have there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from t1x.trajectory.storage_thrift import Fields, read_struct

LARGEST_END = 2**24
"""Bytes of a file's end, which has some 6,000 a group."""

_ROW_GROUPS = 4
"""Of `FileMetaData`."""
_COLUMNS, _ROWS = 1, 3
"""Of `RowGroup`."""
_METADATA = 3
"""Of `ColumnChunk`."""
_TYPE, _PATH, _NUM_VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE_OFFSET, _DICTIONARY_OFFSET = 1, 3, 5, 6, 7, 9, 11
"""Of `ColumnMetaData`."""
_PAGE_TYPE, _PAGE_UNCOMPRESSED, _PAGE_COMPRESSED, _DATA_PAGE_HEADER = 1, 2, 3, 5
"""Of `PageHeader`."""
_PAGE_VALUES, _ENCODING = 1, 2
"""Of `DataPageHeader`."""

_BYTE_ARRAY = 6
"""Of `Type`: bytes of any length."""
_DATA_PAGE = 0
"""Of `PageType`."""
_PLAIN = 0
"""Of `Encoding`: values stand one by one."""
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
        return [_group(each) for each in end[_ROW_GROUPS]]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("its end doesn't say what is in it") from error


def pages_of(file: BinaryIO, column: Column) -> tuple[int, int]:
    """Values and bytes of all pages of a column, as their headers have them. Raises `ValueError` for pages that no writer of ours
    makes."""
    at, values, size = column.start, 0, 0
    while at < column.start + column.compressed:
        file.seek(at)
        page, length = read_struct(file.read(_LONGEST_HEADER))
        of_data = page.get(_DATA_PAGE_HEADER)
        if page.get(_PAGE_TYPE) != _DATA_PAGE or not isinstance(of_data, dict) or of_data.get(_ENCODING) != _PLAIN:
            raise ValueError(f"column {column.path} has a page of another kind than t1x writes")
        values += _number(of_data.get(_PAGE_VALUES))
        size += length + _number(page.get(_PAGE_UNCOMPRESSED))
        at += length + _number(page.get(_PAGE_COMPRESSED))
    return values, size


def _group(said: Fields) -> Group:
    return Group(_number(said[_ROWS]), [_column(each[_METADATA]) for each in said[_COLUMNS]])


def _column(said: Fields) -> Column:
    return Column(
        path=b".".join(said[_PATH]).decode(),
        text=said[_TYPE] == _BYTE_ARRAY,
        values=_number(said[_NUM_VALUES]),
        bytes=_number(said[_UNCOMPRESSED]),
        compressed=_number(said[_COMPRESSED]),
        start=_number(said[_DATA_PAGE_OFFSET]),
        dictionary=_DICTIONARY_OFFSET in said,
    )


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a size of it isn't a number from 0 on")
    return value
