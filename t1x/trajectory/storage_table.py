"""The table that trials are stored in: its columns, the checksum of a row, and rows in Arrow's memory.

A row is nested plain values and NumPy arrays.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Row = dict[str, Any]


def _struct(*fields: pa.Field | tuple[str, pa.DataType]) -> pa.DataType:
    return pa.struct([_field(each) for each in fields])


def _list(of: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", of, nullable=False))


def _field(field: pa.Field | tuple[str, pa.DataType]) -> pa.Field:
    """One that always has a value, unless it's a field already."""
    return field if isinstance(field, pa.Field) else pa.field(*field, nullable=False)


_IDS, _NUMBERS = _list(pa.int32()), _list(pa.int64())
_EXPERTS = _struct(
    ("rows", pa.int64()), ("layers", pa.int64()), ("k", pa.int64()), ("bytes", pa.int64()), ("data", pa.large_binary())
)
_RENDERED = _struct(
    ("kept_text", pa.int64()),
    ("text", pa.large_binary()),
    ("kept_ids", pa.int64()),
    ("ids", _IDS),
    ("kept_starts", pa.int64()),
    ("starts", _IDS),
    ("answer", _NUMBERS),
)
_TURN = _struct(
    ("index", pa.int64()),
    ("kept", pa.int64()),
    ("prompt_ids", _IDS),
    ("ids", _IDS),
    ("logprobs", _list(pa.float32())),
    ("routing", _EXPERTS),
    ("routing_start", pa.int64()),
    ("cached_tokens", pa.int64()),
    ("placeholder_tokens", pa.int64()),
    ("finish_reason", pa.string()),
    ("version", pa.int64()),
    ("temperature", pa.float64()),
    ("restarted", pa.bool_()),
    pa.field("rendered", _RENDERED),
)
_TRAJECTORY = _struct(
    ("token_ids", _IDS),
    ("loss_mask", _list(pa.bool_())),
    ("logprobs", _list(pa.float32())),
    ("routing", _EXPERTS),
    ("routing_parts", _NUMBERS),
    ("versions", _NUMBERS),
    ("boundaries", _list(pa.string())),
    ("temperature", pa.float64()),
    ("substituted_rows", _NUMBERS),
)
SCHEMA = pa.schema(
    [
        _field(("id", pa.string())),
        _field(("task", pa.string())),
        _field(("ended_by", pa.string())),
        pa.field("reward", pa.float64()),
        pa.field("resolved", pa.bool_()),
        _field(("turns", _list(_TURN))),
        _field(("trajectories", _list(_TRAJECTORY))),
        _field(("checksum", pa.binary())),
    ]
)
"""`kept` ids of a turn's prompt are the first ones of the turn before (its prompt and completion), `prompt_ids` those that follow;
`kept_text`, `kept_starts`: as many characters, starts as in the rendered prompt before; `kept_ids`: of the turn's own prompt."""


def checksum(row: Row) -> bytes:
    """Of everything in a row but its own."""
    hashed = hashlib.sha256()
    for piece in _pieces({name: value for name, value in row.items() if name != "checksum"}):
        hashed.update(piece)
    return hashed.digest()


def to_table(rows: list[Row]) -> pa.Table:
    """Rows with their checksums."""
    return pa.Table.from_pylist([{**row, "checksum": checksum(row)} for row in rows], SCHEMA)


def from_table(table: pa.Table) -> list[Row]:
    """Rows of a table. Arrays are read-only views of its memory."""
    columns = {name: _values(table[name].combine_chunks()) for name in table.column_names}
    return [dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]


def _values(array: pa.Array) -> list[Any]:
    """Elements of an Arrow array: dicts, lists, NumPy arrays for lists of numbers, plain values."""
    if pa.types.is_struct(array.type):
        fields = {field.name: _values(array.field(index)) for index, field in enumerate(array.type)}
        rows = [dict(zip(fields, each, strict=True)) for each in zip(*fields.values(), strict=True)]
        return [row if there else None for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_list(array.type):
        inner, ends = array.type.value_type, array.offsets.to_pylist()
        plain = pa.types.is_primitive(inner)
        values = frozen(array.values.to_numpy(zero_copy_only=False)) if plain else _values(array.values)
        return [values[start:stop] for start, stop in pairwise(ends)]
    plain_values: list[Any] = array.to_pylist()
    return plain_values


def _pieces(value: object) -> Iterator[bytes | memoryview]:
    """A value as bytes that no other value has."""
    if isinstance(value, Mapping):
        yield f"dict {len(value)}:".encode()
        for name in sorted(value):
            yield from _pieces(name)
            yield from _pieces(value[name])
    elif isinstance(value, list):
        yield f"list {len(value)}:".encode()
        for each in value:
            yield from _pieces(each)
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {len(value)}:".encode()
        yield np.ascontiguousarray(value).tobytes()
    else:
        data = value if isinstance(value, bytes) else repr(value).encode()
        yield f"{type(value).__name__} {len(data)}:".encode()
        yield data


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array itself, read-only from now on."""
    array.flags.writeable = False
    return array
