"""What comes out of a slot when rows of a snapshot have to wait, and when a table cannot be read any more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.sdk.plugin import SnapshotWish
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import Bounds, Position
from connect_core.systems.postgresql.changes import chunks
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.snapshot_requests import request_snapshot
from connect_core.systems.postgresql.changes.source import PostgresChangesSource, progress_of
from tests.faults.kit.processes import wait_for
from tests.postgres_tables import Database

pytestmark = pytest.mark.server

ALL = [("r", 1, "a"), ("r", 2, "b"), ("r", 3, "c")]


class Snapshot:
    """Of a table `bad` of two rows, and one of three, two at once."""

    def __init__(self, database: Database, **more: Any) -> None:
        self.database, self.partition = database, Partition(str(database.options["database"]))
        database.run("CREATE TABLE bad (id int PRIMARY KEY, body text)", "INSERT INTO bad VALUES (7, 'x'), (8, 'y')")
        database.run("CREATE TABLE rows (id int PRIMARY KEY, body text)")
        database.run("INSERT INTO rows VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        self.given = {
            **database.options,
            "tables": ["bad", "rows"],
            "every_s": 0.02,
            "schemas": False,
            "snapshot_rows": 2,
            "lock_timeout_s": 0.2,
            "uid": str(database.options["database"]).rpartition("_")[2],
            **more,
        }

    @property
    def options(self) -> PostgresChangesOptions:
        return PostgresChangesOptions.model_validate(self.given)

    def begin(self) -> None:
        """The slot is made, and no chunk is written."""
        [chosen] = self.source().available_offsets({self.partition: None}).values()
        snapshot, self.given["snapshot"] = self.options.snapshot, "never"
        begun = self.look(Position(0, 0, chosen.evidence))
        self.given["snapshot"] = snapshot
        tables = [[*one] for one in chunks.tables_of(self.database.connected(autocommit=True).cursor(), self.options)]
        self.at = Position(0, 0, {**begun.evidence, "snapshot": {"tables": tables, "after": None}})

    def source(self) -> PostgresChangesSource:
        return PostgresChangesSource(self.options)

    def look(self, at: Position | None = None) -> Bounds:
        source = self.source()
        [seen] = source.available_offsets({self.partition: at or self.at}).values()
        source._database.close()
        if seen.failure:
            raise seen.failure.as_error()
        return seen

    def come(self, **wanted: int) -> list[tuple[str, int, str]]:
        """What one range brings."""
        source, seen = self.source(), self.look()
        self.seen = seen
        asked = range_of(self.partition, seen, **wanted)
        behind, told = asked.begin, list[bytes]()
        for batch in source.read(asked, limit()):
            told += batch.records.column("value").to_pylist()
            behind = batch.next_offset
        self.at = Position(seen.incarnation, behind, source.evidence(replace(asked, evidence=seen.evidence), behind))
        source._database.close()
        events = [json.loads(one) for one in told]
        return [(one["op"], *[*(one["after"] or one["before"]).values()][:2]) for one in events]

    def all(self) -> list[tuple[str, int, str]]:
        """What a run brings."""
        told = self.come()
        while self.seen.partial:
            told += self.come()
        return told

    @property
    def due(self) -> list[str]:
        return [one.place[1] for one in progress_of(self.at.evidence).tables]


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.drop_slots()


@pytest.fixture
def snapshot(database: Database, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    monkeypatch.setattr(chunks, "_WAIT_S", 0.2)
    made = Snapshot(database)
    made.begin()
    return made


# ------------------------------------------------------------------------------------------------------ rows that wait


def test_who_holds_up_rows_is_named(snapshot: Snapshot) -> None:
    with closing(snapshot.database.connected()) as session, session.cursor() as writing:
        writing.execute("INSERT INTO rows VALUES (4, 'd')")
        session.commit()
        writing.execute("UPDATE rows SET body = 'new' WHERE id = 1")
        seen = snapshot.look()
        pid = session.info.backend_pid
        assert "rows of table public.bad and 1 more are still to come" in seen.waits
        assert re.search(rf"process {pid} of the server has had a transaction open for \d+ s; the next run", seen.waits)
        assert (seen.end, seen.partial, seen.beside) == (1, False, None), "changes are moved, and then it ends"
        assert snapshot.all() == [("c", 4, "d")]
        session.rollback()
    assert snapshot.all() == [("r", 7, "x"), ("r", 8, "y"), *ALL, ("r", 4, "d")]
    assert snapshot.look().waits == ""


def test_since_when_it_is_open_is_left_out_where_the_server_does_not_tell(snapshot: Snapshot) -> None:
    user = only_reads(snapshot)
    with closing(snapshot.database.connected()) as session, session.cursor() as writing:
        writing.execute("UPDATE rows SET body = 'new' WHERE id = 1")
        waits = snapshot.look().waits
        assert f"process {session.info.backend_pid} of the server has a transaction open; the next run" in waits
        session.rollback()
    snapshot.database.run(f"GRANT pg_read_all_stats TO {user}")
    with closing(snapshot.database.connected()) as session, session.cursor() as writing:
        writing.execute("UPDATE rows SET body = 'new' WHERE id = 1")
        assert "has had a transaction open for" in snapshot.look().waits
        session.rollback()
    assert len(snapshot.all()) == 5


def test_a_table_that_another_session_has_locked_holds_up_no_change(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was locked behind the watermark, so nobody waits for its transaction."""
    wait = chunks._wait_for_others
    with closing(snapshot.database.connected()) as session, session.cursor() as locking:

        def waited(asking: Any) -> None:
            wait(asking)
            locking.execute("LOCK TABLE bad IN ACCESS EXCLUSIVE MODE")

        snapshot.database.run("INSERT INTO rows VALUES (4, 'd')")
        monkeypatch.setattr(chunks, "_wait_for_others", waited)
        seen = snapshot.look()
        assert f"process {session.info.backend_pid} of the server has locked the table, in a trans" in seen.waits
        monkeypatch.undo()
        monkeypatch.setattr(chunks, "_WAIT_S", 0.2)
        assert snapshot.all() == [("c", 4, "d")]
        assert "has had a transaction open" in snapshot.seen.waits
        assert [(one.table, one.left) for one in chunks.rows_left(snapshot.options, progress_of(snapshot.at.evidence))]
        session.rollback()
    assert len(snapshot.all()) == 6


