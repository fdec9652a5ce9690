"""What moves: records, partitions, and the coordinates that identify a delivered record. `batches` has the columns in
which many records travel.

Values only; nothing here reads or writes. Used by every room.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from connect_core.errors import WireFormatError

OPERATION_NONE, OPERATION_CREATE, OPERATION_UPDATE, OPERATION_DELETE, OPERATION_SNAPSHOT = range(5)
OPERATIONS = (None, "create", "update", "delete", "snapshot")
"""Their names; a record that is no change of a row has none."""

COORDINATES_PROPERTY = "WAYBILL"
"""The one property in which coordinates travel. It is ours: a copy replaces the previous hop's."""

_PAIR, _END = "\x01", "\x02"


def encode_headers(headers: Iterable[tuple[str, str]]) -> bytes:
    """`name 0x01 value 0x02` for each header: RocketMQ's own property encoding, so that copies need no re-encoding."""
    return "".join(f"{name}{_PAIR}{value}{_END}" for name, value in headers).encode()


def header_pairs(encoded: bytes | None) -> list[tuple[str, str]]:
    """The inverse of `encode_headers`: in order, and a name as often as it was given."""
    pairs = (entry.partition(_PAIR) for entry in (encoded or b"").decode().split(_END))
    return [(name, value) for name, sep, value in pairs if sep]


def decode_headers(encoded: bytes | None) -> dict[str, str]:
    """`header_pairs` by name. Of equal names the last wins, as for RocketMQ's readers."""
    return dict(header_pairs(encoded))


@dataclass(frozen=True, order=True)
class Partition:
    """One independently ordered log: a file, a queue. `key` is readable and unique within its connector."""

    key: str

    @cached_property
    def id(self) -> str:
        """16 hex digits, short enough to travel with every record."""
        return hashlib.blake2b(self.key.encode(), digest_size=8).hexdigest()


class Lineage(NamedTuple):
    """The part of the coordinates that all records of one range share. `origin` names what is read whatever number its
    incarnation has; empty where nothing does."""

    uid: str
    stream: str
    partition_id: str
    incarnation: int
    origin: str = ""

    def prefix(self) -> str:
        """What the coordinates of every record of this lineage begin with; ends with the separator."""
        number = f"{self.incarnation}.{self.origin}" if self.origin else str(self.incarnation)
        return f"{self.uid}:{self.stream}:{self.partition_id}:{number}:"


class Coordinates(NamedTuple):
    """Identity of a delivered record. Text form: `uid:stream:partition:incarnation:offset:ordinal`, where the
    incarnation is a number or, of what has a name, `number.origin`; behind it, where a record has one, `:` and the 16
    hex digits of its trace; behind that (zeros for none), where its input has several outputs, `:` and how many."""

    lineage: Lineage
    offset: int
    ordinal: int

    def text(self) -> str:
        return f"{self.lineage.prefix()}{self.offset}:{self.ordinal}"

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        """Raises WireFormatError for anything but six fields (a later version may append more)."""
        try:
            uid, stream, partition, incarnation, offset, ordinal = text.split(":")[:6]
            number, _, origin = incarnation.partition(".")
            return cls(Lineage(uid, stream, partition, int(number), origin), int(offset), int(ordinal))
        except ValueError:
            raise WireFormatError(f"Not a {COORDINATES_PROPERTY} property: {text[:80]!r}") from None


class Record(NamedTuple):
    """One record as a person would write it down. Without a value it says that what had its key is gone."""

    value: bytes | None
    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timestamp: datetime | None = None
    topic: str | None = None
