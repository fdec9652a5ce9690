"""Tables that SQLAlchemy reaches in the suite of sources, and what may happen to a table that is read."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from connect_core.errors import ConfigError, DataError
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.sources import SourceContract
from connect_core.sdk.values import Position, Range, SourceBatch
from connect_core.systems.sql.source import SqlSource, rows_of
from connect_core.systems.sql.source_guarantee import source_guarantee
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.tables.reading import TableRows
from tests.elsewhere import URL, Elsewhere
from tests.sqlite_files import Database

SETTLE_S = 0.3


class OfBodies(SqlSource):
    """The suite compares values: those of the column `body` alone."""

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        found = super()._page(wanted, begin, end, most, most_bytes)
        records = found.records
        bodies = [json.loads(value)["body"].encode() for value in records.column("value").to_pylist()]
        place = records.schema.get_field_index("value")
        return replace(found, records=records.set_column(place, "value", pa.array(bodies, pa.binary())))


class FileCase:
    unkept = frozenset({"null", "every byte", "not text"})
    """A row is an object of JSON, and its text column holds texts."""
    partition = Partition("t")

    def __init__(self, folder: Path) -> None:
        self.path = folder / "shop.db"
        self.options: dict[str, Any] = {"url": f"sqlite:///{self.path}", "table": "t", "every_s": 0.02}
        self.make()

    def make(self, columns: str = "id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT") -> None:
        self.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t ({columns})")

    def connected(self) -> sqlite3.Connection:
        return Database(self.path).connected()

    def run(self, *statements: str) -> list[Any]:
        return Database(self.path).run(*statements)

    def source(self, **more: Any) -> TableRows[Any]:
        return OfBodies(SqlSourceOptions.model_validate({**self.options, **more}))

    def whole(self, **more: Any) -> TableRows[Any]:
        return rows_of(SqlSourceOptions.model_validate({**self.options, "bulk": True, **more}))

    def append(self, values: Sequence[bytes | None]) -> None:
        with closing(self.connected()) as database:
            database.execute("BEGIN")
            database.executemany("INSERT INTO t (body) VALUES (?)", [((one or b"").decode(),) for one in values])
            database.execute("COMMIT")

    def break_(self) -> None:
        self.path.rename(self.path.with_name("moved.db"))


class ServerCase(FileCase):
    unkept = frozenset({"null", "every byte", "not text", "NUL"})

    def __init__(self, database: Elsewhere) -> None:
        self.database = database
        self.options = {"url": URL, "table": "t", "every_s": 0.02, "settle_s": SETTLE_S}
        self.make("id bigserial PRIMARY KEY, body text")

    def run(self, *statements: str) -> list[Any]:
        return self.database.run(*statements)

    def append(self, values: Sequence[bytes | None]) -> None:
        with self.database.made().begin() as connection:
            rows = [{"body": (one or b"").decode()} for one in values]
            connection.execute(sa.text("INSERT INTO t (body) VALUES (:body)"), rows)

    def break_(self) -> None:
        self.database.away = True


@pytest.fixture
def file(tmp_path: Path) -> FileCase:
    return FileCase(tmp_path)


@pytest.fixture
def server(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> ServerCase:
    return ServerCase(Elsewhere(postgres_url, monkeypatch))


class _Table(SourceContract):
    idle_timeout_s = 0.05

    @pytest.fixture
    def live(self) -> Range:
        pytest.skip("no range of a table is live: each has an end below which nothing comes")


class TestTheTable(_Table):
    @pytest.fixture
    def system(self, file: FileCase) -> FileCase:
        return file


@pytest.mark.server
class TestATableOfAServer(_Table):
    steps = 12

    @pytest.fixture
    def system(self, server: ServerCase) -> ServerCase:
        return server


def bodies(found: Sequence[bytes | None]) -> list[str]:
    return [json.loads(one or b"{}")["body"] for one in found]


def test_no_row_is_passed_over_beside_writers_of_a_file(file: FileCase) -> None:
    """Several side by side; some of their transactions take a while, and some are rolled back."""
    file.run("PRAGMA journal_mode = WAL")
    ends = threading.Event()

    def write(writer: int) -> None:
        with closing(file.connected()) as database:
            for number in range(30):
                database.execute("BEGIN IMMEDIATE")
                database.execute("INSERT INTO t (body) VALUES (?)", (f"{writer}/{number}",))
                time.sleep(0.002 * (number % 3))
                database.execute("ROLLBACK" if number % 10 == 9 else "COMMIT")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    found, positions = list[bytes | None](), dict[Partition, Position | None]()
    while not ends.is_set():
        if not any(thread.is_alive() for thread in threads):
            ends.set()
        follower = Follower(file.source(), positions)
        found += follower.run()
        positions = follower.positions
    there = [body.encode() for (body,) in file.run("SELECT body FROM t ORDER BY id")]
    assert found == there
    assert len(there) == 4 * 27


@pytest.mark.server
def test_a_row_of_a_transaction_that_is_open_comes_on_a_server(server: ServerCase) -> None:
    """One that ends within settle_s."""
    with server.database.made().connect() as late:
        late.exec_driver_sql("INSERT INTO t (body) VALUES ('first')")
        server.append([b"second"])
        source = server.source()
        timer = threading.Timer(SETTLE_S / 2, late.commit)
        timer.start()
        follower = Follower(source)
        assert follower.run() == [b"first", b"second"]
        timer.join()


@pytest.mark.server
def test_a_server_needs_a_delay(server: ServerCase) -> None:
    with pytest.raises(ValueError, match="nobody knows which transactions are open: write settle_s"):
        server.source(settle_s=None)


def test_a_file_needs_none(file: FileCase) -> None:
    with pytest.raises(ValueError, match="settle_s is of a server"):
        file.source(settle_s=3)


@pytest.mark.parametrize("more", [{}, {"timestamp": "at"}, {"bulk": True}])
def test_only_numbers_that_say_what_is_new_have_to_ascend(file: FileCase, more: dict[str, Any]) -> None:
    file.make("id TEXT PRIMARY KEY, at DATETIME NOT NULL")
    with pytest.raises(ConfigError) as raised:
        rows_of(SqlSourceOptions.model_validate(file.options | more)).available_offsets({file.partition: None})
    assert ("need not ascend" in raised.value.next_step) == bool(more)


@pytest.mark.parametrize(
    "more", [{}, {"timestamp": "at"}, {"bulk": True}, {"query": "q"}, {"query": "q", "timestamp": "at"}]
)
def test_what_is_promised_of_a_file_says_nothing_of_servers(file: FileCase, more: dict[str, Any]) -> None:
    conditions = " ".join(source_guarantee(file.options | more).conditions)
    assert "server" not in conditions
    assert "clock of the database" not in conditions


def test_numbers_that_come_again_stop_the_source(file: FileCase) -> None:
    file.make("id INTEGER PRIMARY KEY, body TEXT")
    file.append([b"one", b"two"])
    follower = Follower(file.source())
    assert follower.run() == [b"one", b"two"]
    file.run("DELETE FROM t WHERE id = 2")
    with pytest.raises(DataError, match=r"to 2, if its newest rows were deleted.* AUTOINCREMENT"):
        Follower(file.source(), follower.positions).run()
    again = Follower(file.source(), {file.partition: Position(0, 2, {})})
    file.append([b"two again"])
    assert again.run() == [b"two again"]


def test_with_autoincrement_newest_rows_may_go(file: FileCase) -> None:
    file.append([b"one", b"two"])
    follower = Follower(file.source())
    assert follower.run() == [b"one", b"two"]
    file.run("DELETE FROM t")
    assert Follower(file.source(), follower.positions).run() == []
    file.append([b"three"])
    assert Follower(file.source(), follower.positions).run() == [b"three"]


def test_a_file_of_before_stops_the_source(file: FileCase) -> None:
    """A backup was put in its place: its next rows would have numbers that were read."""
    file.append([b"one"])
    before = file.path.read_bytes()
    file.append([b"two"])
    follower = Follower(file.source())
    follower.run()
    file.path.write_bytes(before)
    with pytest.raises(DataError, match="or the table or the file is another one"):
        Follower(file.source(), follower.positions).run()


@pytest.mark.parametrize("more", ["", " AUTOINCREMENT"])
def test_a_table_made_again_is_not_forgotten_when_its_numbers_have_passed(file: FileCase, more: str) -> None:
    """Once a run has seen it: the rows between would come with numbers that nobody reads any more."""
    file.make(f"id INTEGER PRIMARY KEY{more}, body TEXT")
    file.append([b"1", b"2", b"3", b"4"])
    follower = Follower(file.source())
    follower.run()
    file.make(f"id INTEGER PRIMARY KEY{more}, body TEXT")
    file.append([b"new 1", b"new 2"])
    [plan] = file.source().available_offsets(follower.positions).values()
    assert [(gap.loses, gap.reason[:40]) for gap in plan.gaps] == [(True, "the numbers of column id were back at 2:")]
    again = Follower(file.source(), follower.positions)
    with pytest.raises(DataError, match="the highest number of the table is 2"):
        again.run()
    file.append([b"new 3"])
    with pytest.raises(DataError, match="the highest number of the table is 3"):
        again.run()
    file.append([b"new 4", b"new 5"])
    for _ in range(2):
        with pytest.raises(DataError, match=r"were back at 2 .* nobody has read, from number 3 on"):
            Follower(file.source(), again.positions).run()
    moved = Follower(file.source(), {file.partition: Position(0, 1, {})})
    assert moved.run() == [b"new 1", b"new 2", b"new 3", b"new 4", b"new 5"]


def test_a_table_made_again_and_again_is_remembered_by_its_lowest_numbers(file: FileCase) -> None:
    file.append([b"1", b"2", b"3", b"4"])
    follower = Follower(file.source())
    follower.run()
    for number in (3, 1):
        file.make()
        file.append([b"new"] * number)
        with pytest.raises(DataError, match=f"the highest number of the table is {number}"):
            follower.run()
    file.append([b"new"] * 4)
    with pytest.raises(DataError, match=r"were back at 1 .* from number 2 on"):
        follower.run()


def test_numbers_that_were_put_right_before_a_row_came_are_read_on(file: FileCase) -> None:
    file.append([b"1", b"2", b"3", b"4"])
    follower = Follower(file.source())
    follower.run()
    file.run("DELETE FROM t WHERE id > 2", "DELETE FROM sqlite_sequence")
    with pytest.raises(DataError, match="the highest number of the table is 2"):
        follower.run()
    file.run("INSERT INTO sqlite_sequence VALUES ('t', 4)")
    file.append([b"5"])
    assert follower.run() == [b"5"]


def test_a_range_that_is_open_does_not_stand_where_numbers_went_back(file: FileCase) -> None:
    """It is not finished with rows of another table, as long as that can be seen."""
    file.append([b"1", b"2", b"3", b"4"])
    [seen] = file.source().available_offsets({file.partition: None}).values()
    file.make()
    with pytest.raises(DataError, match="the highest number of the table is 0"):
        file.source().available_offsets({file.partition: Position(0, 3, seen.evidence)})


def test_a_row_that_no_record_can_have_is_a_reject_and_no_hole(file: FileCase) -> None:
    file.append([b"one"])
    file.run("INSERT INTO t (body) VALUES (x'00ff')", "INSERT INTO t (body) VALUES (CAST(x'ff41' AS TEXT))")
    file.run("INSERT INTO t (id, body) VALUES (9, 'nine')")
    source = file.source()
    [seen] = source.available_offsets({file.partition: None}).values()
    [batch] = source.read(range_of(file.partition, seen), limit())
    assert batch.records.column("offset").to_pylist() == [1, 9]
    assert [(one.offset, one.stage, one.original) for one in batch.rejects] == [
        (2, "read", b"\x00\xff"),
        (3, "read", b"\xffA"),
    ]
    assert "has bytes, or a number, in the place of a text" in batch.rejects[0].message
    assert batch.holes == ((4, 9),)


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ("id INTEGER PRIMARY KEY, body", {}, "Column body is of no type that is known, which is not kept exactly"),
        ("id TEXT PRIMARY KEY, body TEXT", {}, "The primary key of the table is not one column of whole numbers"),
        ("id INTEGER, body TEXT", {"incrementing": "id"}, "takes NULL, and such rows would never be read"),
        ("id INTEGER PRIMARY KEY DESC, body TEXT", {}, "takes NULL, and such rows would never be read"),
        ("id INTEGER NOT NULL, body TEXT", {"incrementing": "id"}, "No index of the table says that column id alone"),
        ("id INTEGER PRIMARY KEY, body TEXT", {"incrementing": "n"}, "The table has no column n"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(file: FileCase, columns: str, more: Any, words: str) -> None:
    file.make(columns)
    with pytest.raises(ConfigError, match=words):
        file.source(**more).available_offsets({file.partition: None})


def test_a_number_that_is_none_stops_the_source(file: FileCase) -> None:
    file.make("id BIGINT NOT NULL UNIQUE, body TEXT")
    file.run("INSERT INTO t VALUES (1, 'a'), ('2 or so', 'b')")
    with pytest.raises(DataError, match="no whole number"):
        file.source(incrementing="id").available_offsets({file.partition: None})


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.server)])
def case(request: pytest.FixtureRequest) -> FileCase:
    found: FileCase = request.getfixturevalue(request.param)
    return found


def test_each_run_reads_all_rows(case: FileCase) -> None:
    case.append([b"one", b"two", b"three"])
    follower = Follower(case.whole())
    assert bodies(follower.run()) == ["one", "two", "three"]
    case.run("UPDATE t SET body = 'changed' WHERE id = 2", "DELETE FROM t WHERE id = 1")
    again = Follower(case.whole(), follower.positions)
    assert bodies(again.run()) == ["changed", "three"]
    assert again.gaps == []


def test_a_pass_that_was_killed_is_finished_first(case: FileCase) -> None:
    case.append([b"%d" % number for number in range(1, 5)])
    [there] = case.whole().available_offsets({case.partition: None}).values()
    follower = Follower(case.whole(), {case.partition: Position(there.incarnation, 3, there.evidence)})
    assert bodies(follower.run()) == ["3", "4", "1", "2", "3", "4"]


VALUES: list[tuple[str, str, str]] = [
    # a column of SQLite, a value in SQL, what JSON has
    ("INTEGER", "-9223372036854775808", "-9223372036854775808"),
    ("BIGINT", "1.5", "1.5"),
    ("BOOLEAN", "1", "true"),
    ("REAL", "0.1", "0.1"),
    ("DOUBLE PRECISION", "1e300", "1e+300"),
    ("DECIMAL(10,2)", "12345678.90", "12345678.9"),
    ("TEXT", "'Zoë \"Z\"' || char(10)", '"Zoë \\"Z\\"\\n"'),
    ("VARCHAR(2)", "'0012 '", '"0012 "'),
    ("BLOB", "x'00ff'", '"AP8="'),
    ("DATE", "'2026-01-02'", '"2026-01-02"'),
    ("TIME", "'13:45:10.25'", '"13:45:10.25"'),
    ("DATETIME", "'2026-01-02 03:04:05.000006'", '"2026-01-02T03:04:05.000006"'),
    ("TIMESTAMP", "1767323045", "1767323045"),
    ("JSON", "'{\"a\":' || char(10) || '[1,\"b\"]}'", '{"a": [1,"b"]}'),
    ("TEXT", "NULL", "null"),
]


@pytest.mark.parametrize(("column", "given", "kept"), VALUES, ids=[f"{row[0]} {row[1]}" for row in VALUES])
def test_a_value_is_read_as_it_is(file: FileCase, column: str, given: str, kept: str) -> None:
    file.make(f"id INTEGER PRIMARY KEY, c {column}")
    file.run(f"INSERT INTO t (c) VALUES ({given})")
    assert Follower(file.whole()).run() == [f'{{"id":1,"c":{kept}}}'.encode()]


@pytest.mark.parametrize(
    ("column", "given"),
    [
        ("INTEGER", "'x'"),
        ("BOOLEAN", "2"),
        ("REAL", "9e999"),
        ("DECIMAL(9,2)", "x'00'"),
        ("BLOB", "'x'"),
        ("BLOB", "1"),
        ("JSON", "'{'"),
        ("JSON", "'[NaN]'"),
        ("DATE", "x'00'"),
    ],
)
def test_a_value_that_its_column_does_not_tell_is_a_reject(file: FileCase, column: str, given: str) -> None:
    file.make(f"id INTEGER PRIMARY KEY, c {column}")
    file.run(f"INSERT INTO t (c) VALUES ({given})")
    source = file.whole()
    [seen] = source.available_offsets({file.partition: None}).values()
    [batch] = source.read(range_of(file.partition, seen), limit())
    assert (len(batch.records), [one.kind for one in batch.rejects], batch.holes) == (0, ["Unfit"], ())


@pytest.mark.server
@pytest.mark.parametrize(
    ("column", "given", "kept"),
    [
        ("bigint", "5", "5"),
        ("numeric(30,2)", "12345678901234567890.10", "12345678901234567890.10"),
        ("double precision", "0.1", "0.1"),
        ("real", "0.1", "0.1"),
        ("varchar(9)", "'Zoë'", '"Zoë"'),
        ("bytea", "'\\x00ff'", '"AP8="'),
        ("boolean", "true", "true"),
        ("date", "'2026-01-02'", '"2026-01-02"'),
    ],
)
def test_a_value_of_a_server_is_read_as_it_is(server: ServerCase, column: str, given: str, kept: str) -> None:
    server.make(f"id bigserial PRIMARY KEY, c {column}")
    server.run(f"INSERT INTO t (c) VALUES ({given})")
    assert Follower(server.whole()).run() == [f'{{"id":1,"c":{kept}}}'.encode()]


@pytest.mark.server
@pytest.mark.parametrize("column", ["char(3)", "timestamp", "json", "bigint[]", "interval"])
def test_a_column_of_a_server_that_may_not_be_kept_is_refused(server: ServerCase, column: str) -> None:
    server.make(f"id bigserial PRIMARY KEY, c {column}")
    with pytest.raises(ConfigError, match="not kept exactly"):
        server.whole().available_offsets({server.partition: None})
