"""The changes of a table of PostgreSQL in the suite of sources, and what comes out of a slot when watermarks and chunks
of a snapshot meet changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from connect_core.errors import Unreachable, WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.sources import SourceContract
from connect_core.sdk.values import OPEN_END, Bounds, Json, Position, Range, SourceBatch
from connect_core.systems.postgresql.changes import chunks, slots
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.source import PostgresChangesSource
from connect_core.systems.tables import taken_events
from tests.postgres_tables import Database

pytestmark = pytest.mark.server


class OfBodies(PostgresChangesSource):
    """The suite compares values: those of the column `body` alone."""

    def _batches(self, wanted: Range, limit: Any, idle_s: float) -> Iterator[SourceBatch]:
        for batch in super()._batches(wanted, limit, idle_s):
            records = batch.records
            bodies = [json.loads(value)["after"]["body"].encode() for value in records.column("value").to_pylist()]
            place = records.schema.get_field_index("value")
            yield replace(batch, records=records.set_column(place, "value", pa.array(bodies, pa.binary())))


class ChangesCase:
    unkept = frozenset({"null", "every byte", "not text", "NUL"})
    """A text column holds texts."""

    def __init__(self, database: Database, **more: Any) -> None:
        self.database = database
        self.partition = Partition(str(database.options["database"]))
        uid = str(database.options["database"]).rpartition("_")[2]
        usual = {"tables": ["rows"], "every_s": 0.02, "snapshot": "never", "schemas": False, "uid": uid}
        self.options = {**database.options, **usual, **more}
        database.run("CREATE TABLE rows (id bigserial PRIMARY KEY, body text)")

    def begin(self) -> Position:
        """As a run does: the ledger keeps where it begins, then the slot is made."""
        source = self.source()
        [chosen] = source.available_offsets({self.partition: None}).values()
        [begun] = source.available_offsets({self.partition: Position(0, 0, chosen.evidence)}).values()
        if begun.failure:
            raise begun.failure.as_error()
        return Position(0, 0, begun.evidence)

    def source(self) -> PostgresChangesSource:
        return OfBodies(PostgresChangesOptions.model_validate(self.options))

    def whole(self) -> PostgresChangesSource:
        return PostgresChangesSource(PostgresChangesOptions.model_validate(self.options))

    def append(self, values: Sequence[bytes | None]) -> None:
        with closing(self.database.connected()) as connection, connection.cursor() as writing:
            for value in values:
                writing.execute("INSERT INTO rows (body) VALUES (%s)", ((value or b"").decode(),))
            connection.commit()

    def break_(self) -> None:
        self.options = {**self.options, "host": "127.0.0.1", "port": 1}

    def bounds(self, at: Position | None = None) -> Bounds:
        return self.source().available_offsets({self.partition: at})[self.partition]


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.drop_slots()


@pytest.fixture
def system(database: Database) -> ChangesCase:
    made = ChangesCase(database)
    made.begin()
    return made


class TestTheStream(SourceContract):
    steps = 40


def test_nothing_is_made_before_the_ledger_knows_where_it_begins(database: Database) -> None:
    case = ChangesCase(database)
    assert case.bounds().chosen
    asked = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    assert database.run(asked) == [(0,)]
    case.begin()
    assert database.run(asked) == [(1,)]


def test_a_position_within_a_transaction_goes_on_there(system: ChangesCase) -> None:
    system.append([b"a", b"b", b"c", b"d"])
    first = system.bounds(system.begin())
    wanted = range_of(system.partition, first, max_records=3)
    source = system.source()
    [batch] = source.read(wanted, limit())
    assert batch.records.column("value").to_pylist() == [b"a", b"b", b"c"]
    at = Position(0, batch.next_offset, source.evidence(wanted, batch.next_offset))
    assert at.evidence["at"] == 0, "no transaction ends there"
    rest = range_of(system.partition, system.bounds(at))
    [batch] = system.source().read(rest, limit())
    assert batch.records.column("value").to_pylist() == [b"d"]


def test_the_number_within_a_transaction_is_the_same_when_it_is_torn(system: ChangesCase) -> None:
    system.append([b"a", b"b", b"c"])
    begin = system.begin()
    whole, at = read(system, begin), Position(0, 2, begin.evidence)
    assert read(system, at) == whole[2:]


def read(system: ChangesCase, at: Position) -> list[Json]:
    source = system.whole()
    wanted = range_of(system.partition, source.available_offsets({system.partition: at})[system.partition])
    values = [value for batch in source.read(wanted, limit()) for value in batch.records.column("value").to_pylist()]
    return [json.loads(value) for value in values]


def test_a_slot_that_is_read_by_another_program_is_named(system: ChangesCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_BUSY_S", 0.3)
    begin = system.begin()
    system.append([b"a"])
    live = replace(range_of(system.partition, system.bounds(begin)), end=OPEN_END)
    with closing(system.source().follow([live], limit(), 5)) as reading:  # type: ignore[type-var]
        next(reading)
        with pytest.raises(Unreachable, match="is read by process"):
            system.bounds(begin)
    assert system.bounds(begin).end == 1


ALL = "ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate')"
ABSENCES = [
    ("DROP PUBLICATION {}",),
    ("ALTER PUBLICATION {} DROP TABLE rows",),
    ("DROP TABLE rows", "CREATE TABLE rows (id bigserial PRIMARY KEY, body text)"),
    ("ALTER PUBLICATION {} SET (publish = 'insert')", ALL),
]


@pytest.mark.parametrize("statements", ABSENCES)
def test_a_table_that_was_not_published_for_a_while_is_a_loss(system: ChangesCase, statements: Sequence[str]) -> None:
    """The server leaves out what changes meanwhile, and says nothing."""
    follower = Follower(system.source())
    system.append([b"before"])
    assert follower.run() == [b"before"]
    at = follower.positions[system.partition]
    system.database.run(*(one.format(f"waybill_{system.options['uid']}") for one in statements))
    system.append([b"meanwhile"])
    seen = system.bounds(at)
    [gap] = seen.gaps
    assert "was not in the publication for a while" in gap.reason
    system.append([b"behind"])
    values = [one["after"]["body"] for one in read(system, Position(seen.incarnation, seen.begin, seen.evidence))]
    assert values[-1] == "behind"
    assert "before" not in values


# --------------------------------------------------------------------------------- watermarks, chunks, changes, by hand


@pytest.fixture
def snapshot(database: Database) -> ChangesCase:
    """Its first look finds a chunk already, so it writes none."""
    made = ChangesCase(database, snapshot="initial", snapshot_rows=2)
    database.run("INSERT INTO rows (body) SELECT 'row ' || n FROM generate_series(1, 3) n")
    return made


class Log:
    """Writes what drivers write."""

    def __init__(self, case: ChangesCase) -> None:
        self._case = case
        self._slot = f"waybill_{case.options['uid']}"

    def watermark(self, name: str) -> None:
        self._case.database.run(f"SELECT pg_logical_emit_message(false, 'waybill.{self._slot}.watermark', '{name}')")

    def chunk(self, watermark: str, rows: Sequence[tuple[int, str]], last: int) -> None:
        columns = [["id", True, 20, -1, ""], ["body", False, 25, -1, ""]]
        [(oid,)] = self._case.database.run("SELECT 'rows'::regclass::oid::bigint")
        begin = {
            "watermark": watermark,
            "oid": oid,
            "schema": "public",
            "table": "rows",
            "columns": columns,
            "after": None,
        }
        said = [
            (f"waybill.{self._slot}.chunk", json.dumps(begin)),
            *((f"waybill.{self._slot}#row", f'({number},"{body}")') for number, body in rows),
            (f"waybill.{self._slot}#end", json.dumps([str(last)])),
        ]
        with closing(self._case.database.connected()) as session, session.cursor() as cursor:
            for prefix, text in said:
                cursor.execute("SELECT pg_logical_emit_message(true, %s, %s)", (prefix, text))
            session.commit()


def quiet(case: ChangesCase) -> Position:
    """A slot that was made, and of which nothing was read; no driver has written a chunk."""
    case.options["snapshot"] = "never"
    begin = case.begin()
    case.options["snapshot"] = "initial"
    tables = {"tables": [["public", "rows"]], "after": None}
    return Position(0, 0, {**begin.evidence, "snapshot": tables})


def came(case: ChangesCase, at: Position) -> list[tuple[str, int, str]]:
    source = case.whole()
    bounds = source.available_offsets({case.partition: at})[case.partition]
    told = []
    for batch in source.read(range_of(case.partition, bounds), limit()):
        told += [json.loads(value) for value in batch.records.column("value").to_pylist()]
    return [(one["op"], one["after"]["id"], one["after"]["body"]) for one in told]


def test_a_row_that_changes_between_watermark_and_chunk_comes_as_that_change(snapshot: ChangesCase) -> None:
    at, log = quiet(snapshot), Log(snapshot)
    log.watermark("one")
    snapshot.database.run("UPDATE rows SET body = 'new' WHERE id = 2")
    log.chunk("one", [(1, "row 1"), (2, "row 2")], last=2)
    assert came(snapshot, at) == [("u", 2, "new"), ("r", 1, "row 1")]


def test_a_change_before_the_watermark_takes_nothing_out(snapshot: ChangesCase) -> None:
    at, log = quiet(snapshot), Log(snapshot)
    snapshot.database.run("UPDATE rows SET body = 'new' WHERE id = 2")
    log.watermark("one")
    log.chunk("one", [(1, "row 1"), (2, "new")], last=2)
    assert came(snapshot, at) == [("u", 2, "new"), ("r", 1, "row 1"), ("r", 2, "new")]


def test_the_next_chunk_of_two_drivers_comes_once(snapshot: ChangesCase) -> None:
    at, log = quiet(snapshot), Log(snapshot)
    for driver in ("one", "two"):
        log.watermark(driver)
        log.chunk(driver, [(1, "row 1"), (2, "row 2")], last=2)
    assert [number for _, number, _ in came(snapshot, at)] == [1, 2]


def test_a_chunk_whose_watermark_is_not_the_last_one_is_left_out(snapshot: ChangesCase) -> None:
    at, log = quiet(snapshot), Log(snapshot)
    log.watermark("one")
    log.watermark("two")
    snapshot.database.run("UPDATE rows SET body = 'new' WHERE id = 1")
    log.chunk("one", [(1, "row 1"), (2, "row 2")], last=2)
    assert came(snapshot, at) == [("u", 1, "new")]


def test_who_begins_behind_a_watermark_takes_no_row_of_its_chunk(snapshot: ChangesCase) -> None:
    """What has changed in between is unknown there. The next chunk brings them."""
    at, log = quiet(snapshot), Log(snapshot)
    log.watermark("one")
    [(lsn,)] = snapshot.database.run("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    log.chunk("one", [(1, "row 1"), (2, "row 2")], last=2)
    behind = Position(0, 0, {**at.evidence, "lsn": int(lsn)})
    assert came(snapshot, behind) == []


def test_no_place_is_kept_between_a_watermark_and_its_chunk(snapshot: ChangesCase) -> None:
    at, log = quiet(snapshot), Log(snapshot)
    log.watermark("one")
    snapshot.database.run("UPDATE rows SET body = 'new' WHERE id = 2")
    source, wanted = snapshot.whole(), range_of(snapshot.partition, Bounds(0, 0, 0, 1, at.evidence))
    [batch] = source.read(wanted, limit())
    behind = Position(0, batch.next_offset, source.evidence(wanted, batch.next_offset))
    assert behind.evidence["at"] == 0
    log.chunk("one", [(1, "row 1"), (2, "row 2")], last=2)
    assert came(snapshot, behind) == [("r", 1, "row 1")]


def test_a_truncated_table_is_read_anew(snapshot: ChangesCase) -> None:
    at, log = quiet(snapshot), Log(snapshot)
    log.watermark("one")
    snapshot.database.run("TRUNCATE rows")
    log.chunk("one", [(1, "row 1"), (2, "row 2")], last=2)
    source = snapshot.whole()
    wanted = range_of(snapshot.partition, source.available_offsets({snapshot.partition: at})[snapshot.partition])
    batches = [*source.read(wanted, limit())]
    assert sum(len(one.records) for one in batches) == 1
    assert source.evidence(wanted, wanted.end)["snapshot"]["after"] is None


def test_rows_wait_for_transactions_that_are_open(snapshot: ChangesCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commit may be in the log already, and nobody sees it yet."""
    monkeypatch.setattr(chunks, "_WAIT_S", 0.2)
    at = quiet(snapshot)
    with closing(snapshot.database.connected()) as session, session.cursor() as cursor:
        cursor.execute("UPDATE rows SET body = 'new' WHERE id = 2")
        assert snapshot.bounds(at).end == 0
        session.commit()
    assert came(snapshot, at) == [("u", 2, "new"), ("r", 1, "row 1"), ("r", 2, "new"), ("r", 3, "row 3")]


