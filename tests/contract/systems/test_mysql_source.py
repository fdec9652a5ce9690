"""A table of MySQL in the suite of sources, and what may happen to a table that is read."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from connect_core.errors import ConfigError, DataError, Refused, Retriable, Unreachable
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.sources import VALUES, SourceContract
from connect_core.sdk.values import Bounds, Position, Range, SourceBatch
from connect_core.systems.mysql.metadata_locks import PLUGIN, SCHEMA, who_shows
from connect_core.systems.mysql.source import MysqlSource
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_probing import probe_source
from tests.mariadb import Database, MariaDB, running
from tests.mysql import ONLY_MARIADB, MySQL
from tests.mysql_writers import TABLE
from tests.mysql_writers import writing as writing_all

pytestmark = pytest.mark.server


class OfBodies(MysqlSource):
    """The suite compares values: those of the column `body` alone."""

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        found = super()._page(wanted, begin, end, most, most_bytes)
        records = found.records
        bodies = [json.loads(value)["body"].encode() for value in records.column("value").to_pylist()]
        place = records.schema.get_field_index("value")
        return replace(found, records=records.set_column(place, "value", pa.array(bodies, pa.binary())))


class TableCase:
    unkept = frozenset({"null", "every byte", "not text"})
    """A row is an object of JSON, and its text column holds texts."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.options = {**database.options, "table": "t", "every_s": 0.02, "open_transactions_s": 0.2}
        self.partition = Partition(f"{database.name}.t")
        self.make()

    def make(self, columns: str = "id bigint AUTO_INCREMENT PRIMARY KEY, body longtext") -> None:
        self.database.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t ({columns})")

    def source(self, **more: Any) -> MysqlSource:
        return OfBodies(MysqlSourceOptions.model_validate({**self.options, **more}))

    def append(self, values: Sequence[bytes | None]) -> None:
        with closing(self.database.connected()) as connection, connection.cursor() as writing:
            writing.execute("BEGIN")
            for value in values:
                writing.execute("INSERT INTO t (body) VALUES (%s)", ((value or b"").decode(),))
            writing.execute("COMMIT")

    def break_(self) -> None:
        self.options = {**self.options, "host": "127.0.0.1", "port": 1}

    def bounds(self, at: Position | None = None) -> Bounds:
        return self.source().available_offsets({self.partition: at})[self.partition]


@pytest.fixture
def system(mariadb: MariaDB) -> TableCase:
    return TableCase(Database(mariadb))


_SHOWN = {"plugin": ("mariadb", PLUGIN), "schema": ("own_mariadb", SCHEMA), "mysql": ("mysql", SCHEMA)}


@pytest.fixture(params=[pytest.param("plugin", marks=ONLY_MARIADB), "schema", "mysql"])
def shown(request: pytest.FixtureRequest) -> TableCase:
    """A table on a server that shows its writers in either way; MySQL tells more of them than MariaDB does."""
    server, shows = _SHOWN[request.param]
    database = Database(request.getfixturevalue(server))
    if shows == SCHEMA:
        database.run(f"UNINSTALL SONAME IF EXISTS '{PLUGIN}'")
    with closing(database.connected()) as connection, connection.cursor() as asking:
        assert who_shows(asking) == shows
    return TableCase(database)


class TestTheTable(SourceContract):
    steps = 40

    @pytest.fixture
    def live(self) -> Range:
        pytest.skip("no range of a table is live: each has an end below which nothing comes")


# ------------------------------------------------------------------------------------------- transactions that are open


@pytest.fixture
def writing(shown: TableCase) -> Iterator[Any]:
    """Another program's session, within a transaction."""
    with closing(shown.database.connected()) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        yield cursor


def _inserts(writing: Any) -> None:
    writing.execute("INSERT INTO t (body) VALUES ('late')")