def test_a_locked_table_of_a_publication_of_others_holds_up_no_change(database: Database) -> None:
    """Whether the document means it or not: while it is locked, the server does not say what is published."""
    database.run("CREATE TABLE busy (id int)", "CREATE PUBLICATION everything FOR ALL TABLES")
    snapshot = Snapshot(database, tables=["rows"], publication="everything", snapshot="never")
    snapshot.begin()
    snapshot.at.evidence["snapshot"] = None
    with closing(database.connected()) as session, session.cursor() as locking:
        locking.execute("LOCK TABLE busy IN ACCESS EXCLUSIVE MODE")
        database.run("INSERT INTO rows VALUES (4, 'd')")
        assert snapshot.all() == [("c", 4, "d")]


# -------------------------------------------------------------------------------------- tables that cannot be read now


NO_KEY = ["ALTER TABLE bad REPLICA IDENTITY FULL", "ALTER TABLE bad DROP CONSTRAINT bad_pkey"]
UNFIT = {
    "no key": (
        NO_KEY,
        ["ALTER TABLE bad ADD PRIMARY KEY (id)", "ALTER TABLE bad REPLICA IDENTITY DEFAULT"],
        "bad cannot be read chunk by chunk: it has no primary key",
    ),
    "no identity": (
        ["ALTER TABLE bad DROP CONSTRAINT bad_pkey"],
        ["ALTER TABLE bad ADD PRIMARY KEY (id)"],
        "bad has no replica identity: while it is published, its updates and deletes fail",
    ),
    "no right": (["REVOKE SELECT ON bad FROM {0}"], ["GRANT SELECT ON bad TO {0}"], "may not read the rows of table"),
    "a key that is not stored in the row": (
        [
            "ALTER TABLE bad REPLICA IDENTITY FULL",
            "ALTER TABLE bad ADD g int GENERATED ALWAYS AS (1) STORED",
            "ALTER TABLE bad DROP CONSTRAINT bad_pkey, ADD PRIMARY KEY (id, g)",
        ],
        ["ALTER TABLE bad DROP g", "ALTER TABLE bad ADD PRIMARY KEY (id)"],
        "bad has a generated column in its replica identity, which is not published: while it is published",
    ),
    "hidden rows": (
        ["ALTER TABLE bad ENABLE ROW LEVEL SECURITY", "ALTER TABLE bad FORCE ROW LEVEL SECURITY"],
        ["ALTER TABLE bad DISABLE ROW LEVEL SECURITY"],
        "Row-level security hides rows of table public.bad from the user",
    ),
}


