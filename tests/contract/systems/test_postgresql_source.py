"""A table of PostgreSQL in the suite of sources, and what may happen to a table that is read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from connect_core.errors import ConfigError, DataError, Refused, Retriable, Unreachable, WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.sources import VALUES, SourceContract
from connect_core.sdk.values import Bounds, Position, Range, SourceBatch
from connect_core.systems.postgresql.source import PostgresSource
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_probing import probe
from tests.postgres_tables import Database

pytestmark = pytest.mark.server

ROWS = Partition("public.rows")


class OfBodies(PostgresSource):
    """The suite compares values: those of the column `body` alone."""

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        found = super()._page(wanted, begin, end, most, most_bytes)
        records = found.records
        bodies = [json.loads(value)["body"].encode() for value in records.column("value").to_pylist()]
        place = records.schema.get_field_index("value")
        return replace(found, records=records.set_column(place, "value", pa.array(bodies, pa.binary())))


class TableCase:
    unkept = frozenset({"null", "every byte", "not text", "NUL"})
    """A row is an object of JSON, and its text column holds texts."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.options = {**database.options, "table": "rows", "every_s": 0.02, "open_transactions_s": 0.2}
        self.make()

    def make(self, columns: str = "id bigserial PRIMARY KEY, body text") -> None:
        self.database.run("DROP TABLE IF EXISTS rows", f"CREATE TABLE rows ({columns})")

    def source(self, **more: Any) -> PostgresSource:
        return OfBodies(PostgresSourceOptions.model_validate({**self.options, **more}))

    def append(self, values: Sequence[bytes | None]) -> None:
        with closing(self.database.connected()) as connection, connection.cursor() as writing:
            for value in values:
                writing.execute("INSERT INTO rows (body) VALUES (%s)", ((value or b"").decode(),))
            connection.commit()

    def break_(self) -> None:
        self.options = {**self.options, "host": "127.0.0.1", "port": 1}

    def bounds(self, at: Position | None = None) -> Bounds:
        return self.source().available_offsets({ROWS: at})[ROWS]


@pytest.fixture
def system(postgres_url: str) -> TableCase:
    return TableCase(Database(postgres_url))


class TestTheTable(SourceContract):
    steps = 40

    @pytest.fixture
    def live(self) -> Range:
        pytest.skip("no range of a table is live: each has an end below which nothing comes")


# ------------------------------------------------------------------------------------------- transactions that are open

Begins = Callable[[Any], None]


def _inserts(writing: Any) -> None:
    writing.execute("INSERT INTO rows (body) VALUES ('late')")


def _inserts_after_a_savepoint(writing: Any) -> None:
    writing.execute("SAVEPOINT a")
    _inserts(writing)
    writing.execute("RELEASE a")


def _draws_in_what_is_rolled_back(writing: Any) -> None:
    """A number is drawn where it is not used, and inserted behind that."""
    writing.execute("SAVEPOINT a; SELECT nextval('rows_id_seq')")
    [number] = writing.fetchone()
    writing.execute(f"ROLLBACK TO a; INSERT INTO rows VALUES ({number}, 'late')")


def _draws_first(writing: Any) -> None:
    """It has no transaction id yet when others commit."""
    writing.execute("SELECT nextval('rows_id_seq')")


def _inserts_what_it_has_drawn(writing: Any) -> None:
    writing.execute("INSERT INTO rows VALUES (currval('rows_id_seq'), 'late')")


