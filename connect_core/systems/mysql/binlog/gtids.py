"""The GTID of a transaction, by the event that begins it. Pure.

From 8.3 on MySQL has GTIDs with tags, UUID:tag:number, whose event consists of numbered fields:
https://dev.mysql.com/doc/dev/mysql-server/latest/PageLibsMysqlSerialization.html
"""

from __future__ import annotations

import struct

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.log_events import DamagedLog, LogEvent

_FORM = 1
_LAST_KNOWN_FIELD = 11
_FLAGS, _SERVER, _NUMBER, _TAG = range(4)
"""Fields, in this order; what follows says nothing of the GTID."""
_UUID = 16


def gtid_of(event: LogEvent) -> str:
    """Of either server."""
    return mariadb_gtid(event)[0] if event.kind == log_events.MARIADB_GTID else mysql_gtid(event)


def numbered_by(gtid: str) -> str:
    """Who has given out its number: a server in a domain, or one with a tag."""
    return gtid.rpartition(":" if ":" in gtid else "-")[0]


def mariadb_gtid(event: LogEvent) -> tuple[str, int]:
    """And its flags."""
    number, domain, flags = struct.unpack_from("<QIB", event.body)
    return f"{domain}-{event.server_id}-{number}", flags


def mysql_gtid(event: LogEvent) -> str:
    """Empty where transactions have none."""
    if event.kind == log_events.TAGGED_GTID:
        return _tagged(event.body)
    if event.kind != log_events.GTID:
        return ""
    [number] = struct.unpack_from("<Q", event.body, 17)
    return f"{uuid_of(event.body[1:17])}:{number}"


def _tagged(body: bytes) -> str:
    form, at = number_at(body, 0)
    _size, at = number_at(body, at)
    needed, at = number_at(body, at)
    if form != _FORM or needed > _LAST_KNOWN_FIELD:
        raise DamagedLog("a GTID with a tag is in an unknown form")
    _flags, at = number_at(body, _field(body, at, _FLAGS))
    at, server = _field(body, at, _SERVER), bytearray()
    for _ in range(_UUID):
        one, at = number_at(body, at)
        server.append(one)
    number, at = number_at(body, _field(body, at, _NUMBER))
    tag, _ = tag_at(body, _field(body, at, _TAG))
    return f"{uuid_of(server)}:{tag}:{number >> 1}"  # the lowest bit is its sign


def _field(body: bytes, at: int, wanted: int) -> int:
    """Where it begins."""
    field, at = number_at(body, at)
    if field != wanted:
        raise DamagedLog(f"a GTID with a tag has field {field} in place of {wanted}")
    return at


def uuid_of(data: bytes | bytearray) -> str:
    text = data.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def tag_at(data: bytes, at: int) -> tuple[str, int]:
    """And what is behind it. Empty where there is none."""
    size, at = number_at(data, at)
    return data[at : at + size].decode(), at + size


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """And what is behind it. As many ones as its first byte ends with, so many bytes follow; behind a zero comes the
    number, the lowest bits first. One of nine bytes needs no zero."""
    first = data[at]
    width = (~first & (first + 1)).bit_length()
    number = int.from_bytes(data[at : at + width], "little")
    return number >> min(width, 8), at + width
