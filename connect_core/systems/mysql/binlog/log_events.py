"""Events of the binary log: bytes -> what they say. Pure.

https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol,
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

HEADER = 19
_HEAD = struct.Struct("<IBIIIH").unpack_from
_CRC = 4
CRC32 = 1
"""How events are checked."""
ARTIFICIAL, IGNORABLE = 0x20, 0x80
"""Flags of an event: it is in no file; who does not know it may pass over it."""

QUERY, STOP, ROTATE, FORMAT, XID, TABLE_MAP, INCIDENT, HEARTBEAT, HEARTBEAT_2 = 2, 3, 4, 15, 16, 19, 26, 27, 41
GTID, ANONYMOUS_GTID, XA_PREPARE, TAGGED_GTID, MARIADB_GTID = 33, 34, 38, 42, 162
PREVIOUS_GTIDS, GTID_LIST = 35, 163
EXECUTE_LOAD_QUERY, PARTIAL_UPDATE, PACKED_TRANSACTION, QUERY_COMPRESSED = 18, 39, 40, 165
HARMLESS = frozenset((5, 13, 14, 17, 28, 29, 36, 37, 160, 161, 164))
"""Values that statements use, words of statements, accounts of the log: nothing that changes a row."""
PAUSE, TORN = -1, -2
"""No events of a server: nothing more has come yet; the file ends within an event, and the next one follows."""
CHANGES_FILE = (ROTATE, TORN)
FIRST_EVENT = 4
"""Where a file's first event is."""
BEGINS = (GTID, ANONYMOUS_GTID, TAGGED_GTID, MARIADB_GTID)
"""Of a transaction."""
SAYS_NOTHING_YET = frozenset((*BEGINS, TABLE_MAP))
"""Of rows: these come behind it."""
ROWS = {
    **dict.fromkeys((23, 30, 166, 169), "c"),
    **dict.fromkeys((24, 31, PARTIAL_UPDATE, 167, 170), "u"),
    **dict.fromkeys((25, 32, 168, 171), "d"),
}
"""Of rows events what they do."""
_SHORT_HEAD = frozenset((23, 24, 25, 166, 167, 168))
_COMPRESSED = frozenset(range(166, 172))
_PACKED_BEGINS = 0
NO_TABLE = 0x00FFFFFF
"""The number of a table in a rows event that only ends a statement."""


PACKED_SIZE, PACKED_BY, UNPACKED_SIZE = 1, 2, 3
ZSTD, NOT_PACKED = 0, 255
"""What is said before the bytes of a packed transaction, and by what it may be packed."""


class DamagedLog(ValueError):
    """What was read is no event of a log, and why."""


class LogEvent(NamedTuple):
    kind: int
    at_s: int
    """When its statement began, since 1970."""
    server_id: int
    size: int
    end: int
    """Its end in its file; 0 where it is in none."""
    flags: int
    body: bytes
    number: int | None = None
    """Of what it has in it the first one, in its packed transaction, whose size and end it has; None outside of one."""
    ahead: int = 0
    """How much further offsets are than places in its file, behind it (`packed_transactions`)."""

    @property
    def is_in_file(self) -> bool:
        return self.end != 0 and not self.flags & ARTIFICIAL

    @property
    def is_packed(self) -> bool:
        return self.number is not None

    @property
    def begin(self) -> int:
        """Its place in its file."""
        return self.end - self.size

    @property
    def place(self) -> int:
        """That of offsets."""
        return self.begin + self.ahead + (self.number or 0)


class Query(NamedTuple):
    database: str
    text: str

    @property
    def lowered(self) -> Query:
        return Query(self.database.lower(), self.text.lower())


class RowsOf(NamedTuple):
    """`images` are the rows, each with what is NULL in it, once or, of an update, twice; `present` which columns are
    there, for the first image and for the second."""

    table: int
    columns: int
    present: tuple[bytes, ...]
    images: bytes

    @property
    def is_whole(self) -> bool:
        """Whether each image has all columns."""
        everything = (1 << self.columns) - 1
        return all(int.from_bytes(one, "little") & everything == everything for one in self.present)


