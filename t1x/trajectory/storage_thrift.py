"""Thrift's compact protocol, in which a Parquet file says what is in it (thrift-compact-protocol.md of Apache Thrift).

Whatever the bytes are, reading them ends with a value or `ValueError`, and takes memory in proportion to them.
"""

from typing import Any

_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12
_DEEPEST = 16

Fields = dict[int, Any]
"""Values of a struct by field: truth values, integers, bytes, lists, structs."""


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[Fields, int]:
    """The struct that begins at a place, and where it ends."""
    found: Fields = {}
    field = 0
    while kind := (head := _byte(data, at)) & 15:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = read_integer(data, at)
        if kind in (_TRUE, _FALSE):
            found[field] = kind == _TRUE
        else:
            found[field], at = _value(data, at, kind, depth)
    return found, at + 1


def read_integer(data: bytes, at: int) -> tuple[int, int]:
    """Even numbers on the wire count up from 0, odd ones down from -1."""
    number, at = _count(data, at)
    return number >> 1 ^ -(number & 1), at


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError("values lie too deep in each other")
    if kind in _INTEGERS:
        return read_integer(data, at)
    if kind == _STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in _LISTS:
        return _list(data, at, depth + 1)
    if kind == _BINARY:
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


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
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
    return values, at


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