@pytest.fixture
def writing(system: TableCase) -> Iterator[Any]:
    """Another program's session, within a transaction."""
    with closing(system.database.connected(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        yield cursor


@pytest.mark.parametrize("begins", [_inserts, _inserts_after_a_savepoint, _draws_in_what_is_rolled_back])
def test_a_row_of_an_open_transaction_is_not_passed_over(system: TableCase, writing: Any, begins: Begins) -> None:
    system.append([b"early"])
    follower = Follower(system.source())
    assert follower.run() == [b"early"]
    assert not system.bounds().partial
    begins(writing)
    system.append([b"newest"])
    assert follower.run() == []
    assert Follower(system.source(), follower.positions).run() == []
    assert system.bounds(follower.positions[ROWS]).partial
    writing.execute("COMMIT")
    assert Follower(system.source(), follower.positions).run() == [b"late", b"newest"]


def test_a_number_that_is_drawn_before_a_transaction_has_an_id(system: TableCase, writing: Any) -> None:
    """The oldest transaction id that runs is then higher than that of the row that is committed."""
    _draws_first(writing)
    system.append([b"newest"])
    follower = Follower(system.source())
    assert follower.run() == []
    _inserts_what_it_has_drawn(writing)
    assert follower.run() == []
    writing.execute("COMMIT")
    assert follower.run() == [b"late", b"newest"]


def test_a_prepared_transaction_is_open(system: TableCase, writing: Any) -> None:
    _inserts(writing)
    follower = Follower(system.source())
    system.append([b"newest"])
    assert follower.run() == []
    writing.execute("PREPARE TRANSACTION 'one'")
    assert follower.run() == []
    writing.execute("COMMIT PREPARED 'one'")
    assert follower.run() == [b"late", b"newest"]


def test_what_came_before_a_long_transaction_is_read_while_it_runs(system: TableCase, writing: Any) -> None:
    follower = Follower(system.source())
    with closing(system.database.connected()) as short, short.cursor() as inserting:
        inserting.execute("INSERT INTO rows (body) VALUES ('short')")
        system.append([b"before"])
        assert follower.run() == []
        _inserts(writing)
        system.append([b"after"])
        assert follower.run() == []
        short.commit()
    assert follower.run() == [b"short", b"before"]
    writing.execute("COMMIT")
    assert follower.run() == [b"late", b"after"]


def test_a_run_waits_for_short_transactions(system: TableCase, writing: Any) -> None:
    _inserts(writing)
    system.append([b"newest"])
    threading.Timer(0.3, writing.execute, ["COMMIT"]).start()
    assert Follower(system.source(open_transactions_s=20)).run() == [b"late", b"newest"]


def test_a_transaction_that_writes_elsewhere_holds_up_nothing(system: TableCase, writing: Any) -> None:
    system.database.run("CREATE TABLE others (id bigserial PRIMARY KEY)")
    writing.execute("INSERT INTO others DEFAULT VALUES; SELECT * FROM rows")
    system.append([b"newest"])
    assert Follower(system.source()).run() == [b"newest"]


def test_a_row_of_a_partition_is_not_passed_over(system: TableCase, writing: Any) -> None:
    """Its transaction may hold no lock on the whole table."""
    _make_partitioned(system)
    writing.execute("INSERT INTO rows_even VALUES (10, 'even')")
    system.database.run("INSERT INTO rows_odd VALUES (11, 'odd')")
    follower = Follower(system.source())
    assert follower.run() == []
    writing.execute("COMMIT")
    assert follower.run() == [b"even", b"odd"]


def _make_partitioned(system: TableCase) -> None:
    system.options["incrementing"] = "id"
    system.make("id bigint NOT NULL, body text) PARTITION BY LIST (body")
    parts = (f"CREATE TABLE rows_{one} PARTITION OF rows FOR VALUES IN ('{one}')" for one in ("odd", "even"))
    system.database.run(*parts, "CREATE INDEX ON rows (id)")


def test_two_rows_of_one_number_are_an_error(system: TableCase) -> None:
    _make_partitioned(system)
    system.database.run("INSERT INTO rows VALUES (7, 'odd'), (7, 'even')")
    follower = Follower(system.source())
    with pytest.raises(DataError, match="Two rows have the number 7"):
        follower.run()
    follower = Follower(system.source(), max_records=1)
    with pytest.raises(DataError, match="Two rows have the number 7"):
        follower.run()


# ------------------------------------------------------------------------------------------------ what becomes of a row


def test_rows_that_were_changed_or_deleted_are_no_loss(system: TableCase) -> None:
    system.append(VALUES)
    follower = Follower(system.source(), max_records=23)
    follower.positions[ROWS] = None
    assert follower.step() == VALUES[:23]
    system.database.run(
        "UPDATE rows SET body = 'other' WHERE id = 23", "DELETE FROM rows WHERE id < 23 OR id BETWEEN 30 AND 40"
    )
    assert Follower(system.source(), follower.positions).run() == VALUES[23:29] + VALUES[40:]


def test_no_range_of_a_table_is_live(system: TableCase) -> None:
    """What one left open would end where a later process sees the end: before rows that were delivered."""
    assert not system.bounds().grows
    system.append(VALUES)
    assert not system.bounds().grows


def test_a_range_whose_rows_are_all_deleted_has_no_records(system: TableCase) -> None:
    system.append(VALUES)
    wanted = range_of(ROWS, system.bounds())
    system.database.run("DELETE FROM rows")
    [batch] = system.source().read(wanted, limit())
    assert (len(batch.records), batch.next_offset, batch.holes) == (0, wanted.end, ((wanted.begin, wanted.end),))


def test_numbers_without_rows_are_counted(system: TableCase) -> None:
    system.database.run("INSERT INTO rows VALUES (5, 'a'), (6, 'b'), (9, 'c'); SELECT setval('rows_id_seq', 9)")
    wanted = range_of(ROWS, system.bounds())
    [batch] = system.source().read(wanted, limit())
    assert (wanted.begin, wanted.end, batch.holes) == (5, 10, ((7, 9),))


@pytest.mark.parametrize("how", ["table", "column"])
def test_a_table_made_again_is_another_one(system: TableCase, how: str) -> None:
    system.append(VALUES)
    follower = Follower(system.source())
    assert follower.run() == VALUES
    planned = range_of(ROWS, system.bounds())
    if how == "table":
        system.make()
    else:
        system.database.run(
            "TRUNCATE rows; ALTER TABLE rows DROP COLUMN id; ALTER TABLE rows ADD id bigserial PRIMARY KEY"
        )
    system.append([b"new"])
    with pytest.raises(Retriable, match="made again"):
        list(system.source().read(replace(planned, end=201, begin=0), limit()))
    again = Follower(system.source(), follower.positions)
    assert again.run() == [b"new"]
    [gap] = again.gaps
    assert (gap.begin, gap.end, gap.reason) == (201, None, "recreated")


def test_a_table_that_is_not_there_is_waited_for(system: TableCase) -> None:
    system.database.run("ALTER TABLE rows RENAME TO elsewhere")
    with pytest.raises(Unreachable, match="no such table"):
        system.bounds()
    system.database.run("ALTER TABLE elsewhere RENAME TO rows")
    system.append([b"one"])
    assert Follower(system.source()).run() == [b"one"]


def test_a_table_that_was_emptied_begins_anew_when_a_person_says_so(system: TableCase) -> None:
    system.append(VALUES)
    follower = Follower(system.source())
    follower.run()
    system.database.run("TRUNCATE rows; SELECT setval('rows_id_seq', 1, false)")
    system.append([b"new"])
    with pytest.raises(DataError, match="The sequence of column id is at 1, and rows before 201 were read"):
        follower.run()
    system.append(VALUES)
    with pytest.raises(DataError, match=r"were back at 1 .* nobody has read, from number 2 on"):
        follower.run()
    assert Follower(system.source(), {ROWS: Position(0, 0, {})}).run() == [b"new", *VALUES]


@pytest.mark.parametrize("more", [-50, 0, 50])
def test_a_sequence_that_was_restarted_is_noticed_however_far_it_is(system: TableCase, more: int) -> None:
    system.append(VALUES)
    follower = Follower(system.source())
    follower.run()
    at = follower.positions[ROWS]
    system.database.run("TRUNCATE rows RESTART IDENTITY")
    new = [b"new %d" % number for number in range(len(VALUES) + more)]
    system.append(new)
    bounds = system.source().available_offsets({ROWS: at})[ROWS]
    [gap] = bounds.gaps
    assert (gap.begin, gap.reason) == (at.offset, "the sequence of column id was restarted or altered")
    assert Follower(system.source(), {ROWS: Position(bounds.incarnation, bounds.begin, bounds.evidence)}).run() == new


def test_a_range_is_not_read_behind_a_restart(system: TableCase) -> None:
    system.append(VALUES)
    planned = range_of(ROWS, system.bounds())
    system.database.run("TRUNCATE rows RESTART IDENTITY")
    system.append(VALUES)
    with pytest.raises(Retriable, match="numbers were restarted, after this range was planned"):
        list(system.source().read(planned, limit()))


def test_a_row_above_the_sequence_is_noticed(system: TableCase) -> None:
    system.database.run("INSERT INTO rows VALUES (1000, 'by hand')")
    with pytest.raises(DataError, match="The sequence of column id is at 0"):
        system.bounds()
    system.database.run("SELECT setval('rows_id_seq', 1000)")
    assert Follower(system.source()).run() == [b"by hand"]


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ("id uuid PRIMARY KEY, body text", {}, "is not one column of whole numbers"),
        ("id bigserial, body text", {}, "is not one column of whole numbers"),
        ("id bigserial, body text", {"incrementing": "id"}, "No index of the table begins with column id"),
        ("id bigint UNIQUE, body text", {"incrementing": "id"}, "Column id takes NULL"),
        ("id bigserial, body text, PRIMARY KEY (id, body)", {"incrementing": "id"}, "column id alone is unique"),
        ("id bigserial PRIMARY KEY, body text", {"incrementing": "body"}, "Column body is text"),
        ("id bigserial PRIMARY KEY, body text", {"incrementing": "no"}, "The table has no column no"),
        ("id bigserial PRIMARY KEY, body text, price money", {}, "Column price is money, which is not kept exactly"),
        ("id bigserial PRIMARY KEY, body text, parts bytea[]", {}, "Column parts is bytea"),
        (
            "id bigint GENERATED ALWAYS AS IDENTITY (CACHE 20) PRIMARY KEY, body text",
            {},
            "has CACHE 20: sessions keep ids",
        ),
        ("id bigint GENERATED ALWAYS AS IDENTITY (CYCLE) PRIMARY KEY, body text", {}, "begins again at its end"),
        ("id bigint GENERATED ALWAYS AS IDENTITY (INCREMENT -1) PRIMARY KEY, body text", {}, "counts down"),
    ],
)
def test_a_table_of_which_rows_could_be_lost_is_refused(system: TableCase, columns: str, more: Any, words: str) -> None:
    system.make(columns)
    with pytest.raises(ConfigError, match=words):
        system.source(**more).available_offsets({ROWS: None})


