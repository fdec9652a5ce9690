"""What is read of a log whose events are written here, by hand."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import dropwhile
from typing import Any

import pytest

from connect_core.errors import DataError, Retriable
from connect_core.sdk.testing.driving import limit
from connect_core.sdk.values import Limit, SourceBatch
from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.change_writer import ChangeWriter
from connect_core.systems.mysql.binlog.log_events import LogEvent
from connect_core.systems.mysql.binlog.logged_tables import WantedLog
from connect_core.systems.mysql.binlog.reading import BinlogReader, Ending
from connect_core.systems.mysql.binlog.server_log import LogPlace
from connect_core.systems.mysql.binlog.snapshot_log import Note, chunk_note, end_note
from connect_core.systems.mysql.binlog.table_names import COPIES, NOTES
from connect_core.systems.tables import taken_events
from connect_core.systems.tables.snapshots import SnapshotProgress

CREATED = 1_700_000_000
NOTHING = SnapshotProgress()
ENGINES = {"orders": True, "counts": False, "gone": None}
"""Of tables whether they have transactions."""
FULL = bytes((1, 1, 0, 4, 3, 2)) + b"id" + bytes((8, 1, 0))
"""Behind a table: signs, names of columns, and which is the key."""


class Log:
    """Of a table `shop.orders` with one column of whole numbers."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []
        self.at = 4
        self._add(log_events.FORMAT, b"\x04\x00" + b"10.11-MariaDB".ljust(50, b"\0"), 100)

    def _add(self, kind: int, body: bytes, size: int = 40, at_s: int = CREATED) -> None:
        self.at += size
        self.events.append(LogEvent(kind, at_s, 1, size, self.at, 0, body))

    def begins(self, number: int, flags: int = 0) -> None:
        self._add(log_events.MARIADB_GTID, struct.pack("<QIB", number, 0, flags))

    def rows(self, *ids: int, described: bytes = FULL, present: int = 1, table: str = "orders", kind: int = 23) -> None:
        names = b"\x04shop\0" + bytes((len(table),)) + table.encode() + b"\0"
        self._add(log_events.TABLE_MAP, bytes((9, 0, 0, 0, 0, 0, 1, 0)) + names + bytes((1, 3, 0, 0)) + described)
        images = b"".join(b"\0" + struct.pack("<i", one) for one in ids)
        head = bytes((9, 0, 0, 0, 0, 0, 1, 0)) if kind == 23 else bytes((9, 0, 0, 0, 0, 0, 1, 0, 2, 0))
        self._add(kind, head + bytes((1, present)) + images)

    def copies(self, begins: SnapshotProgress, last: int | None, *ids: int, named: bool = True) -> None:
        """Of a snapshot."""
        self._note(chunk_note(begins, 0), named=named)
        self.rows(*ids, table=COPIES)
        self._note(end_note(None if last is None else ("id int", str(last))))

    def _note(self, note: Note, *, named: bool = True) -> None:
        """As a table of two texts."""
        names = b"\x04shop\0" + bytes((len(NOTES),)) + NOTES.encode() + b"\0"
        described = bytes((2, 15, 252, 3)) + struct.pack("<HB", 64, 4) + b"\0"
        if named:
            described += bytes((2, 1, 8, 4, 15, 9)) + b"connector" + bytes((4,)) + b"said"
        self._add(log_events.TABLE_MAP, bytes((8, 0, 0, 0, 0, 0, 1, 0)) + names + described)
        said = note.text().encode()
        images = b"\0\x03one" + struct.pack("<I", len(said)) + said
        self._add(23, bytes((8, 0, 0, 0, 0, 0, 1, 0, 2, 3)) + images)

    def commits(self) -> None:
        self._add(log_events.XID, b"\0" * 8)

    def says(self, text: str) -> None:
        body = b"\0" * 8 + b"\4" + b"\0" * 4 + b"shop\0" + text.encode()
        self._add(log_events.QUERY, body)

    def goes_on_in(self, number: int, *, torn: bool = False) -> None:
        """As after a crash: nothing in the file says so, or it ends within an event."""
        name = f"bin.{number:06}"
        rotates = LogEvent(log_events.ROTATE, 0, 1, 40, 0, log_events.ARTIFICIAL, b"\0" * 8 + name.encode())
        self.events.append(log_events.torn(name) if torn else rotates)
        self.at = 4
        self._add(log_events.FORMAT, b"\x04\x00" + b"10.11-MariaDB".ljust(50, b"\0"), 100, CREATED + 9)

    def unknown(self) -> None:
        self._add(199, b"")

    def ends(self, file: str, place: int) -> Iterator[LogEvent]:
        """From this place on, as a server gives it: the first event of the file comes again."""
        begins = [one for one in self.events if one.kind == log_events.FORMAT][int(file[-1]) - 1]
        at = self.events.index(begins)
        yield begins._replace(end=0)
        yield from dropwhile(lambda one: 0 < one.end <= place, self.events[at + 1 :])
        while True:
            yield LogEvent(log_events.HEARTBEAT, 0, 1, 40, self.at, 0, b"")


