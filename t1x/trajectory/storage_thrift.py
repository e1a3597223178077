"""Thrift's compact protocol, in which a Parquet file says what is in it (thrift-compact-protocol.md of Apache Thrift).

Invariants:
- whatever the bytes are, reading them ends with a value or `ValueError`, and takes memory in proportion to them;
- nothing is read that another reader may understand otherwise: readers skip a field that isn't of the kind it has in the
  definition, cut numbers to the bits of their kind, and disagree on which of two fields of one number counts.
"""

from typing import Any

I16, I32, I64, BINARY, LIST, STRUCT = 4, 5, 6, 8, 9, 12
"""Kinds of values, as they stand on the wire."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _SET = 1, 2, 3, 7, 10
_BITS = {I16: 16, I32: 32, I64: 64}
_DEEPEST = 16

Fields = dict[int, tuple[int, Any]]
"""Kind and value of a struct's fields: truth values, integers, bytes, structs; lists as the kind of what they have, and that."""


def due(struct: Fields, field: int, kind: int) -> Any:
    """The value of a field, which must be there and have this kind. Raises `ValueError`."""
    found, value = struct.get(field, (None, None))
    if found != kind:
        raise ValueError(f"field {field} of a struct is of kind {found}, but must be of kind {kind}")
    return value


def due_list(struct: Fields, field: int, kind: int) -> list[Any]:
    """The values of a list, which must be there and have values of this kind. Raises `ValueError`."""
    found, values = due(struct, field, LIST)
    if found != kind:
        raise ValueError(f"the list in field {field} of a struct has values of kind {found}, but they must be of kind {kind}")
    return list(values)


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[Fields, int]:
    """The struct that begins at a place, and where it ends. Raises `ValueError`, also where it has a field twice."""
    found: Fields = {}
    field = 0
    while kind := (head := _byte(data, at)) & 15:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = read_integer(data, at, I16)
        if not 0 < field < 2**15:
            raise ValueError(f"a struct has a field {field}, but they are numbered from 1 to 32,767")
        if field in found:
            raise ValueError(f"a struct has field {field} twice")
        value, at = (kind == _TRUE, at) if kind in (_TRUE, _FALSE) else _value(data, at, kind, depth)
        found[field] = kind, value
    return found, at + 1


def read_integer(data: bytes, at: int, kind: int) -> tuple[int, int]:
    """Even numbers on the wire count up from 0, odd ones down from -1."""
    number, at = _count(data, at)
    if number >> _BITS[kind]:
        raise ValueError(f"a number is longer than {_BITS[kind]} bits")
    return number >> 1 ^ -(number & 1), at


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError("values lie too deep in each other")
    if kind in _BITS:
        return read_integer(data, at, kind)
    if kind == STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in (LIST, _SET):
        return _list(data, at, depth + 1)
    if kind == BINARY:
        size, at = _count(data, at)
    elif kind in (_TRUE, _FALSE, _BYTE):
        size = 1
    elif kind == _DOUBLE:
        size = 8
    else:
        raise ValueError(f"a value of kind {kind} isn't known")
    if at + size > len(data):
        raise ValueError("a value has no end")
    return data[at : at + size], at + size


def _list(data: bytes, at: int, depth: int) -> tuple[tuple[int, list[Any]], int]:
    head, at = _byte(data, at), at + 1
    size, kind = head >> 4, head & 15
    if size == 15:
        size, at = _count(data, at)
    if size > len(data) - at:
        raise ValueError("a list has no end")
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return (kind, values), at


def _count(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first."""
    number = shift = 0
    more = True
    while more:
        byte = _byte(data, at)
        number, shift, at, more = number | (byte & 127) << shift, shift + 7, at + 1, byte > 127
        if shift > 70:
            raise ValueError("a number is longer than 64 bits")
    return number, at


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise ValueError("a value has no end")
    return data[at]