def only_reads(snapshot: Snapshot) -> str:
    """From now on a role does that has no other rights."""
    user = f"u{snapshot.given['uid']}"
    creates = f"GRANT CREATE ON DATABASE {snapshot.given['database']} TO {user}"
    snapshot.database.run(f"CREATE ROLE {user} LOGIN REPLICATION", creates)
    for table in ("bad", "rows"):
        snapshot.database.run(f"ALTER TABLE {table} OWNER TO {user}")
    snapshot.given["user"] = user
    return user


@pytest.mark.parametrize("kind", UNFIT)
@pytest.mark.parametrize("begun", [False, True])
def test_a_table_that_becomes_unfit_holds_up_no_other(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, kind: str, begun: bool
) -> None:
    """Its changes come, too; and its rows, when they can be read again, all of them."""
    broken, mended, why = UNFIT[kind]
    user = only_reads(snapshot)
    if begun:
        monkeypatch.setattr(chunks, "CHUNKS", 1)
        snapshot.given["snapshot_rows"] = 1
        assert snapshot.come() == [("r", 7, "x")]
    snapshot.database.run(*(one.format(user) for one in broken), "INSERT INTO bad VALUES (9, 'z')")
    assert snapshot.all() == [("c", 9, "z"), *ALL]
    assert snapshot.due == ["bad"]
    written = log_end(snapshot)
    seen = snapshot.look()
    assert (seen.partial, seen.waits) == (False, "")
    assert seen.beside is not None
    assert why in str(seen.beside.as_error())
    assert log_end(snapshot) == written, "nothing is written, and nobody is waited for"
    snapshot.database.run(*(one.format(user) for one in mended))
    assert snapshot.all() == [("r", 7, "x"), ("r", 8, "y"), ("r", 9, "z")]
    assert snapshot.look().beside is None