class SlowLog(Log):
    connects_in_s = 0.3

    def ends(self, file: str, place: int) -> Iterator[LogEvent]:
        time.sleep(self.connects_in_s)
        yield from super().ends(file, place)


def read(
    log: Log,
    created: int = CREATED,
    begin: int = 4,
    most: int = 1_000,
    progress: SnapshotProgress = NOTHING,
    until: Limit | None = None,
) -> list[SourceBatch]:
    wanted = WantedLog(
        lambda name: name.table in ENGINES,
        frozenset(),
        lambda number: "utf8mb4",
        lambda name: ENGINES.get(name.table, True),
        ours="shop",
        connector="one",
    )
    at = Ending(LogPlace(1, 4), "bin.000001", created, progress=progress)
    reader = BinlogReader(wanted, ChangeWriter("shop", schemas=False), at, LogPlace(1, begin).offset, "here")
    end = LogPlace(9, 4).offset
    idle_s = 9.0 if until else 0.0
    found = reader.batches(lambda at, place: nullcontext(log.ends(at, place)), end, most, until or limit(), idle_s)
    return list(found)


def ids(batches: list[SourceBatch]) -> list[int]:
    events: list[Any] = [json.loads(value) for one in batches for value in one.records.column("value").to_pylist()]
    return [one["after"]["id"] for one in events]


def values(batches: list[SourceBatch]) -> list[bytes]:
    return [value for one in batches for value in one.records.column("value").to_pylist()]


def refused(batches: list[SourceBatch]) -> list[str]:
    return [reject.message for one in batches for reject in one.rejects]


def test_a_transaction_is_read_and_the_next_place_is_its_end() -> None:
    log = Log()
    log.begins(1)
    log.rows(1, -2)
    log.commits()
    batches = read(log)
    assert ids(batches) == [1, -2]
    assert batches[-1].next_offset == LogPlace(1, log.at).offset


def test_the_first_transaction_comes_also_when_the_quantum_is_over() -> None:
    """Connecting alone may take as long, on a busy host."""
    log = SlowLog()
    for number in (1, 2, 3):
        log.begins(number)
        log.rows(number)
        log.commits()
    assert ids(read(log, until=limit(SlowLog.connects_in_s))) == [1]


def test_nothing_is_waited_for_when_the_quantum_is_over() -> None:
    assert read(SlowLog(), until=limit(SlowLog.connects_in_s)) == []


def test_what_a_crash_has_cut_off_never_comes() -> None:
    log = Log()
    log.begins(1)
    log.rows(1)
    log.commits()
    log.begins(2)
    log.rows(2)
    log.goes_on_in(2)
    log.begins(3)
    log.rows(3)
    log.commits()
    batches = read(log)
    assert (ids(batches), refused(batches)) == ([1, 3], [])


def test_what_a_crash_has_cut_off_never_comes_of_a_large_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_events, "MOST_EVENTS", 1)
    log = Log()
    log.begins(2)
    log.rows(2)
    log.rows(3)
    log.goes_on_in(2)
    log.begins(3)
    log.rows(4)
    log.commits()
    assert ids(read(log)) == [4]


def test_a_file_that_ends_within_an_event_is_passed_when_the_next_one_has_said_what_was_before_it() -> None:
    """Who goes on behind its first event would not hear that."""
    log = Log()
    log.begins(1)
    log.rows(1)
    log.commits()
    before = LogPlace(1, log.at).offset
    log.begins(2)
    log.goes_on_in(2, torn=True)
    assert read(log)[-1].next_offset == before


