"""What the log says of a snapshot, up to a place."""

from __future__ import annotations

from connect_core.systems.mysql.binlog.snapshot_log import (
    Note,
    SnapshotReader,
    chunk_note,
    end_note,
    later_note,
    request_note,
)
from connect_core.systems.mysql.binlog.table_names import COPIES, TableName
from connect_core.systems.tables.snapshots import DueTable, Key, Place, SnapshotProgress, SnapshotRequest

ORDERS, ITEMS = ("shop", "orders"), ("sales", "items")
BEGIN = SnapshotProgress.of((ORDERS, ITEMS))
KEY = ("id int(11)", "7")
COPY = TableName("shop", COPIES)
ALL, SOME = DueTable(ORDERS, ""), DueTable(ORDERS, "id > 3")
"""For which somebody has asked."""


def reader(progress: SnapshotProgress = BEGIN) -> SnapshotReader:
    return SnapshotReader("one", "shop", progress)


def chunk(of: SnapshotReader, begins: SnapshotProgress, last: Key | None, *, commits: bool = True) -> str:
    """The table whose rows these copies are; empty: they are not taken."""
    of.transaction_begins()
    of.hear("one", chunk_note(begins, 0).text())
    origin = of.origin(COPY)
    of.hear("one", end_note(last).text())
    if commits:
        of.transaction_ended()
    return ".".join(origin) if origin else ""


def test_chunks_come_one_behind_the_other() -> None:
    log = reader()
    assert chunk(log, BEGIN, KEY) == "shop.orders"
    assert log.progress == SnapshotProgress.of((ORDERS, ITEMS), KEY)
    assert chunk(log, log.progress, None) == "shop.orders"
    assert log.progress == SnapshotProgress.of((ITEMS,))
    assert chunk(log, log.progress, None) == "sales.items"
    assert log.progress == SnapshotProgress()


def test_one_that_begins_elsewhere_is_left_out() -> None:
    log = reader()
    assert chunk(log, SnapshotProgress.of((ITEMS,)), None) == ""
    assert chunk(log, SnapshotProgress.of((ORDERS,), KEY), None) == ""
    assert log.progress == BEGIN


def test_a_table_that_is_to_be_read_later_is_read_behind_the_others_from_its_begin() -> None:
    log = reader(SnapshotProgress.of((ORDERS, ITEMS), KEY))
    note = later_note(log.progress, 0)
    assert note.is_next(log.progress)
    for _ in range(2):  # of two drivers that both say it
        log.transaction_begins()
        log.hear("one", note.text())
        log.transaction_ended()
        assert log.progress == SnapshotProgress.of((ITEMS, ORDERS))
    assert chunk(log, log.progress, None) == "sales.items"
    assert chunk(log, log.progress, KEY) == "shop.orders"


def test_one_that_was_cut_off_has_not_come() -> None:
    log = reader()
    chunk(log, BEGIN, KEY, commits=False)
    assert log.progress == BEGIN
    assert chunk(log, BEGIN, KEY) == "shop.orders"


def test_what_is_said_to_another_connector_is_not_heard() -> None:
    log = reader()
    log.transaction_begins()
    log.hear("two", chunk_note(BEGIN, 0).text())
    assert log.origin(COPY) is None
    log.hear("two", request_note(SnapshotRequest((ALL,))).text())
    log.transaction_ended()
    assert log.progress == BEGIN


def told(log: SnapshotReader, *tables: DueTable, cancelled: tuple[Place, ...] = ()) -> SnapshotProgress:
    """Behind this request."""
    log.transaction_begins()
    log.hear("one", request_note(SnapshotRequest(tables, cancelled)).text())
    log.transaction_ended()
    return log.progress


def test_a_request_comes_behind_what_is_being_read() -> None:
    log = reader(SnapshotProgress.of((ORDERS,), KEY))
    assert told(log, DueTable(ITEMS, ""), ALL) == SnapshotProgress((DueTable(ORDERS), DueTable(ITEMS, ""), ALL), KEY)


def test_what_was_asked_for_is_cancelled_and_what_the_connector_begins_with_is_not() -> None:
    log = reader(SnapshotProgress((SOME, DueTable(ITEMS), ALL, DueTable(ORDERS)), KEY))
    left = SnapshotProgress((DueTable(ITEMS), DueTable(ORDERS)))
    assert told(log, cancelled=(ORDERS,)) == left
    assert told(log, cancelled=(ORDERS, ITEMS)) == left, "once more it changes nothing"
    assert told(log, SOME) == left.with_more([SOME]), "what is asked for behind it comes"


def test_a_chunk_of_a_condition_that_was_cancelled_comes_no_more() -> None:
    begins = SnapshotProgress((SOME, ALL))
    log = reader(begins)
    assert chunk(log, begins, KEY) == "shop.orders"
    written_before = log.progress
    told(log, ALL, cancelled=(ORDERS,))
    assert chunk(log, written_before, None) == ""
    assert chunk(log, begins, None) == "", "all rows are due, and not those of a condition"
    assert log.progress == SnapshotProgress((ALL,))


def test_other_tables_have_no_copies() -> None:
    log = reader()
    log.transaction_begins()
    log.hear("one", chunk_note(BEGIN, 0).text())
    assert log.origin(TableName("other", COPIES)) is None


def test_a_note_is_the_same_when_it_is_read() -> None:
    for one in (
        chunk_note(SnapshotProgress.of((ORDERS,), KEY), 3),
        end_note(None),
        end_note(KEY),
        chunk_note(SnapshotProgress((SOME, ALL), KEY), 3),
        request_note(SnapshotRequest((DueTable(ITEMS, ""), SOME))),
        request_note(SnapshotRequest(cancelled=(ORDERS, ITEMS))),
    ):
        assert Note.parse(one.text()) == one