def parsed(packet: bytes, checked: int) -> LogEvent:
    """Of a packet behind its first byte. `checked` is how events are checked. Raises DamagedLog."""
    if len(packet) < HEADER:
        raise DamagedLog("an event is too short")
    at_s, kind, server_id, size, end, flags = _HEAD(packet)
    if kind == FORMAT:
        checked = check_of(packet)
    if checked == CRC32:
        said, crc = packet[:-_CRC], packet[-_CRC:]
        if kind != FORMAT and zlib.crc32(said) != int.from_bytes(crc, "little"):
            raise DamagedLog("the checksum of an event is wrong")
        packet = said
    return LogEvent(kind, at_s, server_id, size, end, flags, packet[HEADER:])


def size_of(head: bytes) -> int:
    """Of an event that begins with it."""
    return int.from_bytes(head[9:13], "little")


def check_of(packet: bytes) -> int:
    """How events of a file are checked, by its first one."""
    return packet[-_CRC - 1]


def is_of_mariadb(event: LogEvent) -> bool:
    """By the first event of a file."""
    return b"mariadb" in event.body[2:52].lower()


def torn(following: str) -> LogEvent:
    """`following` is the next file."""
    return LogEvent(TORN, 0, 0, 0, 0, ARTIFICIAL, FIRST_EVENT.to_bytes(8, "little") + following.encode())


def next_file(event: LogEvent) -> str:
    return event.body[8:].decode()


def next_place(event: LogEvent) -> int:
    return int.from_bytes(event.body[:8], "little")


def packed_parts(body: bytes) -> tuple[dict[int, int], int]:
    """What is said before the bytes of a packed transaction, and where these begin."""
    said, at = dict[int, int](), 0
    while True:
        kind, at = counted(body, at)
        if kind == _PACKED_BEGINS:
            return said, at
        length, at = counted(body, at)
        said[kind], _ = counted(body, at)
        at += length


def query(event: LogEvent) -> Query:
    body = event.body
    database, words = body[8], int.from_bytes(body[11:13], "little")
    at = 13 + words
    text = body[at + database + 1 :]
    if event.kind == QUERY_COMPRESSED:
        text = unpacked(text)
    return Query(body[at : at + database].decode(), text.decode(errors="replace"))


def unpacked(data: bytes) -> bytes:
    """What MariaDB has compressed (log_bin_compress)."""
    if (data[0] >> 4) & 0x07:
        raise DamagedLog("an event is compressed in an unknown way")
    return zlib.decompress(data[1 + (data[0] & 0x07) :])


def prepared(event: LogEvent) -> str:
    """Of a transaction of XA its name, as `finished` has it."""
    form, first, second = struct.unpack_from("<III", event.body, 1)
    names = event.body[13 : 13 + first + second]
    return f"{names[:first].hex()},{names[first:].hex()},{form}"


def rows_of(event: LogEvent) -> RowsOf:
    body = event.body
    table, at = int.from_bytes(body[:6], "little"), 8
    if event.kind not in _SHORT_HEAD:
        at += int.from_bytes(body[8:10], "little")
    columns, at = counted(body, at)
    width, present = (columns + 7) // 8, []
    for _ in range(2 if ROWS[event.kind] == "u" else 1):
        present.append(body[at : at + width])
        at += width
    images = body[at:]
    return RowsOf(table, columns, tuple(present), unpacked(images) if event.kind in _COMPRESSED else images)


def counted(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and what is behind it."""
    first = data[at]
    if first < 251:
        return first, at + 1
    width = {252: 2, 253: 3, 254: 8}.get(first)
    if width is None:
        raise DamagedLog("a number has an unknown width")
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width