def _inserts_after_a_savepoint(writing: Any) -> None:
    writing.execute("SAVEPOINT a")
    _inserts(writing)
    writing.execute("RELEASE SAVEPOINT a")


def _inserts_a_number_of_its_own(writing: Any) -> None:
    writing.execute("INSERT INTO t VALUES (5, 'late')")


@pytest.mark.parametrize("begins", [_inserts, _inserts_after_a_savepoint, _inserts_a_number_of_its_own])
def test_a_row_of_an_open_transaction_is_not_passed_over(
    shown: TableCase, writing: Any, begins: Callable[[Any], None]
) -> None:
    shown.append([b"early"])
    follower = Follower(shown.source())
    assert follower.run() == [b"early"]
    assert (shown.bounds().partial, shown.bounds().waits) == (False, "")
    begins(writing)
    shown.append([b"newest"])
    assert follower.run() == []
    assert "wait for transactions that are still open" in shown.bounds(follower.positions[shown.partition]).waits
    assert Follower(shown.source(), follower.positions).run() == []
    assert shown.bounds(follower.positions[shown.partition]).partial
    writing.execute("COMMIT")
    assert Follower(shown.source(), follower.positions).run() == [b"late", b"newest"]


def test_a_number_that_is_drawn_and_not_inserted_yet(shown: TableCase) -> None:
    """All numbers of a statement are drawn before its first row is in; a trigger keeps the second one waiting. No lock
    of a row says so. Two named locks say how far it is."""
    shown.database.run(
        "CREATE TRIGGER slow BEFORE INSERT ON t FOR EACH ROW IF NEW.body = 'late' THEN"
        " SET @a = GET_LOCK('drawn', 60); SET @b = GET_LOCK('go', 60); END IF"
    )
    follower = Follower(shown.source())
    with closing(shown.database.connected()) as held, held.cursor() as holding:
        holding.execute("SELECT GET_LOCK('go', 0)")
        with ThreadPoolExecutor(1) as pool:
            inserting = pool.submit(shown.database.run, "INSERT INTO t (body) VALUES ('early'), ('late')")
            _wait_until(lambda: shown.database.run("SELECT IS_USED_LOCK('drawn') IS NULL") == [(0,)])
            shown.append([b"newest"])
            early = follower.run()
            holding.execute("SELECT RELEASE_LOCK('go')")
            inserting.result()
    assert early == []
    assert follower.run() == [b"early", b"late", b"newest"]