def test_a_sequence_that_only_the_default_names_is_looked_at(system: TableCase) -> None:
    system.database.run("CREATE SEQUENCE numbers CACHE 5")
    system.make("id bigint DEFAULT nextval('numbers') PRIMARY KEY, body text")
    with pytest.raises(ConfigError, match="numbers has CACHE 5"):
        system.bounds()


@pytest.mark.parametrize("number", [-1, (1 << 62) - 1, (1 << 63) - 1])
def test_a_number_that_is_no_offset_is_refused_and_the_probe_says_so(system: TableCase, number: int) -> None:
    system.database.run(f"INSERT INTO rows VALUES ({number}, 'a')")
    with pytest.raises(ConfigError, match="Numbers of rows must be from 0 to 4611686018427387902"):
        system.bounds()
    assert [one.what for one in probe(system.options) if not one.ok] == [
        "Numbers of rows must be from 0 to 4611686018427387902, and the table has others: name another column as"
        " incrementing"
    ]


def test_the_highest_number_is_read(system: TableCase) -> None:
    highest = (1 << 62) - 2
    system.database.run(f"INSERT INTO rows VALUES ({highest}, 'a')", f"SELECT setval('rows_id_seq', {highest})")
    assert all(one.ok for one in probe(system.options))
    assert Follower(system.source()).run() == [b"a"]