@pytest.mark.parametrize("most", [4, 5])
@pytest.mark.parametrize("records", [4, 7, 10_000])
@pytest.mark.parametrize("batches", [1, 3, 1_000])
@pytest.mark.parametrize("live", [False, True])
def test_all_rows_come_wherever_batches_and_ranges_end(
    database: Database, monkeypatch: pytest.MonkeyPatch, most: int, records: int, batches: int, live: bool
) -> None:
    """A batch, or a range, may end with the last row of a chunk, before its commit is read."""
    monkeypatch.setattr(taken_events, "MOST_EVENTS", most)
    monkeypatch.setattr(chunks, "CHUNKS", 2)
    case = ChangesCase(database, snapshot="initial", snapshot_rows=4)
    database.run("INSERT INTO rows (body) SELECT 'row ' || n FROM generate_series(1, 13) n")
    at, told = case.begin(), list[int]()
    for _ in range(80):
        source = case.whole()
        seen = source.available_offsets({case.partition: at})[case.partition]
        wanted = range_of(case.partition, seen, max_records=records)
        behind = wanted.begin
        live_range = replace(wanted, end=OPEN_END)
        came = source.follow([live_range], limit(), 0.05) if live else source.read(wanted, limit())
        with closing(came) as given:  # type: ignore[type-var]
            for one in islice(given, batches):  # then the quantum is over
                batch = one[1] if live else one
                told += [json.loads(value)["after"]["id"] for value in batch.records.column("value").to_pylist()]
                behind = batch.next_offset
        at = Position(seen.incarnation, behind, source.evidence(wanted, behind))
        if len(told) >= 13:
            break
    assert told == [*range(1, 14)]


def test_a_server_that_does_not_answer_ends_the_wait(system: ChangesCase) -> None:
    """The window may be over then: it would end well."""
    [seen] = system.source().available_offsets({system.partition: None}).values()
    system.break_()
    with pytest.raises(WaybillError):
        system.source().wait({system.partition: seen}, 5)
