"""MariaDB crashes while it writes a transaction: its file ends within an event, behind which it gives nothing. That was
never committed, so reading goes on in the next file; where a file was damaged otherwise, it says what may be lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core.errors import DataError, WaybillError
from connect_core.sdk.values import Position
from connect_core.systems.mysql.binlog.log_events import FIRST_EVENT
from connect_core.systems.mysql.binlog.server_log import number_of_file, offset_of
from tests.mariadb import Database, MariaDB, running
from tests.mysql import ONLY_MARIADB
from tests.mysql_streams import Stream, crash_with, newest_file

pytestmark = [pytest.mark.server, ONLY_MARIADB]

GTID_BYTES = 42


@pytest.fixture(scope="module")
def server(worker_folder: Path) -> Iterator[MariaDB]:
    yield from running(MariaDB(worker_folder / "torn", settings={"max_allowed_packet": "64M"}))


@pytest.fixture
def database(server: MariaDB) -> Database:
    made = Database(server)
    made.run("CREATE TABLE orders (id int PRIMARY KEY, words longtext)")
    return made


def crashes_in(database: Database, statement: str, written: int) -> None:
    """When it has written so many bytes of the statement's transaction."""
    name, begin = newest_file(database)
    database.run(statement)
    assert newest_file(database)[1] > begin + written
    crash_with(database.server, name, begin + written)


@pytest.mark.parametrize(
    "written",
    [10, 30, GTID_BYTES, 5_000, 20_000_000],
    ids=["in a head", "in the first event", "behind the first event", "in rows", "in a transaction that is read twice"],
)
def test_what_was_never_committed_does_not_come_and_what_follows_does(database: Database, written: int) -> None:
    stream = Stream(database)
    database.run("INSERT INTO orders VALUES (1, '')")
    crashes_in(database, "INSERT INTO orders SELECT seq, REPEAT('x', 8000000) FROM seq_100_to_103", written)
    database.run("INSERT INTO orders VALUES (2, '')")
    stream.reads()
    assert stream.ids == [1, 2]
    database.run("INSERT INTO orders VALUES (3, '')")
    stream.reads()
    assert stream.ids == [1, 2, 3]


def test_reading_begins_in_a_file_that_ends_so(database: Database) -> None:
    """All that was there before was read, and the number of what was never committed is given out again."""
    stream = Stream(database)
    database.run("INSERT INTO orders VALUES (1, '')")
    stream.reads()
    crashes_in(database, "INSERT INTO orders VALUES (100, REPEAT('x', 10000))", 5_000)
    for following in (2, 3):
        database.run(f"INSERT INTO orders VALUES ({following}, '')", "FLUSH BINARY LOGS")
    stream.reads()
    assert stream.ids == [1, 2, 3]


def test_a_file_that_lacks_what_the_next_one_counts_is_damaged(database: Database) -> None:
    stream = Stream(database)
    database.run("INSERT INTO orders VALUES (1, '')")
    name, begin = newest_file(database)
    database.run("INSERT INTO orders VALUES (2, REPEAT('x', 10000))", "FLUSH BINARY LOGS")
    following, _ = newest_file(database)
    database.run("INSERT INTO orders VALUES (3, '')")
    crash_with(database.server, name, begin + 5_000)
    with pytest.raises(DataError) as told:
        stream.reads()
    counts = f"{name} ends within an event, and {following} counts transactions that were not read: 0-"
    assert counts in str(told.value)
    place = offset_of(number_of_file(following), FIRST_EVENT)
    assert f"waybill offsets set NAME PARTITION {place}" in told.value.next_step


def test_where_nobody_knows_what_was_read_a_file_that_ends_so_is_damaged(database: Database) -> None:
    stream = Stream(database)
    database.run("INSERT INTO orders VALUES (1, '')")
    stream.reads()
    at = stream.at
    assert at is not None
    stream.at = Position(at.incarnation, at.offset, {**at.evidence, "gtids": None})
    crashes_in(database, "INSERT INTO orders VALUES (100, REPEAT('x', 10000))", 5_000)
    with pytest.raises(DataError, match="ends within an event, and nobody knows which transactions were read"):
        stream.reads()


def test_the_newest_file_has_no_next_one(database: Database) -> None:
    """It was damaged while the server writes it."""
    stream = Stream(database)
    name, begin = newest_file(database)
    database.run("INSERT INTO orders VALUES (1, REPEAT('x', 10000))")
    os.truncate(database.server.folder / "data" / name, begin + 5_000)
    with pytest.raises(WaybillError) as told:
        stream.reads()
    assert name in str(told.value)
    database.run("FLUSH BINARY LOGS")