@pytest.mark.parametrize("begun", [False, True])
def test_a_row_that_the_server_does_not_give_holds_up_no_other_table(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    snapshot.database.run("CREATE TYPE mood AS ENUM ('secret')", "ALTER TABLE bad ADD mood mood DEFAULT 'secret'")
    if begun:
        monkeypatch.setattr(chunks, "CHUNKS", 1)
        snapshot.given["snapshot_rows"] = 1
        assert [one[1] for one in snapshot.come()] == [7]
    snapshot.database.run(
        "DELETE FROM pg_enum WHERE enumtypid = 'mood'::regtype", "INSERT INTO bad VALUES (9, 'z', NULL)"
    )
    assert [one[1] for one in snapshot.all()] == [9, 1, 2, 3]
    seen = snapshot.look()
    assert (snapshot.due, seen.partial, seen.waits) == (["bad"], False, "")
    assert seen.beside is not None
    told = str(seen.beside.as_error())
    assert "does not give rows of table public.bad: InvalidBinaryRepresentation (22P03)" in told
    assert "secret" not in told
    snapshot.database.run("ALTER TABLE bad DROP mood")
    assert snapshot.all() == [("r", 7, "x"), ("r", 8, "y"), ("r", 9, "z")]
    assert snapshot.look().beside is None


def log_end(snapshot: Snapshot) -> list[Any]:
    """The server lets the slot go a moment after whoever has read it is gone."""
    free = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{0}' AND NOT active"
    wait_for(lambda: snapshot.database.run(free.format(snapshot.options.slot_name)) == [(1,)], "the slot is free")
    asked = (
        "SELECT count(*) FROM pg_logical_slot_peek_binary_changes('{0}', NULL, NULL, 'proto_version', '1',"
        " 'publication_names', '{0}', 'messages', 'true')"
    )
    return snapshot.database.run(asked.format(snapshot.options.slot_name))


def test_a_schema_that_may_be_used_no_more_holds_up_nothing_else(database: Database) -> None:
    snapshot = Snapshot(database, tables=["sales.orders", "rows"])
    database.run("CREATE SCHEMA sales", "CREATE TABLE sales.orders (id int PRIMARY KEY, body text)")
    user = only_reads(snapshot)
    database.run("INSERT INTO sales.orders VALUES (1, 'o')", f"GRANT USAGE ON SCHEMA sales TO {user}")
    database.run(f"GRANT CREATE ON SCHEMA sales TO {user}", f"ALTER TABLE sales.orders OWNER TO {user}")
    snapshot.begin()
    database.run(f"REVOKE USAGE ON SCHEMA sales FROM {user}", "INSERT INTO sales.orders VALUES (2, 'p')")
    assert snapshot.all() == [("c", 2, "p"), *ALL]
    assert "may not read the rows of table sales.orders" in str(snapshot.look().beside)
    database.run(f"GRANT USAGE ON SCHEMA sales TO {user}")
    assert snapshot.all() == [("r", 1, "o"), ("r", 2, "p")]


def test_what_is_put_behind_is_so_only_with_the_chunk_that_says_it(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever reading stops: within that chunk, or behind its rows and before its commit. And two drivers say it."""
    snapshot.database.run(*NO_KEY)
    begin = snapshot.at
    for most in (1, 2, 3, 4, 5):
        snapshot.at, told, before = begin, list[tuple[str, int, str]](), None
        while before != snapshot.at:
            before = snapshot.at
            assert snapshot.due in (["bad", "rows"], ["rows", "bad"], ["bad"])
            told += snapshot.come(max_records=most)
        assert told == ALL, most
        assert snapshot.due == ["bad"]


def test_a_turn_of_two_drivers_is_taken_once(snapshot: Snapshot) -> None:
    snapshot.database.run(*NO_KEY)
    for _ in range(2):
        with closing(snapshot.database.connected(autocommit=True)) as session, session.cursor() as asking:
            chunks.write_chunks(asking, snapshot.options, progress_of(snapshot.at.evidence), (), "here")
    assert snapshot.all() == ALL
    assert snapshot.due == ["bad"]


def test_a_table_that_is_asked_for_twice_is_put_behind_once_for_each(snapshot: Snapshot) -> None:
    request_snapshot(snapshot.options, SnapshotWish(["bad", "rows"]))
    snapshot.database.run(*NO_KEY)
    assert snapshot.all() == ALL * 2
    assert snapshot.due == ["bad", "bad"]
    snapshot.database.run("ALTER TABLE bad ADD PRIMARY KEY (id)")
    assert snapshot.all() == [("r", 7, "x"), ("r", 8, "y")] * 2


def test_rows_that_are_left_of_a_table_that_cannot_be_read(snapshot: Snapshot) -> None:
    snapshot.database.run(*NO_KEY, "ANALYZE")
    left = chunks.rows_left(snapshot.options, progress_of(snapshot.at.evidence))
    assert [(one.table, one.left, one.rows) for one in left] == [("public.bad", 2, 2), ("public.rows", 3, 3)]
    snapshot.database.run("DROP TABLE bad")
    left = chunks.rows_left(snapshot.options, progress_of(snapshot.at.evidence))
    assert [one.table for one in left] == ["public.rows"]


def test_a_table_that_has_another_name_for_a_while_is_read_when_it_is_back(snapshot: Snapshot) -> None:
    snapshot.database.run("ALTER TABLE bad RENAME TO away", "INSERT INTO away VALUES (9, 'z')")
    assert snapshot.all() == [("c", 9, "z"), *ALL]
    seen = snapshot.look()
    assert seen.waits == "there is no table public.bad: if it is gone for good, take it out of `tables`"
    assert (seen.beside, seen.partial, snapshot.due) == (None, False, ["bad"])
    snapshot.database.run("INSERT INTO away VALUES (10, 'zz')", "ALTER TABLE away RENAME TO bad")
    assert snapshot.all() == [("c", 10, "zz"), ("r", 7, "x"), ("r", 8, "y"), ("r", 9, "z"), ("r", 10, "zz")]


def test_a_table_that_is_dropped_for_good_fails_nothing(snapshot: Snapshot) -> None:
    snapshot.database.run("DROP TABLE bad")
    assert snapshot.all() == ALL
    assert snapshot.seen.waits.startswith("there is no table public.bad")
    snapshot.database.run("CREATE TABLE more (id int PRIMARY KEY, body text)")
    snapshot.given["tables"] = ["bad", "rows", "more"]
    snapshot.look()
    snapshot.database.run("INSERT INTO more VALUES (1, 'm')")
    assert snapshot.all() == [("c", 1, "m"), ("r", 1, "m")], "a new one is published beside it, and is read"
    snapshot.given["tables"] = ["rows", "more"]
    assert snapshot.all() == []
    assert (snapshot.look().waits, snapshot.due) == ("", [])


def test_a_table_that_is_made_again_under_the_name_is_a_loss(snapshot: Snapshot) -> None:
    snapshot.database.run("DROP TABLE bad")
    assert snapshot.all() == ALL
    snapshot.database.run("CREATE TABLE bad (id int PRIMARY KEY, body text)", "INSERT INTO bad VALUES (1, 'lost')")
    [gap] = snapshot.look().gaps
    assert "public.bad was not in the publication for a while" in gap.reason


def test_a_table_that_was_never_there_is_asked_for(snapshot: Snapshot) -> None:
    snapshot.given["tables"] = ["bad", "rows", "wrong"]
    with pytest.raises(Unreachable, match=r"There is no table public\.wrong"):
        snapshot.look()


def test_an_unfit_table_that_the_document_names_no_more_is_passed_over(snapshot: Snapshot) -> None:
    snapshot.database.run(*NO_KEY)
    assert snapshot.all() == ALL
    snapshot.given["tables"] = ["rows"]
    assert snapshot.all() == []
    assert (snapshot.look().beside, snapshot.due) == (None, [])


def test_a_table_of_a_pattern_that_is_gone_has_no_rows(database: Database) -> None:
    database.run("CREATE PUBLICATION everything FOR ALL TABLES")
    snapshot = Snapshot(database, tables=["*"], publication="everything")
    snapshot.begin()
    database.run("DROP TABLE bad")
    assert snapshot.all() == ALL
    assert (snapshot.look().waits, snapshot.due) == ("", [])


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("ALTER TABLE bad REPLICA IDENTITY FULL, DROP CONSTRAINT bad_pkey", "public.bad cannot be read chunk by chunk"),
        ("REVOKE SELECT ON bad FROM {0}", "may not read the rows of table public.bad"),
    ],
)
def test_at_the_begin_an_unfit_table_is_refused(database: Database, broken: str, why: str) -> None:
    """Nothing is made yet, and the document may still say that only changes come."""
    snapshot = Snapshot(database)
    user = only_reads(snapshot)
    database.run(broken.format(user))
    with pytest.raises((ConfigError, Refused), match=why):
        snapshot.look(Position(0, 0, {}))
    assert database.run("SELECT * FROM pg_publication") == []
    snapshot.given["snapshot"] = "never"
    assert snapshot.look(Position(0, 0, {})).failure is None


def test_columns_beside_the_key_in_its_index_are_not_of_the_key(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a row that changes between watermark and chunk would come once more behind that change, as it was."""
    snapshot.database.run(
        "ALTER TABLE bad DROP CONSTRAINT bad_pkey, ADD PRIMARY KEY (id) INCLUDE (body)",
    )
    wait = chunks._wait_for_others

    def waited(asking: Any) -> None:
        wait(asking)
        snapshot.database.run("UPDATE bad SET body = 'new' WHERE id = 7")

    monkeypatch.setattr(chunks, "_wait_for_others", waited)
    monkeypatch.setattr(chunks, "CHUNKS", 1)
    assert snapshot.come() == [("u", 7, "new"), ("r", 8, "y")]


def test_a_table_that_gets_another_key_is_read_anew(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNKS", 1)
    snapshot.given["snapshot_rows"] = 1
    assert snapshot.come() == [("r", 7, "x")]
    snapshot.database.run("ALTER TABLE bad ADD code text", "UPDATE bad SET code = 15 - id")
    snapshot.database.run("ALTER TABLE bad DROP CONSTRAINT bad_pkey, ADD PRIMARY KEY (code)")
    told = snapshot.all()
    assert [one for one in told if one[0] == "r"] == [("r", 8, "y"), ("r", 7, "x"), *ALL]


def test_another_table_that_gets_the_name_is_read_from_its_begin(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNKS", 1)
    database.run("CREATE PUBLICATION everything FOR ALL TABLES")
    snapshot = Snapshot(database, tables=["ba?", "row?"], publication="everything", snapshot_rows=1)
    snapshot.begin()
    assert snapshot.come() == [("r", 7, "x")]
    database.run("CREATE TABLE other (LIKE bad INCLUDING ALL)", "INSERT INTO other VALUES (1, 'o'), (9, 'p')")
    database.run("ALTER TABLE bad RENAME TO before", "ALTER TABLE other RENAME TO bad")
    assert snapshot.all() == [("r", 1, "o"), ("r", 9, "p"), *ALL]


def test_a_key_of_an_earlier_version_is_gone_on_from(snapshot: Snapshot) -> None:
    tables = [["public", "rows"]]
    snapshot.at = replace(
        snapshot.at, evidence={**snapshot.at.evidence, "snapshot": {"tables": tables, "after": ["2"]}}
    )
    assert snapshot.all() == ALL[2:]


def test_a_prepared_transaction_is_named_as_one(snapshot: Snapshot) -> None:
    snapshot.database.run("BEGIN; UPDATE rows SET body = 'new' WHERE id = 1; PREPARE TRANSACTION 'p'")
    assert "a transaction has been prepared for 0 s (see pg_prepared_xacts); the next run" in snapshot.look().waits
    snapshot.database.run("COMMIT PREPARED 'p'")
    assert snapshot.all()[0] == ("u", 1, "new")
