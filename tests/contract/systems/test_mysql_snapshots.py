"""What comes out of the log of MariaDB when chunks of a snapshot meet changes, other drivers, and whoever alters the
table."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pymysql
import pytest

from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.plugin import SnapshotWish
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import Bounds, Gap, Position
from connect_core.stack.processes import wait_until
from connect_core.systems.mysql.binlog import chunks, notes
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.snapshot_log import Note
from connect_core.systems.mysql.binlog.snapshot_requests import request_snapshot
from connect_core.systems.mysql.binlog.source import MysqlChangesSource, progress_of
from connect_core.systems.mysql.binlog.table_names import OURS
from connect_core.systems.tables import taken_events
from connect_core.systems.tables.snapshots import DueTable, SnapshotProgress
from tests.mariadb import Database, MariaDB
from tests.mysql import ONLY_MARIADB

pytestmark = pytest.mark.server

COSTLY = pytest.mark.fault(costly=True)
BATCHES_AND_RANGES = [
    pytest.param(batch, most, marks=() if (batch, most) in {(1, 1), (3, 4), (1_000, 1_000)} else COSTLY)
    for batch in (1, 3, 1_000)
    for most in (1, 4, 1_000)
]
"""How many rows these have at most."""
Told = tuple[str, int, str]


class Snapshot:
    """Of a table of three rows, two at once."""

    def __init__(self, database: Database, **more: Any) -> None:
        self.database, self.partition = database, Partition(database.name)
        usual = {"tables": ["rows_"], "schemas": False, "uid": database.name, "snapshot_rows": 2, "every_s": 0.02}
        self.options = MysqlChangesOptions.model_validate({**database.options, **usual, **more})
        database.run("CREATE TABLE IF NOT EXISTS rows_ (id int PRIMARY KEY, body varchar(20))")
        database.run("INSERT INTO rows_ VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        seen = self.look(None)
        self.at = Position(seen.incarnation, seen.begin, seen.evidence)
        self.told: tuple[Gap, ...] = ()

    def look(self, at: Position | None) -> Bounds:
        [seen] = MysqlChangesSource(self.options).available_offsets({self.partition: at}).values()
        if seen.failure:
            raise seen.failure.as_error()
        return seen

    def come(self, **wanted: int) -> list[Told]:
        """What one range brings."""
        source, seen = MysqlChangesSource(self.options), self.look(self.at)
        if seen.chosen:
            self.at = Position(seen.incarnation, seen.begin, seen.evidence)
            seen = self.look(self.at)
        self.told = seen.gaps
        asked = range_of(self.partition, seen, **wanted)
        behind, told = asked.begin, list[bytes]()
        for batch in source.read(asked, limit()):
            told += batch.records.column("value").to_pylist()
            behind = batch.next_offset
        self.at = replace(self.at, offset=behind, evidence=source.evidence(asked, behind))
        events = [json.loads(one) for one in told]
        return [(one["op"], *(one["after"] or one["before"]).values()) for one in events]

    def write(self) -> None:
        """As a driver does that has planned nothing yet."""
        source = MysqlChangesSource(self.options)
        with source._database.asking() as asking:
            chunks.write_chunks(asking, self.options, progress_of(self.at.evidence), 0, "here")
        source._database.close()


@pytest.fixture
def snapshot(mariadb: MariaDB) -> Snapshot:
    return Snapshot(Database(mariadb))


ALL = [("r", 1, "a"), ("r", 2, "b"), ("r", 3, "c")]


def test_nothing_is_made_before_the_ledger_knows_where_it_begins(snapshot: Snapshot) -> None:
    assert snapshot.database.run("SHOW TABLES LIKE 'waybill%'") == []
    assert snapshot.look(None).partial


@contextmanager
def before_the_end(monkeypatch: pytest.MonkeyPatch, deed: Any) -> Iterator[None]:
    """`deed` is done whenever the rows of a chunk are copied and not yet committed."""
    say = chunks.say

    def said(asking: Any, options: Any, note: Note, at: int | None = None) -> None:
        if note.kind == "end":
            deed()
        say(asking, options, note, at)

    with monkeypatch.context() as patching:
        patching.setattr(chunks, "say", said)
        yield


def test_a_row_is_changed_before_its_chunk_or_behind_it(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never between what the chunk has read and its place in the log."""
    refused = []

    def changed() -> None:
        try:
            wait = "SET innodb_lock_wait_timeout = 1"
            snapshot.database.run(wait, "UPDATE rows_ SET body = CONCAT(body, '+') WHERE id = 2")
        except pymysql.Error as error:
            refused.append(error.args[0])

    with before_the_end(monkeypatch, changed):
        told = snapshot.come()
    there = dict(snapshot.database.run("SELECT id, body FROM rows_"))
    assert {number: body for _, number, body in told} == there
    assert 1205 in refused