def _wait_until(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_prepared_transaction_is_open(shown: TableCase, leaves: bool) -> None:
    """Also when its session has ended: it has no lock of the table any more then."""
    follower = Follower(shown.source())
    session = shown.database.connected()
    with session.cursor() as writing:
        writing.execute(f"XA START '{shown.database.name}'")
        _inserts(writing)
        shown.append([b"newest"])
        assert follower.run() == []
        writing.execute(f"XA END '{shown.database.name}'")
        writing.execute(f"XA PREPARE '{shown.database.name}'")
    try:
        assert follower.run() == []
        if leaves:
            _leave(session, shown.database)
            assert follower.run() == []
            assert Follower(shown.source()).run() == []
    finally:
        _commit_prepared(session, shown.database)
    assert follower.run() == [b"late", b"newest"]


def _leave(session: Any, database: Database) -> None:
    number = session.thread_id()
    session.close()
    still_there = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {number}"
    _wait_until(lambda: database.run(still_there) == [])


def _commit_prepared(session: Any, database: Database) -> None:
    """By its own session while that is there: no other session may commit it then."""
    commit = f"XA COMMIT '{database.name}'"
    if not session.open:
        database.run(commit)
        return
    with closing(session), session.cursor() as writing:
        writing.execute(commit)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_limit_of_the_server_cuts_no_list_of_writers(shown: TableCase, backwards: bool) -> None:
    """Whichever of them comes first in it."""
    shown.database.run("SET GLOBAL sql_select_limit = 1")
    try:
        follower, late = Follower(shown.source()), [shown.database.connected() for _ in range(3)]
        for session in late:
            with session.cursor() as writing:
                writing.execute("BEGIN")
                _inserts(writing)
        shown.append([b"newest"])
        for session in late[:: -1 if backwards else 1]:
            assert follower.run() == []
            with closing(session), session.cursor() as writing:
                writing.execute("COMMIT")
        assert follower.run() == [b"late"] * 3 + [b"newest"]
    finally:
        shown.database.run("SET GLOBAL sql_select_limit = DEFAULT")


def test_what_came_before_a_long_transaction_is_read_while_it_runs(shown: TableCase, writing: Any) -> None:
    follower = Follower(shown.source())
    with closing(shown.database.connected()) as short, short.cursor() as inserting:
        inserting.execute("BEGIN")
        inserting.execute("INSERT INTO t (body) VALUES ('short')")
        shown.append([b"before"])
        assert follower.run() == []
        _inserts(writing)
        shown.append([b"after"])
        assert follower.run() == []
        inserting.execute("COMMIT")
    assert follower.run() == [b"short", b"before"]
    writing.execute("COMMIT")
    assert follower.run() == [b"late", b"after"]


def test_a_run_waits_for_short_transactions(shown: TableCase, writing: Any) -> None:
    _inserts(writing)
    shown.append([b"newest"])
    threading.Timer(0.3, writing.execute, ["COMMIT"]).start()
    assert Follower(shown.source(open_transactions_s=20)).run() == [b"late", b"newest"]


def test_a_transaction_that_reads_or_writes_elsewhere_holds_up_nothing(shown: TableCase, writing: Any) -> None:
    shown.database.run("CREATE TABLE others (id bigint AUTO_INCREMENT PRIMARY KEY)")
    writing.execute("INSERT INTO others VALUES ()")
    writing.execute("SELECT * FROM t")
    shown.append([b"newest"])
    assert Follower(shown.source()).run() == [b"newest"]


WRITERS = 200


def test_no_row_is_passed_over_beside_hundreds_of_open_transactions(shown: TableCase) -> None:
    """The reader never waits, so that it looks in all states."""
    shown.database.run(TABLE)
    options = {**shown.options, "table": "orders", "open_transactions_s": 0}
    follower = Follower(OfNumbers(MysqlSourceOptions.model_validate(options)))
    read: list[int] = []
    with writing_all(shown.database, random.Random(5), WRITERS):
        begun = time.monotonic()
        while time.monotonic() < begun + 3 or (len(read) <= 20 and time.monotonic() < begun + 240):
            read += map(int, filter(None, follower.run()))
    early = len(read)
    read += map(int, filter(None, follower.run()))
    committed = [number for (number,) in shown.database.run("SELECT id FROM orders ORDER BY id")]
    assert len(committed) > 300
    assert early > 20
    assert read == committed


class OfNumbers(MysqlSource):
    """The values are the numbers of rows."""

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        found = super()._page(wanted, begin, end, most, most_bytes)
        numbers = [str(one).encode() for one in found.records.column("offset").to_pylist()]
        place = found.records.schema.get_field_index("value")
        return replace(found, records=found.records.set_column(place, "value", pa.array(numbers, pa.binary())))


# ------------------------------------------------------------------------------------------------ what becomes of a row


def test_rows_that_were_changed_or_deleted_are_no_loss(system: TableCase) -> None:
    system.append(VALUES)
    follower = Follower(system.source(), max_records=23)
    follower.positions[system.partition] = None
    assert follower.step() == VALUES[:23]
    system.database.run(
        "UPDATE t SET body = 'other' WHERE id = 23", "DELETE FROM t WHERE id < 23 OR id BETWEEN 30 AND 40"
    )
    assert Follower(system.source(), follower.positions).run() == VALUES[23:29] + VALUES[40:]


def test_numbers_without_rows_are_counted(system: TableCase) -> None:
    system.database.run("INSERT INTO t VALUES (5, 'a'), (6, 'b'), (9, 'c')")
    wanted = range_of(system.partition, system.bounds())
    [batch] = system.source().read(wanted, limit())
    assert (wanted.begin, wanted.end, batch.holes) == (5, 10, ((7, 9),))


@pytest.mark.parametrize("how", ["TRUNCATE t", "DROP TABLE t"])
def test_a_table_that_begins_anew_stops_until_a_person_says_so(system: TableCase, how: str) -> None:
    system.append(VALUES)
    follower = Follower(system.source())
    assert follower.run() == VALUES
    system.database.run(how)
    if how.startswith("DROP"):
        with pytest.raises(Unreachable, match="no such table"):
            follower.run()
        system.make()
    system.append([b"new"])
    with pytest.raises(DataError, match="The counter of column id is at 1, and rows before 201 were read"):
        follower.run()
    system.append(VALUES)
    with pytest.raises(DataError, match=r"were back at 1 .* nobody has read, from number 2 on"):
        follower.run()
    assert Follower(system.source(), {system.partition: Position(0, 0, {})}).run() == [b"new", *VALUES]


def test_a_counter_that_is_put_right_before_a_row_came_is_read_on(system: TableCase) -> None:
    system.append(VALUES)
    follower = Follower(system.source())
    follower.run()
    system.database.run("DELETE FROM t WHERE id > 10", "ALTER TABLE t AUTO_INCREMENT = 11")
    with pytest.raises(DataError, match="The counter of column id is at 10"):
        follower.run()
    system.database.run("ALTER TABLE t AUTO_INCREMENT = 201")
    system.append([b"next"])
    assert follower.run() == [b"next"]


def test_a_row_with_a_number_of_its_own_moves_the_counter(system: TableCase) -> None:
    system.database.run("INSERT INTO t VALUES (1000, 'by hand')")
    system.append([b"next"])
    assert Follower(system.source()).run() == [b"by hand", b"next"]


def test_a_server_that_was_killed_gives_no_number_again(own_mariadb: MariaDB) -> None:
    system = TableCase(Database(own_mariadb))
    system.append(VALUES)
    follower = Follower(system.source())
    assert follower.run() == VALUES
    system.database.run("DELETE FROM t WHERE id > 50")
    own_mariadb.kill()
    own_mariadb.start()
    system.append([b"after"])
    assert Follower(system.source(), follower.positions).run() == [b"after"]


def test_a_range_is_read_of_the_table_that_it_was_planned_for(system: TableCase) -> None:
    system.append(VALUES)
    planned = range_of(system.partition, system.bounds())
    with pytest.raises(Retriable, match="made again"):
        list(system.source().read(replace(planned, evidence={"origin": "another"}), limit()))


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ("id varchar(9) PRIMARY KEY, body text", {}, "is not one column of whole numbers"),
        ("id bigint NOT NULL, body text", {}, "is not one column of whole numbers"),
        ("id bigint NOT NULL, body text", {"incrementing": "id"}, "No index of the table says that column id alone"),
        ("id bigint UNIQUE, body text", {"incrementing": "id"}, "Column id takes NULL"),
        ("id bigint, body varchar(9), PRIMARY KEY (id, body)", {"incrementing": "id"}, "column id alone is unique"),
        ("id bigint PRIMARY KEY, body text", {"incrementing": "body"}, "Column body is text"),
        ("id bigint PRIMARY KEY, body text", {"incrementing": "no"}, "The table has no column no"),
        ("id bigint PRIMARY KEY, body text, place point", {}, "Column place is point, which is not kept exactly"),
        ("id bigint PRIMARY KEY, body text) ENGINE = MyISAM #", {}, "The engine of the table is MyISAM"),
    ],
)
def test_a_table_of_which_rows_could_be_lost_is_refused(system: TableCase, columns: str, more: Any, words: str) -> None:
    system.database.run("DROP TABLE t", f"CREATE TABLE t ({columns.replace('#', '')}" + ")" * ("#" not in columns))
    with pytest.raises(ConfigError, match=words):
        system.source(**more).available_offsets({system.partition: None})


