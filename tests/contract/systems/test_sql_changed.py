"""Rows of SQLite that are read by the time of their last change, in the suite of sources; and what may become of their
times, and of the file's writer."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import ConfigError, DataError, Refused
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.sources import SourceContract
from connect_core.sdk.values import Bounds, Position, Range, SourceBatch
from connect_core.systems.sql.file_writers import writers_of_file
from connect_core.systems.sql.source import SqlChangedRows, SqlTables
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.sql.source_probing import probe_source
from connect_core.systems.tables.reading import TableRows
from tests.changed_tables import DELAY_S, _bodies, let_seconds_pass
from tests.contract.systems.test_sql_source import FileCase
from tests.elsewhere import URL


class OfBodies(SqlChangedRows):
    """The suite compares values: those of the column `body` alone."""

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        return _bodies(super()._page(wanted, begin, end, most, most_bytes))


class ChangedCase(FileCase):
    columns = "id INTEGER PRIMARY KEY, body TEXT, at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"
    now = "CURRENT_TIMESTAMP"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.options |= {"timestamp": "at", "delay_s": DELAY_S, "lock_timeout_s": 0.5}

    def make(self, columns: str = "") -> None:
        super().make(columns or self.columns)

    def source(self, **more: Any) -> TableRows[Any]:
        return OfBodies(SqlSourceOptions.model_validate({**self.options, **more}))

    def append(self, values: Sequence[bytes | None]) -> None:
        with closing(self.connected()) as database:
            database.execute("BEGIN")
            rows = [((one or b"").decode(),) for one in values]
            database.executemany(f"INSERT INTO t (body, at) VALUES (?, {self.now})", rows)
            database.execute("COMMIT")

    def update(self, number: int, body: str) -> None:
        self.run(f"UPDATE t SET body = '{body}', at = {self.now} WHERE id = {number}")

    def bounds(self, at: Position | None = None) -> Bounds:
        return self.source().available_offsets({self.partition: at})[self.partition]


@pytest.fixture(params=["delete", "wal"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> ChangedCase:
    case = ChangedCase(tmp_path)
    case.run(f"PRAGMA journal_mode = {request.param}")
    return case


@pytest.fixture
def file(tmp_path: Path) -> ChangedCase:
    return ChangedCase(tmp_path)


@pytest.fixture
def writing(system: ChangedCase) -> Iterator[sqlite3.Connection]:
    """Another program's connection."""
    with closing(system.connected()) as connection:
        yield connection


class TestChangedRows(SourceContract):
    steps = 10

    @pytest.fixture
    def system(self, file: ChangedCase) -> ChangedCase:
        return file

    @pytest.fixture
    def live(self) -> Range:
        pytest.skip("no range of a table is live: each has an end below which nothing comes")


FORMS = [
    ("DATETIME", "CURRENT_TIMESTAMP"),
    ("TIMESTAMP", "strftime('%Y-%m-%d %H:%M:%f', 'now')"),
    ("TEXT", "strftime('%Y-%m-%d %H:%M:%f', 'now')"),
    ("VARCHAR(30)", "datetime('now')"),
    ("INTEGER", "unixepoch()"),
    ("DATETIME", "unixepoch()"),
    ("TEXT", "strftime('%Y-%m-%d %H:%M:%S', 'now') || '.123456789'"),
]


@pytest.mark.parametrize(("kind", "now"), FORMS, ids=[f"{kind} {now}" for kind, now in FORMS])
def test_a_changed_row_comes_again_and_the_others_do_not(file: ChangedCase, kind: str, now: str) -> None:
    file.now = now
    file.make(f"id INTEGER PRIMARY KEY, body TEXT, at {kind} NOT NULL")
    file.append([b"one", b"two", b"three"])
    follower = Follower(file.source())
    assert follower.run() == [b"one", b"two", b"three"]
    let_seconds_pass()
    file.update(2, "two, changed")
    file.append([b"four"])
    again = Follower(file.source(), follower.positions)
    assert again.run() == [b"two, changed", b"four"]
    assert Follower(file.source(), again.positions).run() == []
    assert again.gaps == []


def test_both_forms_in_one_column_are_one_order(file: ChangedCase) -> None:
    file.run("INSERT INTO t VALUES (1, 'text', '2026-01-02 03:04:05.5'), (2, 'seconds', 1767323046)")
    follower = Follower(file.source())
    assert follower.run() == [b"text", b"seconds"]
    file.run("UPDATE t SET body = 'seconds again', at = unixepoch() WHERE id = 1")
    file.run("UPDATE t SET body = 'text again', at = datetime('now') WHERE id = 2")
    assert Follower(file.source(), follower.positions).run() == [b"seconds again", b"text again"]