def test_a_row_that_is_being_changed_comes_when_that_has_ended(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows before it are not held meanwhile."""
    monkeypatch.setattr(notes, "_LOCK_S", 1)
    with closing(snapshot.database.connected()) as session, session.cursor() as writing:
        session.begin()
        writing.execute("UPDATE rows_ SET body = 'new' WHERE id = 2")
        assert snapshot.come() == [("r", 1, "a")]
        session.commit()
    assert snapshot.come() == [("u", 2, "new"), ("r", 2, "new"), ("r", 3, "c")]


def test_what_waits_is_said_with_its_table(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a look that could not write the next rows."""
    monkeypatch.setattr(notes, "_LOCK_S", 1)
    monkeypatch.setattr(chunks, "_TURN_S", 0)
    assert snapshot.look(snapshot.at).waits == ""
    snapshot.come()
    request_snapshot(snapshot.options, SnapshotWish(["rows_"]))
    snapshot.come()
    with closing(snapshot.database.connected()) as session, session.cursor() as writing:
        session.begin()
        writing.execute("UPDATE rows_ SET body = 'new' WHERE id = 1")
        seen = snapshot.look(snapshot.at)
        assert f"rows of table {snapshot.database.name}.rows_ are still to come: another session has" in seen.waits
        assert not seen.partial
        session.rollback()
        with chunks._alone(writing, snapshot.options):
            assert "another connector of" in snapshot.look(snapshot.at).waits
    assert snapshot.come() == ALL


UNFIT_NOW = {
    "no key": (["ALTER TABLE bad DROP PRIMARY KEY"], ["ALTER TABLE bad ADD PRIMARY KEY (id)"], "has no primary key"),
    "no right": (["REVOKE SELECT ON {0}.bad FROM {1}"], ["GRANT SELECT ON {0}.bad TO {1}"], "may not read table"),
}


@pytest.mark.parametrize("kind", UNFIT_NOW)
@pytest.mark.parametrize("most", [pytest.param(1, marks=COSTLY), 100])
def test_a_table_that_becomes_unfit_holds_up_no_other(
    mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch, kind: str, most: int
) -> None:
    """Its changes come, too; and its rows, when they can be read again."""
    monkeypatch.setattr(chunks, "MOST_ROWS", most)
    broken, mended, why = UNFIT_NOW[kind]
    database, user = Database(mariadb), f"u{uuid.uuid4().hex[:8]}"
    named = f"{user}@'127.0.0.1'"
    database.run("CREATE TABLE bad (id int PRIMARY KEY, body varchar(20))", "INSERT INTO bad VALUES (7, 'x'), (8, 'y')")
    database.run("CREATE TABLE rows_ (id int PRIMARY KEY, body varchar(20))")
    database.run(f"CREATE USER {named}", f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {named}")
    database.run(f"GRANT SELECT ON performance_schema.* TO {named}")  # which MySQL asks for
    for table, rights in (("bad", "SELECT"), ("rows_", "SELECT"), *((one, ", ".join(notes.RIGHTS)) for one in OURS)):
        database.run(f"GRANT {rights} ON {database.name}.{table} TO {named}")
    snapshot = Snapshot(database, tables=["bad", "rows_"], user=user)
    database.run(*(one.format(database.name, named) for one in broken), "INSERT INTO bad VALUES (9, 'z')")
    told = [one for _ in range(4) for one in snapshot.come()]
    assert told == [("c", 9, "z"), *ALL]
    seen = snapshot.look(snapshot.at)
    assert (seen.failure, seen.partial) == (None, False)
    assert seen.beside is not None
    assert why in str(seen.beside.as_error())
    assert f"{database.name}.bad" in str(seen.beside.as_error())
    assert progress_of(snapshot.at.evidence).tables == (DueTable((database.name, "bad")),)
    database.run(*(one.format(database.name, named) for one in mended))
    assert [one for _ in range(3) for one in snapshot.come()] == [("r", 7, "x"), ("r", 8, "y"), ("r", 9, "z")]
    assert snapshot.look(snapshot.at).beside is None
    database.run(f"DROP USER {named}")


def test_a_row_that_the_server_does_not_give_holds_up_no_other_table(mariadb: MariaDB) -> None:
    database = Database(mariadb)
    database.run(
        "CREATE TABLE bad (id int PRIMARY KEY, body varchar(20))", "INSERT INTO bad VALUES (1000, 'x'), (2, 'y')"
    )
    database.run("CREATE TABLE rows_ (id int PRIMARY KEY, body varchar(20))")
    snapshot = Snapshot(database, tables=["bad", "rows_"])
    database.run("ALTER TABLE bad ADD grown bigint AS (id * 9223372036854775807) VIRTUAL")
    database.run("INSERT INTO bad (id, body) VALUES (1, 'z')")
    told = [one[:3] for _ in range(4) for one in snapshot.come()]
    assert told == [("c", 1, "z"), *ALL]
    seen = snapshot.look(snapshot.at)
    assert (seen.failure, seen.partial) == (None, False)
    assert seen.beside is not None
    said = f"The server does not give rows of table {database.name}.bad: (it does not copy them|error 1690)"
    assert re.search(said, str(seen.beside.as_error()))
    assert progress_of(snapshot.at.evidence).tables == (DueTable((database.name, "bad")),)
    database.run("ALTER TABLE bad DROP grown")
    assert [one for _ in range(3) for one in snapshot.come()] == [("r", 1, "z"), ("r", 2, "y"), ("r", 1000, "x")]
    assert snapshot.look(snapshot.at).beside is None


def test_an_unfit_table_that_the_document_names_no_more_is_passed_over(mariadb: MariaDB) -> None:
    """So there is a way out for who does not mend it."""
    database = Database(mariadb)
    database.run("CREATE TABLE bad (id int PRIMARY KEY)", "INSERT INTO bad VALUES (1)")
    snapshot = Snapshot(database, tables=["bad", "rows_"])
    database.run("ALTER TABLE bad DROP PRIMARY KEY")
    assert [one for _ in range(3) for one in snapshot.come()] == ALL
    assert snapshot.look(snapshot.at).beside is not None
    snapshot.options = snapshot.options.model_copy(update={"tables": ["rows_"]})
    assert snapshot.come() == []
    assert (snapshot.look(snapshot.at).beside, progress_of(snapshot.at.evidence).tables) == (None, ())


def test_tables_none_of_which_can_be_read_are_looked_at_once_a_run(mariadb: MariaDB) -> None:
    database = Database(mariadb)
    database.run("CREATE TABLE bad (id int PRIMARY KEY)", "INSERT INTO bad VALUES (1)")
    snapshot = Snapshot(database, tables=["bad", "rows_"])
    database.run("ALTER TABLE bad DROP PRIMARY KEY", "ALTER TABLE rows_ DROP PRIMARY KEY")
    for _ in range(2):
        seen = snapshot.look(snapshot.at)
        assert (seen.beside is not None, seen.partial) == (True, False)
        assert snapshot.come() == []
    assert database.run("SELECT COUNT(*) FROM waybill_snapshots") == [(0,)]


@pytest.mark.parametrize("most", [1, 100])
def test_the_next_chunk_of_two_drivers_comes_once(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(chunks, "MOST_ROWS", most)
    snapshot.write()
    snapshot.write()
    assert snapshot.come() + snapshot.come() == ALL
    assert snapshot.come() == []


def test_a_chunk_that_was_written_is_waited_for(snapshot: Snapshot) -> None:
    snapshot.look(snapshot.at)
    [(written,)] = snapshot.database.run("SELECT MAX(number) FROM waybill_snapshots")
    snapshot.look(snapshot.at)
    assert snapshot.database.run("SELECT MAX(number) FROM waybill_snapshots") == [(written,)]


def test_while_another_connector_writes_nothing_is_written(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_TURN_S", 0)
    with (
        closing(snapshot.database.connected()) as session,
        session.cursor() as other,
        chunks._alone(other, snapshot.options),
    ):
        assert snapshot.come() == []
    assert snapshot.come() == ALL


@pytest.mark.parametrize(("rows", "most"), BATCHES_AND_RANGES)
def test_all_rows_come_wherever_batches_and_ranges_end(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, rows: int, most: int
) -> None:
    monkeypatch.setattr(taken_events, "MOST_EVENTS", rows)
    snapshot.database.run("INSERT INTO rows_ SELECT seq, 'x' FROM seq_10_to_16")
    told, before = list[Told](), None
    while before != snapshot.at:
        before = snapshot.at
        told += snapshot.come(max_records=most)
    assert [number for op, number, _ in told if op == "r"] == [1, 2, 3, *range(10, 17)]
    assert snapshot.database.run("SELECT COUNT(*) FROM waybill_snapshots") == [(0,)]
    assert snapshot.database.run("SHOW TABLES LIKE 'waybill_snapshot_rows'") == []


def test_tables_of_ours_never_come_as_events(mariadb: MariaDB) -> None:
    snapshot = Snapshot(Database(mariadb), tables=["*"])
    snapshot.database.run("INSERT INTO rows_ VALUES (4, 'd')")
    assert snapshot.come() == [("c", 4, "d"), *ALL, ("r", 4, "d")]
    snapshot.database.run("INSERT INTO rows_ VALUES (5, 'e')")
    assert snapshot.come() == [("c", 5, "e")]


def test_a_table_that_is_altered_between_two_chunks(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are read as it is then; where its key is another one, all of them once more."""
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    assert snapshot.come() == ALL[:2]
    snapshot.database.run("ALTER TABLE rows_ ADD more int DEFAULT 7, MODIFY body text")
    snapshot.database.run("INSERT INTO rows_ VALUES (4, 'd', 8)")
    assert snapshot.come() == [("c", 4, "d", 8), ("r", 3, "c", 7)]


def test_a_table_that_gets_another_key_is_read_anew(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    assert snapshot.come() == ALL[:2]
    snapshot.database.run("ALTER TABLE rows_ ADD code int", "UPDATE rows_ SET code = 3 - id")
    snapshot.database.run("ALTER TABLE rows_ DROP PRIMARY KEY, ADD PRIMARY KEY (code)")
    assert [number for op, number, *_ in snapshot.come() + snapshot.come() if op == "r"] == [3, 2, 1]


@pytest.mark.parametrize(
    "swap",
    [
        ["RENAME TABLE rows_ TO before_, other TO rows_"],
        ["ALTER TABLE rows_ RENAME TO before_", "ALTER TABLE other RENAME AS rows_"],
    ],
)
def test_another_table_that_gets_the_name_is_read_from_its_begin(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, swap: list[str]
) -> None:
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    assert snapshot.come() == ALL[:2]
    snapshot.database.run("CREATE TABLE other LIKE rows_", "INSERT INTO other VALUES (1, 'x'), (2, 'y')", *swap)
    assert [one for _ in range(3) for one in snapshot.come()] == [("r", 1, "x"), ("r", 2, "y")]


def test_who_stands_still_within_a_chunk_holds_no_row_for_long(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "IDLE_S", 1)

    def stand_still() -> None:
        """The server ends the session, and this one gets the row."""
        snapshot.database.run("SET innodb_lock_wait_timeout = 60", "UPDATE rows_ SET body = 'z' WHERE id = 1")

    with before_the_end(monkeypatch, stand_still), pytest.raises(WaybillError):
        snapshot.write()
    monkeypatch.undo()
    told = [one for _ in range(2) for one in snapshot.come()]
    assert told == [("u", 1, "z"), ("r", 1, "z"), *ALL[1:]]


def test_a_table_that_is_altered_while_a_chunk_is_written(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the copy that was made for it and its rows."""
    described, deeds = chunks.described, ["ALTER TABLE rows_ MODIFY body varchar(2), ADD more int"]

    def altered(asking: Any, place: Any, where: str) -> Any:
        found = described(asking, place, where)
        if deeds:
            snapshot.database.run(deeds.pop())
        return found

    monkeypatch.setattr(chunks, "described", altered)
    assert snapshot.come() == [(*one, None) for one in ALL]


def test_a_table_that_is_gone_holds_up_no_other_one(mariadb: MariaDB) -> None:
    database = Database(mariadb)
    database.run("CREATE TABLE gone (id int PRIMARY KEY)", "INSERT INTO gone VALUES (1)")
    snapshot = Snapshot(database, tables=["gone", "rows_"])
    database.run("DROP TABLE gone")
    assert snapshot.come() == []
    [gap] = snapshot.told
    assert "gone not all rows have come" in gap.reason
    assert snapshot.come() == ALL
    assert snapshot.told == ()


def test_rows_of_a_prepared_transaction_are_waited_for(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its changes are in the log, and nobody sees them."""
    monkeypatch.setattr(notes, "_LOCK_S", 1)
    database = snapshot.database
    database.run("XA START 'x'", "UPDATE rows_ SET body = 'new' WHERE id = 1", "XA END 'x'", "XA PREPARE 'x'")
    assert snapshot.come() == [("u", 1, "new")]
    database.run("XA COMMIT 'x'")
    assert snapshot.come() == [("r", 1, "new"), *ALL[1:]]


def test_a_row_that_was_prepared_before_the_connector_began_is_one_that_is_there(
    mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place in the log is before the begin, and nobody sees it yet."""
    monkeypatch.setattr(notes, "_LOCK_S", 1)
    database = Database(mariadb)
    database.run("CREATE TABLE rows_ (id int PRIMARY KEY, body varchar(20))")
    database.run("XA START 'y'", "INSERT INTO rows_ VALUES (9, 'y')", "XA END 'y'", "XA PREPARE 'y'")
    snapshot = Snapshot(database)
    assert snapshot.come() == ALL
    database.run("XA COMMIT 'y'")
    assert snapshot.come() == [("r", 9, "y")]


def test_a_last_row_that_is_being_deleted_is_one_that_is_there(
    mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that is rolled back, the log has nothing of it."""
    monkeypatch.setattr(notes, "_LOCK_S", 1)
    snapshot = Snapshot(Database(mariadb))
    with closing(snapshot.database.connected()) as session, session.cursor() as deleting:
        session.begin()
        deleting.execute("DELETE FROM rows_ WHERE id = 3")
        assert snapshot.come() == ALL[:2]
        session.rollback()
    assert snapshot.come() == ALL[2:]


def test_who_inserts_rows_all_the_time_holds_up_nothing(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows behind the last one that was there are changes."""
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    assert snapshot.come() == ALL[:2]
    with closing(snapshot.database.connected()) as session, session.cursor() as writing:
        session.begin()
        writing.execute("INSERT INTO rows_ VALUES (4, 'd')")
        assert snapshot.come() == ALL[2:]
        session.commit()
        assert progress_of(snapshot.at.evidence).tables == ()
    assert snapshot.come() == [("c", 4, "d")]


UNFIT = [
    ("CREATE TABLE t (id int)", "no primary key"),
    ("CREATE TABLE t (id text, PRIMARY KEY (id(9)))", "a part of a column"),
    ("CREATE TABLE t (id int PRIMARY KEY) ENGINE = MyISAM", "engine"),
    ("CREATE VIEW t AS SELECT 1 AS id", "no ordinary table"),
    ("SELECT 1", "no table"),
    pytest.param("CREATE TABLE t (id int PRIMARY KEY) WITH SYSTEM VERSIONING", "SYSTEM VERSIONED", marks=ONLY_MARIADB),
]


@pytest.mark.parametrize(("made", "why"), UNFIT)
def test_a_table_that_cannot_be_read_is_refused_by_name(mariadb: MariaDB, made: str, why: str) -> None:
    database = Database(mariadb)
    database.run(made)
    with pytest.raises(ConfigError, match=f"(?is){why}.*t|t.*{why}"):
        Snapshot(database, tables=["t", "rows_"])


def test_a_server_that_takes_no_writes_is_refused(snapshot: Snapshot) -> None:
    snapshot.database.run("SET GLOBAL read_only = ON")
    try:
        with pytest.raises(ConfigError, match="cannot be written into the log: the server is read-only"):
            snapshot.look(snapshot.at)
        with pytest.raises(ConfigError, match="is read-only"):
            request_snapshot(snapshot.options, SnapshotWish(["rows_"]))
    finally:
        snapshot.database.run("SET GLOBAL read_only = OFF")


def test_rights_that_are_missing_are_named(snapshot: Snapshot) -> None:
    """With those that are named the rows come."""
    name, user = snapshot.database.name, f"u{snapshot.database.name[-8:]}"
    snapshot.database.run(
        f"CREATE USER {user}@'127.0.0.1'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}@'127.0.0.1'",
        f"GRANT SELECT ON {name}.rows_ TO {user}@'127.0.0.1'",
        f"GRANT SELECT ON performance_schema.* TO {user}@'127.0.0.1'",  # which MySQL asks for
    )
    snapshot.options = snapshot.options.model_copy(update={"user": user})
    with pytest.raises(ConfigError) as caught:
        snapshot.look(snapshot.at)
    for statement in re.findall(r"GRANT [^;]+;", caught.value.next_step):
        snapshot.database.run(statement.replace(f"TO {user};", f"TO {user}@'127.0.0.1'"))
    assert snapshot.come() == ALL
    snapshot.database.run(f"DROP USER {user}@'127.0.0.1'")


def test_who_rewinds_reads_the_rest_once_more(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a ledger that was restored."""
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    first = snapshot.at
    assert snapshot.come() + snapshot.come() == ALL
    snapshot.database.run("UPDATE rows_ SET body = 'new'")
    snapshot.at = first
    assert snapshot.come() == [*ALL, ("u", 1, "new"), ("u", 2, "new"), ("u", 3, "new")]


def test_a_key_that_is_damaged_is_no_statement(snapshot: Snapshot) -> None:
    [(kind,)] = snapshot.database.run(
        "SELECT COLUMN_TYPE FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'id' AND TABLE_NAME = 'rows_'"
        f" AND TABLE_SCHEMA = '{snapshot.database.name}'"
    )
    place = (snapshot.database.name, "rows_")
    progress = SnapshotProgress.of((place,), (f"id {kind}", '["3"]', "0; DROP TABLE rows_"))
    snapshot.at = replace(snapshot.at, evidence={**snapshot.at.evidence, "snapshot": progress.as_json()})
    with pytest.raises(WaybillError, match="is damaged"):
        snapshot.look(snapshot.at)


def test_a_program_is_no_victim_of_a_chunk(mariadb: MariaDB) -> None:
    """Who has changed the last row, and wants the first one: a chunk that held that and waited for the other would make
    one of them fail."""
    snapshot = Snapshot(Database(mariadb), snapshot_rows=1_000)
    snapshot.database.run("INSERT INTO rows_ SELECT seq, 'x' FROM seq_4_to_900")
    with ThreadPoolExecutor(1) as pool, closing(snapshot.database.connected()) as session, session.cursor() as writing:
        for _ in range(5):
            session.begin()
            writing.execute("UPDATE rows_ SET body = CONCAT(body, '+') WHERE id = 900")
            looking = pool.submit(snapshot.write)
            for row in (1, 2, 3, 1):
                time.sleep(0.05)
                writing.execute(f"UPDATE rows_ SET body = CONCAT(body, '+') WHERE id = {row}")
            session.commit()
            looking.result()
    told = dict[int, str]()
    while progress_of(snapshot.at.evidence).tables:
        told |= {number: body for _, number, body in snapshot.come()}
    assert told == dict(snapshot.database.run("SELECT id, body FROM rows_"))


def test_who_inserts_more_rows_waits_for_nobody_who_waits_for_a_row(mariadb: MariaDB) -> None:
    """Else each would wait for the other, and the server may choose the program as the victim: where a row is rolled
    back that somebody waits for, who waits holds the place behind it."""
    database = Database(mariadb)
    snapshot = Snapshot(database)
    waiting = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE DB = '{database.name}' AND INFO LIKE '%SHARE MODE%'"
    deadlocks = database.run("SHOW STATUS LIKE 'Innodb_deadlocks'")
    with (
        closing(database.connected()) as first,
        first.cursor() as undone,
        closing(database.connected()) as second,
        second.cursor() as writing,
        ThreadPoolExecutor(1) as pool,
    ):
        second.begin()
        writing.execute("INSERT INTO rows_ VALUES (6, 'd')")
        first.begin()
        undone.execute("INSERT INTO rows_ VALUES (7, 'undone')")
        looking = pool.submit(snapshot.look, snapshot.at)
        assert wait_until(lambda: bool(database.run(waiting)), 10)
        time.sleep(0.2)
        first.rollback()
        time.sleep(0.2)
        writing.execute("INSERT INTO rows_ VALUES (8, 'e')")
        assert not looking.done()
        second.commit()
        looking.result()
    assert database.run("SHOW STATUS LIKE 'Innodb_deadlocks'") == deadlocks
    told = {number for _ in range(3) for _, number, _ in snapshot.come()}
    assert told == {1, 2, 3, 6, 8}
