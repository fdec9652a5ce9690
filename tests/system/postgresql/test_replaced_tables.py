"""A table that was put in the place of another one: noticed, unless its markers came with it or a person accepts it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from connect_core.errors import TargetChanged
from connect_core.sdk.batches import ROW
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.values import Bounds, OpenRange
from connect_core.systems.postgresql.options import PostgresSinkOptions
from connect_core.systems.postgresql.sink import PostgresSink
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.processes import ended, wait_for
from tests.postgres_tables import Database
from tests.site import Site

pytestmark = pytest.mark.server

COLUMNS = "(id bigint, name text)"
SWAPPED = ("ALTER TABLE t RENAME TO former", "ALTER TABLE next RENAME TO t")
STOPPED = 5


@pytest.fixture
def database(postgres_url: str) -> Database:
    database = Database(postgres_url)
    database.run(f"CREATE TABLE t {COLUMNS}")
    return database


def apply(site: Site, database: Database, **sink: Any) -> None:
    parse = {"format": "json", "fields": {"id": "int64", "name": "text"}}
    document = {"source": {"file": {"path": "*.log"}}, "sink": database.sink("t", **sink), "parse": parse}
    site.apply("a", document)


def write(site: Site, *ids: int) -> None:
    with (site.folder / "a.log").open("a") as file:
        file.writelines(json.dumps({"id": number, "name": "x"}) + "\n" for number in ids)


def run(site: Site, code: int = 0) -> str:
    return " ".join(site.waybill("run", "a", "--engine", "inline", code=code).split())


def ids(database: Database, table: str = "t") -> list[int]:
    return [number for (number,) in database.run(f"SELECT id FROM {table} ORDER BY id")]


def oid(database: Database, table: str = "t") -> int:
    return int(database.run(f"SELECT '{table}'::regclass::oid")[0][0])


def marker(database: Database) -> dict[str, Any]:
    [(text,)] = database.run("SELECT marker FROM waybill_markers")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture
def delivered(bare_site: Site, database: Database) -> Site:
    """One row is there, and another one waits."""
    write(bare_site, 1)
    apply(bare_site, database)
    run(bare_site)
    write(bare_site, 2)
    return bare_site


def test_a_table_that_was_dropped_and_made_again_is_not_written(delivered: Site, database: Database) -> None:
    former = oid(database)
    database.run("DROP TABLE t", f"CREATE TABLE t {COLUMNS}")
    said = run(delivered, code=STOPPED)
    assert f"rows went to oid {former}, and it is oid {oid(database)} now" in said
    assert "/public.t" in said
    assert f"write accepts_table: {oid(database)} in the document's sink" in said
    assert ids(database) == []
    delivered.waybill("connectors", "delete", "a", "--yes")
    apply(delivered, database)
    run(delivered)
    assert ids(database) == [1, 2]


def test_a_table_that_was_swapped_is_written_when_it_has_its_name_back(delivered: Site, database: Database) -> None:
    database.run(f"CREATE TABLE next {COLUMNS}", *SWAPPED)
    run(delivered, code=STOPPED)
    database.run("ALTER TABLE t RENAME TO next", "ALTER TABLE former RENAME TO t")
    run(delivered)
    assert (ids(database), ids(database, "next")) == ([1, 2], [])


def test_a_table_that_has_the_rows_of_the_former_one_is_accepted_by_its_oid(
    delivered: Site, database: Database
) -> None:
    database.run("CREATE TABLE next AS SELECT * FROM t", *SWAPPED)
    accepted = oid(database)
    apply(delivered, database, accepts_table=accepted + 1)
    run(delivered, code=STOPPED)
    apply(delivered, database, accepts_table=accepted)
    run(delivered)
    apply(delivered, database)
    write(delivered, 3)
    run(delivered)
    assert (ids(database), ids(database, "former")) == ([1, 2, 3], [1])
    assert marker(database)["rows_in"] == f"oid {accepted}"


def test_an_open_range_is_finished_in_the_table_that_is_accepted(bare_site: Site, database: Database) -> None:
    bare_site.settings.update(SHORT_LEASES)
    write(bare_site, *range(100))
    apply(bare_site, database)
    taken = bare_site.fault("before-receipt").with_name("before-receipt.taken")
    with bare_site.start("run", "a", "--engine", "inline") as process:
        ended(process)
    assert taken.exists()
    database.run("CREATE TABLE next AS SELECT * FROM t", *SWAPPED)
    apply(bare_site, database, accepts_table=oid(database))
    for _ in range(12):
        with bare_site.start("run", "a", "--engine", "inline") as process:
            if ended(process) == 0:
                break
    assert ids(database) == [*range(100)]


def test_a_table_that_came_back_with_its_markers_is_written(delivered: Site, database: Database) -> None:
    """As a dump does it: both are made anew, with what was in them."""
    database.run(
        *(f"ALTER TABLE {name} RENAME TO old_{name}" for name in ("t", "waybill_markers")),
        "CREATE TABLE t AS SELECT * FROM old_t",
        "CREATE TABLE waybill_markers (LIKE old_waybill_markers INCLUDING ALL)",
        "INSERT INTO waybill_markers SELECT * FROM old_waybill_markers",
        "DROP TABLE old_t, old_waybill_markers",
    )
    run(delivered)
    assert ids(database) == [1, 2]
    assert (marker(database)["rows_in"], marker(database)["stands_in"]) == (
        f"oid {oid(database)}",
        f"oid {oid(database, 'waybill_markers')}",
    )


def test_what_does_not_make_another_table_of_it_is_no_replacement(delivered: Site, database: Database) -> None:
    database.run("VACUUM FULL t", "VACUUM FULL waybill_markers", "ALTER TABLE t ADD COLUMN more int", "TRUNCATE t")
    run(delivered)
    assert ids(database) == [2], "that it was emptied is not noticed"


def test_a_marker_of_a_former_version_is_taken_as_it_is(delivered: Site, database: Database) -> None:
    added = " - ".join(f"'{name}'" for name in ("refused", "refused_since", "rows_in", "stands_in"))
    former = f"((marker::jsonb - {added}) || '{{\"version\": 1}}')::text"
    database.run(f"UPDATE waybill_markers SET marker = {former}", f"CREATE TABLE next {COLUMNS}", *SWAPPED)
    assert marker(database)["version"] == 1
    run(delivered)
    assert (ids(database), marker(database)["rows_in"]) == ([2], f"oid {oid(database)}")


def test_a_table_that_is_replaced_within_a_window_ends_it(bare_site: Site, database: Database) -> None:
    """A worker has its connection open, and follows the file."""
    database.run(f"CREATE TABLE next {COLUMNS}")
    write(bare_site, 1)
    apply(bare_site, database)
    with bare_site.start("run", "a", "--engine", "inline", "--window", "60s") as process:
        wait_for(lambda: ids(database) == [1], "the first row")
        write(bare_site, 2)
        wait_for(lambda: ids(database) == [1, 2], "a row of the window")
        database.run(*SWAPPED)
        write(bare_site, 3)
        assert ended(process) == STOPPED
    assert (ids(database), ids(database, "former")) == ([], [1, 2])
    database.run("ALTER TABLE t RENAME TO next", "ALTER TABLE former RENAME TO t")
    run(bare_site)
    assert ids(database) == [1, 2, 3]


def test_a_table_that_is_replaced_under_an_open_writer_gets_nothing(database: Database) -> None:
    sink = PostgresSink(
        PostgresSinkOptions(**database.sink("t")["postgresql"], row_fields={"id": "int64", "name": "text"})
    )
    sink.prepare()

    def rows(number: int) -> pa.RecordBatch:
        row = pa.StructArray.from_arrays([pa.array([number]), pa.array(["x"])], ["id", "name"])
        return records([b"x"], number).append_column(ROW, row)

    item = OpenRange(1, range_of(Partition("all"), Bounds(0, 0, 0, 10)), ())
    with sink.writer(attempt(), item) as writer:
        assert writer.write(rows(0), limit()) == 1
        database.run(f"CREATE TABLE next {COLUMNS}", *SWAPPED)
        with pytest.raises(TargetChanged):
            writer.write(rows(1), limit())
    assert (ids(database), ids(database, "former")) == ([], [0])