def test_a_row_with_a_time_to_come_is_read_when_that_has_come(file: ChangedCase) -> None:
    file.append([b"one"])
    follower = Follower(file.source())
    assert follower.run() == [b"one"]
    file.run("INSERT INTO t VALUES (100, 'early', datetime('now', '+2 seconds'))")
    assert Follower(file.source(), follower.positions).run() == []
    let_seconds_pass(2.2)
    assert Follower(file.source(), follower.positions).run() == [b"early"]


OTHER_FORMS = [
    "2026-01-02T03:04:05",
    "2026-01-02 03:04:05Z",
    "2026-01-02 03:04:05+01:00",
    "2026-01-02",
    "2026-01-02 03:04",
    "01/02/2026 03:04:05",
    "",
    "now",
    "2026-01-02 03:04:05.",
    "2026-11-31 00:00:00",
    "1969-12-31 23:59:59",
    "2026-01-02 03:04:05\0zz",
    1767323045.25,
    1767323045123,
    20260102,
    0,
    -1,
    b"2026-01-02 03:04:05",
]


@pytest.mark.parametrize("value", OTHER_FORMS, ids=map(repr, OTHER_FORMS))
def test_a_time_of_another_form_stops_the_source(file: ChangedCase, value: object) -> None:
    """Also where it is written later, and would be before or behind all that is looked at."""
    file.append([b"one"])
    source = file.source()
    follower = Follower(source)
    assert follower.run() == [b"one"]
    with closing(file.connected()) as database:
        database.execute("INSERT INTO t VALUES (7, 'x', ?)", (value,))
    for asked in (source, file.source()):
        with pytest.raises(DataError, match="Column at of the row with number 7 has no time of a form"):
            asked.available_offsets(follower.positions)
    file.update(7, "corrected")
    assert Follower(file.source(), follower.positions).run() == [b"corrected"]


NO_TIMES = [
    "2026-01-02 03:04:05.5Z",
    "2026-01-02 03:04:05,5",
    "2026-02-30 00:00:00",
    "2026-02-29 00:00:00.5",
    "2026-13-01 00:00:00",
    "2026-00-01 00:00:00",
    "2026-01-00 00:00:00",
    "2026-01-02 24:00:00",
    "2026-01-02 24:00:00.0",
    "2026-01-02 23:59:60",
    "0000-00-00 00:00:00",
    "0001-01-01 00:00:00",
    "1970-01-01 00:00:00.5",
    "-001-01-01 00:00:00",
    "2026-01-02 03:04:05.5\0zz",
    "2026-01-02 03:04:05\0.5",
    "2026-01-02 03:04:05 ",
]


@pytest.mark.parametrize("value", NO_TIMES, ids=map(repr, NO_TIMES))
def test_a_text_that_is_no_time_since_1973_stops_the_source(file: ChangedCase, value: str) -> None:
    with closing(file.connected()) as database:
        database.execute("INSERT INTO t VALUES (7, 'x', ?)", (value,))
    with pytest.raises(DataError, match="number 7 has no time of a form"):
        file.bounds()


def test_each_moment_since_1973_is_a_time(file: ChangedCase) -> None:
    moments = ("1973-03-03 09:46:40", "2024-02-29 23:59:59", "2000-02-29 00:00:00.000000001", "9999-12-31 23:59:59.9")
    with closing(file.connected()) as database:
        database.executemany("INSERT INTO t (body, at) VALUES ('x', ?)", [(one,) for one in moments])
    assert file.bounds().end == 4  # the last one is still to come


@pytest.mark.parametrize(("kind", "value"), [("TEXT", 1767323045), ("INTEGER", "2026-01-02 03:04:05")])
def test_a_time_of_the_form_of_another_column_stops_the_source(file: ChangedCase, kind: str, value: object) -> None:
    file.make(f"id INTEGER PRIMARY KEY, body TEXT, at {kind} NOT NULL")
    with closing(file.connected()) as database:
        database.execute("INSERT INTO t VALUES (7, 'x', ?)", (value,))
    with pytest.raises(DataError, match="has no time of a form that is read"):
        file.bounds()


# --------------------------------------------------------------------------------------------------- the file's writer


