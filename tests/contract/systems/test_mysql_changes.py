"""The changes of a table of MariaDB in the suite of sources."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from connect_core.errors import Failure, WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.testing.sources import SourceContract
from connect_core.sdk.values import OPEN_END, Bounds, Position, Range, SourceBatch
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.source import MysqlChangesSource
from connect_core.systems.tables import taken_events
from tests.faults.kit.processes import wait_for
from tests.mariadb import Database, MariaDB

pytestmark = pytest.mark.server

BUSY_S = 10.0


class OfBodies(MysqlChangesSource):
    """The suite compares values: those of the column `body` alone. An unread partition begins at a place that the case
    knows."""

    begin: Position | None = None

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return super().available_offsets({one: at or self.begin for one, at in known.items()})

    def _batches(self, wanted: Range, limit: Any, idle_s: float) -> Iterator[SourceBatch]:
        for batch in super()._batches(wanted, limit, idle_s):
            records = batch.records
            bodies = [json.loads(value)["after"]["body"].encode() for value in records.column("value").to_pylist()]
            place = records.schema.get_field_index("value")
            yield replace(batch, records=records.set_column(place, "value", pa.array(bodies, pa.binary())))


class ChangesCase:
    unkept = frozenset({"null", "every byte", "not text"})
    """A text column holds texts."""

    def __init__(self, database: Database, **more: Any) -> None:
        self.database = database
        self.partition = Partition(database.name)
        usual = {"tables": ["rows_"], "every_s": 0.02, "snapshot": "never", "schemas": False, "uid": database.name}
        self.options = {**database.options, **usual, **more}
        database.run("CREATE TABLE rows_ (id bigint AUTO_INCREMENT PRIMARY KEY, body longtext)")
        [seen] = self.whole().available_offsets({self.partition: None}).values()
        if seen.failure:
            raise seen.failure.as_error()
        self.begin = Position(0, seen.begin, seen.evidence)

    def source(self) -> MysqlChangesSource:
        made = OfBodies(MysqlChangesOptions.model_validate(self.options))
        made.begin = self.begin
        return made

    def whole(self) -> MysqlChangesSource:
        return MysqlChangesSource(MysqlChangesOptions.model_validate(self.options))

    def append(self, values: Sequence[bytes | None]) -> None:
        with closing(self.database.connected()) as connection, connection.cursor() as writing:
            connection.begin()
            for value in values:
                writing.execute("INSERT INTO rows_ (body) VALUES (%s)", ((value or b"").decode(),))
            connection.commit()

    def break_(self) -> None:
        self.options = {**self.options, "host": "127.0.0.1", "port": 1}


@pytest.fixture
def system(mariadb: MariaDB) -> ChangesCase:
    return ChangesCase(Database(mariadb))


class TestTheStream(SourceContract):
    steps = 20


@pytest.mark.parametrize("rows", [1, 3, 1_000])
def test_a_torn_transaction_goes_on_where_it_was(mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """With the same bytes as when it is read at once, and with the statements between transactions."""
    system = ChangesCase(Database(mariadb), schema_changes=True)
    system.append([b"%d" % one for one in range(10)])
    system.database.run("ALTER TABLE rows_ ADD COLUMN more int", "CREATE INDEX i ON rows_ (more)")
    system.append([b"last"])
    source = system.whole()
    [seen] = source.available_offsets({system.partition: system.begin}).values()
    once = [one for batch in source.read(range_of(system.partition, seen), limit()) for one in values(batch)]
    assert len(once) == 13
    monkeypatch.setattr(taken_events, "MOST_EVENTS", rows)
    at, told = system.begin, list[bytes]()
    while at.offset < seen.end:
        source = system.whole()
        [bounds] = source.available_offsets({system.partition: at}).values()
        wanted = range_of(system.partition, bounds, max_records=4)
        behind = wanted.begin
        for batch in source.read(wanted, limit()):
            told += values(batch)
            behind = batch.next_offset
        assert behind > wanted.begin
        at = Position(0, behind, source.evidence(wanted, behind))
    assert told == once


def values(batch: SourceBatch) -> list[bytes]:
    return batch.records.column("value").to_pylist()


def test_two_readers_with_one_number_are_told_so(system: ChangesCase) -> None:
    """The later one reads on: it may be the next attempt of the same connector."""
    [seen] = system.source().available_offsets({system.partition: system.begin}).values()
    live = replace(range_of(system.partition, seen), end=OPEN_END)
    first, second = (iter(system.source().follow([live], limit(), 10)) for _ in range(2))
    system.append([b"a"])
    assert len(batch_in(next(first)).records) == 1
    assert len(batch_in(next(second)).records) == 1
    _, failure = next(first)
    assert isinstance(failure, Failure)
    assert "Another reader has taken over server_id" in str(failure.as_error())
    system.append([b"b"])
    assert len(batch_in(next(second)).records) == 1


def test_a_session_that_the_server_ends_is_an_error(system: ChangesCase) -> None:
    """And not the end of what there is."""
    [seen] = system.source().available_offsets({system.partition: system.begin}).values()
    live = replace(range_of(system.partition, seen), end=OPEN_END)
    following = iter(system.source().follow([live], limit(), 10))
    system.append([b"a"])
    assert len(batch_in(next(following)).records) == 1
    asked = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump' AND DB = %s"
    for (number,) in system.database.run(asked.replace("%s", f"'{system.database.name}'")):
        system.database.run(f"KILL {number}")
    _, failure = next(following)
    assert isinstance(failure, Failure)


def batch_in(followed: Followed) -> SourceBatch:
    _, batch = followed
    assert isinstance(batch, SourceBatch), batch
    return batch


def test_changes_beside_a_busy_writer_come_before_it_pauses(mariadb: MariaDB) -> None:
    """Where one transaction follows the other, the server has never nothing to send."""
    case = ChangesCase(Database(mariadb))
    stop = threading.Event()

    def write() -> None:
        until = time.monotonic() + BUSY_S
        with closing(case.database.connected()) as connection, connection.cursor() as writing:
            while not stop.wait(0.002) and time.monotonic() < until:
                writing.execute("INSERT INTO rows_ (body) VALUES ('x')")

    source, writer = case.whole(), threading.Thread(target=write)
    writer.start()
    wait_for(lambda: bool(case.database.run("SELECT 1 FROM rows_ LIMIT 1")), "the first row")
    [seen] = source.available_offsets({case.partition: case.begin}).values()
    live = replace(range_of(case.partition, seen, max_records=100_000), end=OPEN_END)
    batch = next(iter(source.read(live, limit())))
    is_busy = writer.is_alive()
    stop.set()
    writer.join()
    assert is_busy
    assert 0 < len(batch.records) < 1_000


def test_a_server_that_does_not_answer_ends_the_wait(system: ChangesCase) -> None:
    """The window may be over then: it would end well."""
    [seen] = system.source().available_offsets({system.partition: system.begin}).values()
    system.break_()
    with pytest.raises(WaybillError):
        system.source().wait({system.partition: seen}, 5)


def test_a_server_that_stands_still_is_an_error(system: ChangesCase, mariadb: MariaDB) -> None:
    """Before the lane's own time is over, which would say nothing of the server."""
    [seen] = system.source().available_offsets({system.partition: system.begin}).values()
    live = replace(range_of(system.partition, seen), end=OPEN_END)
    following = iter(system.source().follow([live], limit(12.0, 4.0), 10))
    system.append([b"a"])
    assert len(batch_in(next(following)).records) == 1
    assert mariadb.process is not None
    goes_on = threading.Timer(8.0, os.kill, (mariadb.process.pid, signal.SIGCONT))
    os.kill(mariadb.process.pid, signal.SIGSTOP)
    goes_on.start()
    try:
        _, failure = next(following)
    finally:
        goes_on.cancel()
        os.kill(mariadb.process.pid, signal.SIGCONT)
    assert isinstance(failure, Failure)
    assert "the server no longer answers" in str(failure.as_error())