def test_a_view_is_refused(system: TableCase) -> None:
    system.database.run("CREATE VIEW seen AS SELECT * FROM rows")
    with pytest.raises(ConfigError, match="This is no table"):
        system.source(table="seen").available_offsets({Partition("public.seen"): None})


def test_rows_that_a_policy_hides_are_refused(system: TableCase) -> None:
    name = f"reader_{system.database.options['database']}"
    system.database.run(f"CREATE ROLE {name} LOGIN", f"GRANT SELECT ON rows TO {name}")
    system.append([b"one"])
    assert Follower(system.source(user=name)).run() == [b"one"]
    system.database.run("ALTER TABLE rows ENABLE ROW LEVEL SECURITY")
    with pytest.raises(Refused):
        Follower(system.source(user=name)).run()


KEYS = {
    "smallint": -7,
    "bigint": 1 << 62,
    "text": 'a "b"\\ \n é ',
    "varchar(9)": "a ",
    "uuid": "00000000-0000-0000-0000-00000000000a",
    "char(5)": "ab   ",
    "numeric(5,2)": 1.5,
    "date": "2026-01-02",
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_the_text_that_the_record_has(system: TableCase, kind: str) -> None:
    system.make(f"id bigserial UNIQUE, k {kind} PRIMARY KEY, body text")
    with closing(system.database.connected()) as connection, connection.cursor() as writing:
        writing.execute("INSERT INTO rows (k, body) VALUES (%s, '')", (KEYS[kind],))
        connection.commit()
    source = PostgresSource(PostgresSourceOptions.model_validate({**system.options, "incrementing": "id"}))
    [batch] = source.read(range_of(ROWS, source.available_offsets({ROWS: None})[ROWS]), limit())
    [record] = batch.records.select(["key", "value"]).to_pylist()
    said = json.loads(record["value"], parse_float=str)["k"]
    assert record["key"] == str(said)
    assert float(said) == KEYS[kind] if kind.startswith("numeric") else said == KEYS[kind]


def test_pages_are_bounded_by_bytes(system: TableCase) -> None:
    system.append([b"x" * 100_000] * 120)
    wanted = range_of(ROWS, system.bounds())
    sizes = [len(batch.records) for batch in system.source().read(wanted, limit())]
    assert sum(sizes) == 120
    assert max(sizes) <= 60
    [one] = system.source().read(replace(wanted, max_bytes=1), limit())
    assert len(one.records) <= 50


def test_a_partition_of_another_table_is_not_read(system: TableCase) -> None:
    """One of another table was read before the document named this one."""
    other = Partition("public.other")
    seen = system.source().available_offsets({other: Position(0, 7, {}), ROWS: None})
    assert (seen[other].begin, seen[other].end, seen[other].grows) == (7, 7, False)
    with pytest.raises(WaybillError):
        system.source().offsets_for_time([ROWS], time.gmtime())  # type: ignore[arg-type]