def test_a_change_of_an_open_transaction_is_not_passed_over(system: ChangedCase, writing: sqlite3.Connection) -> None:
    """A pass with the row from just before it would end behind its time."""
    system.append([b"early"])
    follower = Follower(system.source())
    assert follower.run() == [b"early"]
    let_seconds_pass()
    system.append([b"just before"])
    writing.execute("BEGIN")
    writing.execute("INSERT INTO t (body) VALUES ('late')")
    let_seconds_pass()
    assert Follower(system.source(), follower.positions).run() == []
    let_seconds_pass()
    seen = system.bounds(follower.positions[system.partition])
    assert seen.begin == seen.end
    writing.execute("COMMIT")
    assert Follower(system.source(), follower.positions).run() == [b"just before", b"late"]


def test_a_short_transaction_is_waited_for(system: ChangedCase, writing: sqlite3.Connection) -> None:
    system.append([b"newest"])
    writing.execute("BEGIN")
    writing.execute("INSERT INTO t (body) VALUES ('late')")
    timer = threading.Timer(1.5, writing.execute, ["COMMIT"])
    timer.start()
    assert Follower(system.source(lock_timeout_s=20)).run() == [b"newest", b"late"]
    timer.join()


def test_a_log_that_a_transaction_begins_anew_says_nothing_of_its_end(file: ChangedCase) -> None:
    """With a write-ahead log `PRAGMA data_version` changes then, too, while the transaction goes on."""
    file.run("PRAGMA journal_mode = WAL")
    file.append([b"%d" % number for number in range(5000)])
    follower = Follower(file.source())
    follower.run()
    with closing(file.connected()) as writing:
        writing.execute("PRAGMA cache_size = 2")
        writing.execute("PRAGMA wal_checkpoint(RESTART)")
        source = file.source()
        source.available_offsets(follower.positions)
        writing.execute("BEGIN")
        writing.execute("UPDATE t SET body = 'late', at = CURRENT_TIMESTAMP")
        let_seconds_pass()
        assert Follower(source, follower.positions).run() == []
        writing.execute("COMMIT")
    assert Follower(file.source(), follower.positions).run() == [b"late"] * 5000


def test_what_is_before_a_long_transaction_is_read_while_it_runs(
    system: ChangedCase, writing: sqlite3.Connection
) -> None:
    system.append([b"before"])
    let_seconds_pass()
    source = system.source()
    source.available_offsets({system.partition: None})  # sees that nobody writes
    writing.execute("BEGIN")
    writing.execute("INSERT INTO t (body) VALUES ('late')")
    assert Follower(source).run() == [b"before"]


def test_nothing_is_held_nor_written_between_two_looks(system: ChangedCase) -> None:
    system.append([b"one"])
    source = system.source()
    follower = Follower(source)
    follower.run()
    before = system.path.read_bytes()
    source.available_offsets(follower.positions)
    assert system.path.read_bytes() == before
    with closing(sqlite3.connect(system.path, timeout=0)) as at_once:
        at_once.execute("INSERT INTO t (body) VALUES ('two')")
        at_once.commit()