@pytest.mark.parametrize("number", [-1, 2**62 + 5])
def test_a_number_that_is_no_offset_is_refused(system: TableCase, number: int) -> None:
    system.make("id bigint PRIMARY KEY, body text")
    system.database.run(f"INSERT INTO t VALUES ({number}, 'a')")
    with pytest.raises(ConfigError, match="Numbers of rows must be from 0 to"):
        system.bounds()


def test_a_replica_is_refused(system: TableCase) -> None:
    system.database.run("SET GLOBAL read_only = 1")
    try:
        with pytest.raises(Refused, match="is read-only, as replicas are"):
            system.bounds()
    finally:
        system.database.run("SET GLOBAL read_only = 0")


@ONLY_MARIADB
def test_a_server_that_does_not_show_its_writers_is_refused(system: TableCase) -> None:
    system.append([b"one"])
    system.database.run(f"UNINSTALL SONAME '{PLUGIN}'")
    try:
        with pytest.raises(Refused, match="does not show which transactions still write"):
            system.bounds()
        said = [one.what for one in probe_source(system.options) if not one.ok]
        assert "INSTALL SONAME 'metadata_lock_info'" in said[0]
    finally:
        system.database.run(f"INSTALL SONAME '{PLUGIN}'")
    assert Follower(system.source()).run() == [b"one"]


