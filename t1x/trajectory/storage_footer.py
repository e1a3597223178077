"""What a Parquet file says of its groups of rows, at its end and at each page.

It's read here, not by Arrow, since Arrow believes a page's header over the file's end, so that the end alone bounds nothing, and
since an end that contradicts itself makes Arrow end the process.

Both are structs of Apache Parquet's parquet.thrift: `FileMetaData`, `RowGroup`, `ColumnChunk` and `ColumnMetaData` at the end,
`PageHeader` and `DataPageHeader` before each page. Fields have the numbers that they have there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from t1x.trajectory.storage_thrift import BINARY, I32, I64, LIST, STRUCT, Fields, due, due_list, read_struct

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
_LISTS = {
    (2,): STRUCT,  # the schema
    (4,): STRUCT,  # row groups
    (4, 1): STRUCT,  # columns
    (4, 1, 3, 2): I32,  # encodings
    (4, 1, 3, 3): BINARY,  # the path
    (4, 1, 3, 13): STRUCT,  # statistics of encodings
    (4, 1, 3, 16, 2): I64,  # histograms of levels
    (4, 1, 3, 16, 3): I64,
    (5,): STRUCT,  # keys and values, our header among them
    (7,): STRUCT,  # orders of columns
}
"""What lists of the end that a writer of ours makes have, by their fields. Arrow reads a list as being of this whatever the list
itself says, so that one which says otherwise could hide fields from us."""
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


def groups_of(file: pa.NativeFile) -> list[Group]:
    """What a Parquet file's end says of its groups of rows. Raises `ValueError` where it can't be read."""
    size = file.size() - 8
    if size < 0:
        raise ValueError(f"it has {file.size()} bytes")
    file.seek(size)
    length = int.from_bytes(file.read(4), "little")
    if length > min(size, LARGEST_END):
        raise ValueError(f"its end has {length:,} bytes, but at most {LARGEST_END:,} are read")
    file.seek(size - length)
    end, _ = read_struct(file.read(length))
    _check_lists(end, ())
    return [_group(each) for each in due_list(end, _ROW_GROUPS, STRUCT)]


def pages_of(file: pa.NativeFile, column: Column) -> tuple[int, int]:
    """Values and bytes of all pages of a column, as their headers have them. Raises `ValueError` for pages that no writer of ours
    makes."""
    at, values, size = column.start, 0, 0
    while at < column.start + column.compressed:
        file.seek(at)
        page, length = read_struct(file.read(_LONGEST_HEADER))
        if (
            due(page, _PAGE_TYPE, I32) != _DATA_PAGE
            or due(of_data := due(page, _DATA_PAGE_HEADER, STRUCT), _ENCODING, I32) != _PLAIN
        ):
            raise ValueError(f"column {column.path} has a page of another kind than t1x writes")
        values += _size(of_data, _PAGE_VALUES, I32)
        size += length + _size(page, _PAGE_UNCOMPRESSED, I32)
        at += length + _size(page, _PAGE_COMPRESSED, I32)
    return values, size


def _check_lists(struct: Fields, place: tuple[int, ...]) -> None:
    for field, (kind, value) in struct.items():
        at = (*place, field)
        if kind == STRUCT:
            _check_lists(value, at)
        elif kind == LIST:
            of, values = value
            if _LISTS.get(at) != of:
                raise ValueError(
                    f"the list in field {'.'.join(map(str, at))} of its end has values of another kind than t1x writes"
                )
            for each in values if of == STRUCT else ():
                _check_lists(each, at)


def _group(said: Fields) -> Group:
    columns = due_list(said, _COLUMNS, STRUCT)
    return Group(_size(said, _ROWS, I64), [_column(due(each, _METADATA, STRUCT)) for each in columns])


def _column(said: Fields) -> Column:
    return Column(
        path=b".".join(due_list(said, _PATH, BINARY)).decode(),
        text=due(said, _TYPE, I32) == _BYTE_ARRAY,
        values=_size(said, _NUM_VALUES, I64),
        bytes=_size(said, _UNCOMPRESSED, I64),
        compressed=_size(said, _COMPRESSED, I64),
        start=_size(said, _DATA_PAGE_OFFSET, I64),
        dictionary=_DICTIONARY_OFFSET in said,
    )


def _size(said: Fields, field: int, kind: int) -> int:
    value = due(said, field, kind)
    if value < 0:
        raise ValueError("a size of it isn't a number from 0 on")
    return int(value)