def test_a_file_that_nobody_may_write_is_refused(file: ChangedCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs tests may write each file, so SQLite is told not to."""
    opened = sqlite3.connect
    monkeypatch.setattr(
        "connect_core.systems.sql.file_writers.sqlite3.connect",
        lambda name, **more: opened(name.replace("mode=rw", "mode=ro"), **more),
    )
    with pytest.raises(Refused, match="may not be written, so nobody can say"):
        writers_of_file(str(file.path), "here")


def test_no_change_is_passed_over_beside_writers(system: ChangedCase) -> None:
    """Several in threads of their own, one after the other within SQLite; each row has its last version in the end."""
    ends = time.monotonic() + 6

    def write(writer: int) -> None:
        with closing(system.connected()) as database:
            number = 0
            while time.monotonic() < ends:
                number += 1
                database.execute("BEGIN IMMEDIATE")
                system_row = writer * 100 + number % 20
                database.execute(
                    "INSERT INTO t (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body,"
                    " at = CURRENT_TIMESTAMP",
                    (system_row, f"{writer}/{number}"),
                )
                time.sleep(0.3 if number % 40 == 7 else 0.005)
                database.execute("ROLLBACK" if number % 10 == 9 else "COMMIT")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(1, 4)]
    for thread in threads:
        thread.start()
    copy, positions, found = dict[bytes, None](), dict[Any, Any](), list[bytes | None]()
    while any(thread.is_alive() for thread in threads):
        follower = Follower(system.source(), positions)
        found += follower.run()
        positions = follower.positions
    let_seconds_pass()
    found += Follower(system.source(lock_timeout_s=20), positions).run()
    for one in found:
        copy[one or b""] = None
    assert len(found) == len(copy)
    there = [body.encode() for (body,) in system.run("SELECT body FROM t")]
    assert [one for one in there if one not in copy] == []


def test_a_range_that_is_repeated_finds_each_row_at_its_number(system: ChangedCase) -> None:
    system.append([b"one", b"two", b"three"])
    planned = range_of(system.partition, system.bounds())
    let_seconds_pass()
    system.update(1, "one, changed")
    [batch] = system.source().read(planned, limit())
    assert batch.records.column("offset").to_pylist() == [2, 3]
    assert (batch.holes, batch.next_offset) == (((1, 2),), 4)
    follower = Follower(system.source(), {system.partition: Position(0, 4, planned.evidence)})
    assert follower.run() == [b"one, changed"]


def test_a_clock_that_goes_back_is_told_and_all_rows_are_read_again(
    file: ChangedCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.append([b"one", b"two"])
    follower = Follower(file.source())
    follower.run()
    source = file.source()
    now: Any = SqlChangedRows.now
    monkeypatch.setattr(SqlChangedRows, "now", lambda self, asking, table: now(self, asking, table) - 100)
    again = Follower(source, follower.positions)
    [gap] = again.tell()
    assert (gap.loses, gap.warns) == (False, True)
    monkeypatch.undo()
    assert Follower(file.source(), again.positions).run() == [b"one", b"two"]


def test_several_tables_by_their_times(file: ChangedCase) -> None:
    file.run(f"CREATE TABLE t2 ({file.columns})", "INSERT INTO t2 (body) VALUES ('a')")
    file.append([b"one"])
    given = {name: value for name, value in file.options.items() if name != "table"} | {"tables": ["t*"]}
    follower = Follower(SqlTables(SqlSourceOptions.model_validate(given)))
    assert len(follower.run()) == 2
    file.update(1, "changed")
    again = Follower(SqlTables(SqlSourceOptions.model_validate(given)), follower.positions)
    assert [b'"changed"' in (one or b"") for one in again.run()] == [True]


# -------------------------------------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("id INTEGER PRIMARY KEY, body TEXT", "The table has no column at"),
        ("id INTEGER PRIMARY KEY, at DATE NOT NULL", "Column at is DATE, which says no time of a change"),
        ("id INTEGER PRIMARY KEY, at REAL NOT NULL", "Column at is (REAL|FLOAT), which says no time of a change"),
        ("id INTEGER PRIMARY KEY, at DATETIME", "Column at takes NULL, and such rows would never be read"),
        ("id TEXT PRIMARY KEY, at DATETIME NOT NULL", "The primary key of the table is not one column"),
    ],
)
def test_a_table_of_which_rows_could_be_lost_is_refused(file: ChangedCase, columns: str, words: str) -> None:
    file.make(columns)
    with pytest.raises(ConfigError, match=words):
        file.bounds()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"url": URL, "settle_s": 1}, "timestamp is of SQLite alone: of a server"),
        ({"bulk": True, "delay_s": 1}, "bulk reads all rows, and timestamp those that were changed"),
        ({"timestamp": None}, "delay_s goes with timestamp"),
    ],
)
def test_options_that_do_not_go_together(file: ChangedCase, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        file.source(**more)


def test_what_the_probe_says(file: ChangedCase) -> None:
    file.append([b"one"])
    file.run("INSERT INTO t VALUES (100, 'early', datetime('now', '+2 days')), (101, 'late', unixepoch() + 200000)")

    def probed() -> dict[str, bool]:
        given = SqlSourceOptions.model_validate(file.options).model_dump(exclude_unset=True)
        return {one.what: one.ok for one in probe_source(given)}

    said = probed()
    assert all(said.values())
    assert "rows that were changed are found by at" in said
    assert "no index begins with column at: each look reads the whole table" in said
    assert "rows with a time that is still to come, and which are read then: 2" in said
    assert "no program has the file as its writer at this moment" in said
    file.run("CREATE INDEX by_time ON t (at)", "INSERT INTO t VALUES (7, 'x', 'soon')")
    said = probed()
    assert "no index begins with column at: each look reads the whole table" not in said
    assert [what for what, ok in said.items() if not ok and "number 7 has no time of a form that is read" in what]
