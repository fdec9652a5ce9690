"""Messages of `pgoutput`, version 1 of its protocol -> what they say. Pure.

https://www.postgresql.org/docs/15/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, TypeAlias

UNCHANGED = object()
"""In the place of a large value that did not change: the server has not sent it."""
Tuple: TypeAlias = "list[str | object | None]"

_BEGIN, _COMMIT = Struct(">QqI"), Struct(">xQQq")
_COLUMN = Struct(">Ii")
_COUNT, _LENGTH = Struct(">H"), Struct(">I")
_TRUNCATE = Struct(">IB")
_POSTGRES_EPOCH_MS = 946_684_800_000
FULL = ord("f")
"""The replica identity with which all of the old row is logged."""


class TransactionBegin(NamedTuple):
    commit: int
    """Where the transaction's commit is in the log."""
    at_ms: int
    xid: int


class TransactionEnd(NamedTuple):
    end: int
    """Behind the commit: where reading continues when all of it is settled."""


class LoggedColumn(NamedTuple):
    name: str
    of_key: bool
    kind: int
    modifier: int


class Relation(NamedTuple):
    oid: int
    schema: str
    table: str
    identity: int
    columns: tuple[LoggedColumn, ...]


class TypeName(NamedTuple):
    oid: int
    name: str


class Change(NamedTuple):
    """`old` is what is logged of the row before: all of it, or its key where `of_key`; None where nothing is."""

    operation: str
    """`c`, `u` or `d`."""
    relation: int
    new: Tuple | None
    old: Tuple | None
    of_key: bool


class Said(NamedTuple):
    """What a program has written into the log."""

    prefix: str
    text: str


class Truncate(NamedTuple):
    relations: tuple[int, ...]


Message: TypeAlias = TransactionBegin | TransactionEnd | Relation | TypeName | Change | Truncate | Said | None


def decoded(data: bytes) -> Message:
    """None for what says nothing of rows, such as the origin of a transaction."""
    kind = data[:1]
    if kind == b"I":
        return Change("c", _oid(data), _values(data, 6)[0], None, False)
    if kind == b"U":
        return _update(data)
    if kind == b"D":
        return Change("d", _oid(data), None, _values(data, 6)[0], data[5:6] == b"K")
    return _seldom(kind, data)


def _seldom(kind: bytes, data: bytes) -> Message:
    if kind == b"B":
        commit, at, xid = _BEGIN.unpack_from(data, 1)
        return TransactionBegin(commit, at // 1000 + _POSTGRES_EPOCH_MS, xid)
    if kind == b"C":
        return TransactionEnd(_COMMIT.unpack_from(data, 1)[1])
    if kind == b"R":
        return _relation(data)
    if kind == b"Y":
        _, at = _text(data, 5)
        return TypeName(_oid(data), _text(data, at)[0])
    if kind == b"M":
        prefix, at = _text(data, 10)
        return Said(prefix, data[at + 4 :].decode(errors="replace"))
    if kind == b"T":
        count, _ = _TRUNCATE.unpack_from(data, 1)
        return Truncate(tuple(_LENGTH.unpack_from(data, 6 + 4 * one)[0] for one in range(count)))
    return None


def _update(data: bytes) -> Change:
    old, of_key, at = None, False, 6
    if data[5:6] != b"N":
        of_key = data[5:6] == b"K"
        old, at = _values(data, 6)
        at += 1
    return Change("u", _oid(data), _values(data, at)[0], old, of_key)


def _oid(data: bytes) -> int:
    return int.from_bytes(data[1:5], "big")


def _values(data: bytes, at: int) -> tuple[Tuple, int]:
    count = _COUNT.unpack_from(data, at)[0]
    at += 2
    values: Tuple = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 116:  # t, a text
            size = int.from_bytes(data[at : at + 4], "big")
            at += 4
            values.append(data[at : at + size].decode())
            at += size
        else:
            values.append(None if kind == 110 else UNCHANGED)
    return values, at


def _relation(data: bytes) -> Relation:
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity, count = data[at], _COUNT.unpack_from(data, at + 1)[0]
    at += 3
    columns: list[LoggedColumn] = []
    for _ in range(count):
        of_key = bool(data[at] & 1)
        name, at = _text(data, at + 1)
        columns.append(LoggedColumn(name, of_key, *_COLUMN.unpack_from(data, at)))
        at += _COLUMN.size
    return Relation(_oid(data), schema or "pg_catalog", table, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