def test_a_list_of_locks_that_is_switched_off_is_none(mysql: MariaDB) -> None:
    """The instrument alone says nothing."""
    system = TableCase(Database(mysql))
    system.append([b"one"])
    switch = "UPDATE performance_schema.setup_consumers SET ENABLED = '{}' WHERE NAME = 'global_instrumentation'"
    system.database.run(switch.format("NO"))
    try:
        with pytest.raises(Refused, match="does not show which transactions still write"):
            system.bounds()
    finally:
        system.database.run(switch.format("YES"))
    assert Follower(system.source()).run() == [b"one"]


@pytest.mark.usefixtures("mysql")
def test_a_list_of_locks_that_was_full_says_nothing_when_that_is_forgotten(worker_folder: Path) -> None:
    small = {"performance-schema-max-metadata-locks": "150"}
    for server in running(MySQL(worker_folder / "mysql-of-few-locks", settings=small)):
        system = TableCase(Database(server))
        system.append([b"one"])
        assert Follower(system.source()).run() == [b"one"]
        time.sleep(1.1)  # the server counts whole seconds
        system.database.run("FLUSH STATUS")
        with pytest.raises(Refused, match="at most 150 locks of tables"):
            system.bounds()


def test_the_least_right_is_to_read_the_table(system: TableCase) -> None:
    user = f"u{system.database.name[-8:]}"
    system.database.run(
        f"CREATE USER {user}@'127.0.0.1'", f"GRANT SELECT ON {system.database.name}.t TO {user}@'127.0.0.1'"
    )
    if isinstance(system.database.server, MySQL):  # the plugin of MariaDB asks for no right
        lacks = [one.what for one in probe_source({**system.options, "user": user}) if not one.ok]
        assert [one for one in lacks if "GRANT SELECT ON performance_schema.*" in one] == lacks != []
        with pytest.raises(Refused, match="may not look into performance_schema"):
            Follower(system.source(user=user)).run()
        system.database.run(f"GRANT SELECT ON performance_schema.* TO {user}@'127.0.0.1'")
    system.append(VALUES)
    assert Follower(system.source(user=user)).run() == VALUES
    said = list(probe_source({**system.options, "user": user}))
    assert [one for one in said if not one.ok] == []
    assert "the counter of column id is at 200" in [one.what for one in said]
