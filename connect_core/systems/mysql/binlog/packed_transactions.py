"""Transactions that MySQL packs into one event (`binlog_transaction_compression`) -> the events that are in them, each
with its place among offsets. Pure.

Rows in it have no places in the file, and may be more than it has bytes. So they are numbered: the event at place P
gives P, P + 1, … to what is in it, a number for each row and for each event that has none. What that needs beyond the
event's end is added to all places that follow in the file (`ahead`). That is the same whoever reads, and whichever
tables are wanted; it needs the file from its begin, or how far ahead a place is.

https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Transaction__payload__event.html
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from connect_core.systems.mysql.binlog import log_events, table_maps
from connect_core.systems.mysql.binlog.log_events import HEADER, DamagedLog, LogEvent
from connect_core.systems.mysql.binlog.table_maps import TableMap


class Unpacking:
    """From a place in a file on, behind which offsets are so much `ahead`."""

    def __init__(self, file: str, ahead: int) -> None:
        self._file, self._ahead = file, ahead

    def events(self, log: Iterator[LogEvent]) -> Iterator[LogEvent]:
        """A packed transaction comes without its bytes behind what is in it."""
        for event in log:
            if event.kind in log_events.CHANGES_FILE and log_events.next_file(event) != self._file:
                self._file, self._ahead = log_events.next_file(event), 0
            if event.kind == log_events.PACKED_TRANSACTION:
                yield from self._inside(event)
            else:
                yield event._replace(ahead=self._ahead) if self._ahead else event

    def _inside(self, event: LogEvent) -> Iterator[LogEvent]:
        number, tables = 0, dict[int, TableMap]()
        for one in unpacked_events(event.body):
            yield one._replace(size=event.size, end=event.end, number=number, ahead=self._ahead)
            number += _numbers(one, tables)
        self._ahead += max(0, number - event.size)
        yield event._replace(body=b"", ahead=self._ahead)


def _numbers(event: LogEvent, tables: dict[int, TableMap]) -> int:
    """How many it takes. Rows that cannot be told apart are told of as one."""
    if event.kind == log_events.TABLE_MAP:
        tables[table_maps.number_of(event)] = table_maps.table_map(event, _any_charset, is_mariadb=False)
    elif event.kind in log_events.ROWS and event.kind != log_events.PARTIAL_UPDATE:
        table, rows = tables.get(table_maps.number_of(event)), log_events.rows_of(event)
        if table is not None and rows.is_whole and not table.unfit:
            return max(1, table.count(rows))
    return 1


def _any_charset(collation: int) -> str:
    return ""


def unpacked_events(body: bytes) -> Iterator[LogEvent]:
    """Piece by piece: it may be larger than memory. Raises DamagedLog where it is not whole."""
    said, begin = log_events.packed_parts(body)
    reader, size = _reader(said.get(log_events.PACKED_BY, log_events.ZSTD), memoryview(body)[begin:]), 0
    while head := _read(reader, HEADER):
        whole = log_events.size_of(head)
        data = head + _read(reader, max(0, whole - HEADER))
        if len(data) != whole:
            raise DamagedLog("a packed transaction is cut off")
        size += len(data)
        yield log_events.parsed(data, checked=0)
    if size != said.get(log_events.UNPACKED_SIZE, size):
        raise DamagedLog("a packed transaction is not whole")


def _read(reader: Any, size: int) -> bytes:
    import zstandard

    try:
        return bytes(reader.read(size))
    except zstandard.ZstdError as error:
        raise DamagedLog(f"a packed transaction cannot be unpacked: {error}") from None


def _reader(packed_by: int, data: memoryview) -> Any:
    import zstandard

    if packed_by == log_events.NOT_PACKED:
        return io.BytesIO(data)
    if packed_by != log_events.ZSTD:
        raise DamagedLog(f"a transaction is packed in an unknown way, of number {packed_by}")
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