@pytest.mark.parametrize("most", [1, 2, 1_000])
def test_what_is_rolled_back_never_comes(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(taken_events, "MOST_EVENTS", most)
    log = Log()
    log.begins(1)
    log.rows(1, 2)
    log.rows(3, table="counts")
    log.says("ROLLBACK")
    log.begins(2)
    log.rows(4)
    log.commits()
    assert ids(read(log)) == [3, 4]


@pytest.mark.parametrize("most", [1, 2, 3, 1_000])
def test_what_is_rolled_back_to_a_savepoint_never_comes(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(taken_events, "MOST_EVENTS", most)
    log = Log()
    log.begins(1)
    log.rows(1)
    log.says("SAVEPOINT `a`")
    log.rows(2)
    log.says("SAVEPOINT `b`")
    log.rows(3, table="counts")
    log.says("SAVEPOINT `B`")
    log.rows(4)
    log.says("ROLLBACK TO `b`")
    log.rows(5)
    log.says("ROLLBACK WORK TO SAVEPOINT a")
    log.rows(6)
    log.commits()
    assert ids(read(log)) == [1, 3, 6]


def test_an_event_is_the_same_whether_its_transaction_is_torn_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    log.begins(1)
    log.rows(1)
    log.says("SAVEPOINT `a`")
    log.rows(2)
    log.says("ROLLBACK TO `a`")
    log.rows(3)
    log.commits()
    once = values(read(log))
    monkeypatch.setattr(taken_events, "MOST_EVENTS", 1)
    assert values(read(log)) == once


def test_whether_a_row_stands_of_a_table_that_nobody_sees_is_told() -> None:
    log = Log()
    log.begins(1)
    log.rows(1, table="gone")
    log.says("ROLLBACK")
    batches = read(log)
    assert ids(batches) == []
    [why] = refused(batches)
    assert "was rolled back" in why


def test_a_table_that_gets_a_history_on_the_way_is_left_out_from_there_on_and_told() -> None:
    log = Log()
    log.begins(1)
    log.rows(1)
    log.commits()
    log.begins(2, flags=1)
    log.says("ALTER TABLE orders ADD SYSTEM VERSIONING")
    log.begins(3)
    log.rows(2)
    log.rows(2)
    log.commits()
    log.begins(4, flags=1)
    log.says("ALTER TABLE orders DROP SYSTEM VERSIONING")
    log.begins(5)
    log.rows(3)
    log.commits()
    batches = read(log)
    assert ids(batches) == [1, 3]
    assert ["system-versioned" in why for why in refused(batches)] == [True, True]


def test_rows_without_names_are_told() -> None:
    log = Log()
    log.begins(1)
    log.rows(1, described=b"")
    log.commits()
    [why] = refused(read(log))
    assert "binlog_row_metadata" in why


def test_rows_without_a_column_are_told() -> None:
    log = Log()
    log.begins(1)
    log.rows(1, present=0)
    log.commits()
    [why] = refused(read(log))
    assert "binlog_row_image" in why


def test_rows_with_parts_of_values_are_told() -> None:
    log = Log()
    log.begins(1)
    log.rows(1, kind=log_events.PARTIAL_UPDATE)
    log.commits()
    [why] = refused(read(log))
    assert "binlog_row_value_options" in why


def test_an_event_that_is_not_known_ends_the_reading() -> None:
    log = Log()
    log.unknown()
    with pytest.raises(DataError, match="of kind 199, which is not known"):
        read(log)


def test_a_file_that_was_begun_at_another_time_is_not_read() -> None:
    with pytest.raises(Retriable, match="begun again"):
        read(Log(), created=CREATED - 1)


def test_what_was_delivered_is_left_out() -> None:
    log = Log()
    log.begins(1)
    log.rows(1, 2, 3)
    log.commits()
    spot = log.events[-2].end - log.events[-2].size
    assert ids(read(log, begin=spot + 2)) == [3]


ALL = SnapshotProgress.of((("shop", "orders"),))
SOME = SnapshotProgress.of((("shop", "orders"),), ("id int", "2"))


def test_rows_of_a_snapshot_come_at_their_place_among_the_changes() -> None:
    log = Log()
    log.begins(1)
    log.rows(9)
    log.commits()
    log.begins(2)
    log.copies(ALL, 2, 1, 2)
    log.commits()
    log.begins(3)
    log.rows(8)
    log.commits()
    log.begins(4)
    log.copies(SOME, None, 3)
    log.commits()
    events = [json.loads(one) for batch in read(log, progress=ALL) for one in batch.records.column("value").to_pylist()]
    assert [(one["op"], one["after"]["id"]) for one in events] == [("c", 9), ("r", 1), ("r", 2), ("c", 8), ("r", 3)]
    assert {one["source"]["table"] for one in events} == {"orders"}
    assert [one["source"]["snapshot"] for one in events] == ["false", *["incremental"] * 2, "false", "incremental"]


def test_a_chunk_that_a_crash_has_cut_off_comes_when_it_is_written_again() -> None:
    """Its rows were in the log, and its end."""
    log = Log()
    log.begins(1)
    log.copies(ALL, 2, 1, 2)
    log.goes_on_in(2)
    log.begins(2)
    log.copies(ALL, 2, 1, 2)
    log.commits()
    assert ids(read(log, progress=ALL)) == [1, 2]


def test_rows_of_a_snapshot_that_nobody_waits_for_are_left_out() -> None:
    log = Log()
    log.begins(1)
    log.copies(ALL, None, 1, 2)
    log.commits()
    assert ids(read(log)) == []


def test_a_chunk_of_which_nobody_can_read_what_is_said_is_left_out() -> None:
    log = Log()
    log.begins(1)
    log.copies(ALL, 2, 1, 2, named=False)
    log.commits()
    log.begins(2)
    log.copies(ALL, None, 1, 2)
    log.commits()
    assert ids(read(log, progress=ALL)) == [1, 2]
