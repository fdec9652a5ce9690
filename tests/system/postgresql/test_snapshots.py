"""Rows of PostgreSQL that have to wait, and tables that cannot be read any more, as people see them by the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.processes import wait_for
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    made.run("CREATE TABLE orders (id int PRIMARY KEY, note text)", "INSERT INTO orders VALUES (1), (2)")
    made.run("CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO others VALUES (1)")
    yield made
    made.drop_slots()


def to_file(site: Site, database: Database, *tables: str, **options: Any) -> None:
    source = database.changes(*(tables or ("orders", "others")), **{"snapshot": "initial", **options})
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})


def told(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(one["op"], one["source"]["table"], (one["after"] or one["before"])["id"]) for one in events]


def run_and_hear(site: Site) -> str:
    with site.start("run", "a", "--engine", "inline") as process:
        _, said = process.communicate(timeout=90)
    assert process.returncode == 0, said
    return str(said)


def left(site: Site) -> list[Any]:
    return [(one["table"], one["left"]) for one in site.json("lag", "a")["connectors"][0]["snapshot"]]


def test_rows_that_wait(bare_site: Site, database: Database) -> None:
    """A run says which and for whom, ends well, and has moved what changed meanwhile."""
    to_file(bare_site, database)
    with database.connected() as session, session.cursor() as cursor:
        run_first(bare_site, database)
        cursor.execute("UPDATE orders SET note = 'new' WHERE id = 1")
        database.run("INSERT INTO others VALUES (2)")
        bare_site.waybill("snapshot", "a")
        said = run_and_hear(bare_site)
        pid = session.info.backend_pid
        session.rollback()
    assert "rows of table public.orders and 1 more are still to come" in said
    assert f"process {pid} of the server has had a transaction open for" in said
    assert "the next run goes on (how many: waybill lag)" in said
    assert told(bare_site)[3:] == [("c", "others", 2)]
    assert [one for one, _ in left(bare_site)] == ["public.orders", "public.others"]
    assert "still to come" not in run_and_hear(bare_site)
    assert told(bare_site)[4:] == [("r", "orders", 1), ("r", "orders", 2), ("r", "others", 1), ("r", "others", 2)]


def run_first(site: Site, database: Database) -> None:
    run(site)
    assert told(site) == [("r", "orders", 1), ("r", "orders", 2), ("r", "others", 1)]


def test_a_table_that_becomes_unfit(bare_site: Site, database: Database) -> None:
    """A run says which, fails, and has moved all the others."""
    to_file(bare_site, database)
    run_first(bare_site, database)
    bare_site.waybill("snapshot", "a")
    database.run("ALTER TABLE orders REPLICA IDENTITY FULL", "ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    database.run("UPDATE orders SET note = 'new' WHERE id = 1", "ANALYZE")
    for _ in range(2):
        said = run(bare_site, code=2)
        assert "Rows of table public.orders cannot be read chunk by chunk: it has no primary key" in said
    assert told(bare_site)[3:] == [("u", "orders", 1), ("r", "others", 1)]
    assert left(bare_site) == [("public.orders", 2)]
    database.run("ALTER TABLE orders ADD PRIMARY KEY (id)")
    run(bare_site)
    assert told(bare_site)[5:] == [("r", "orders", 1), ("r", "orders", 2)]
    assert left(bare_site) == []


def test_a_table_that_is_dropped_is_said_until_the_document_leaves_it_out(bare_site: Site, database: Database) -> None:
    to_file(bare_site, database)
    run_first(bare_site, database)
    bare_site.waybill("snapshot", "a")
    database.run("DROP TABLE orders", "INSERT INTO others VALUES (2)")
    for _ in range(2):
        assert "there is no table public.orders: if it is gone for good, take it out of" in run_and_hear(bare_site)
    assert told(bare_site)[3:] == [("c", "others", 2), ("r", "others", 1), ("r", "others", 2)]
    assert left(bare_site) == []
    to_file(bare_site, database, "others")
    assert "there is no table" not in run_and_hear(bare_site)
    assert left(bare_site) == []


@pytest.mark.parametrize("step", ["planned", "executed", "settled"])
@pytest.mark.parametrize("rows", [1, 10])
def test_a_kill_where_a_table_is_put_behind(bare_site: Site, database: Database, step: str, rows: int) -> None:
    """Once, wherever the run is killed, and whether it goes on before the table is mended or after."""
    bare_site.settings.update(SHORT_LEASES)
    database.run("INSERT INTO others SELECT generate_series(2, 12)")
    source = database.changes("orders", "others", snapshot="never", snapshot_rows=rows)
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "limits": {"range_records": 5}})
    run(bare_site)
    bare_site.waybill("snapshot", "a")
    database.run("ALTER TABLE orders REPLICA IDENTITY FULL", "ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    for passes in (0, 1):
        bare_site.fault(step, passes=passes)
        run(bare_site, code=-9)
    database.run("INSERT INTO orders VALUES (3)", "ALTER TABLE orders ADD PRIMARY KEY (id)")
    run(bare_site)
    assert [number for op, table, number in told(bare_site) if (op, table) == ("r", "others")] == [*range(1, 13)]
    assert [number for op, table, number in told(bare_site) if (op, table) == ("r", "orders")] == [1, 2, 3]
    assert [one for one in told(bare_site) if one[0] != "r"] == [("c", "orders", 3)]
    assert left(bare_site) == []


def test_a_window_beside_a_table_that_cannot_be_read(bare_site: Site, database: Database) -> None:
    """It follows the changes of all until it ends, and fails then."""
    to_file(bare_site, database)
    run_first(bare_site, database)
    bare_site.waybill("snapshot", "a")
    database.run("ALTER TABLE orders REPLICA IDENTITY FULL", "ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    with bare_site.start("run", "a", "--engine", "inline", "--window", "8s") as process:
        wait_for(lambda: ("r", "others", 1) in told(bare_site)[3:], "rows of the other table")
        for number in (3, 4):
            database.run(f"INSERT INTO orders VALUES ({number})")
            wait_for(lambda: ("c", "orders", number) in told(bare_site), "a change")  # noqa: B023
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Rows of table public.orders cannot be read chunk by chunk" in said


@pytest.mark.parametrize("remade", [False, True])
def test_a_table_that_gets_another_name_while_its_rows_come_is_told(
    bare_site: Site, database: Database, remade: bool
) -> None:
    """Of a pattern that means the new name, too. Once, wherever the run is killed that says it."""
    bare_site.settings.update(SHORT_LEASES)
    database.run("CREATE PUBLICATION everything FOR ALL TABLES", "INSERT INTO orders SELECT generate_series(3, 30)")
    to_file(bare_site, database, "public.o*", publication="everything", snapshot_rows=1)
    bare_site.fault("settled")
    run(bare_site, code=-9)
    database.run("ALTER TABLE orders RENAME TO olders")
    if remade:
        database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)", "INSERT INTO orders VALUES (77)")
    bare_site.fault("planned")
    run(bare_site, code=-9)
    run(bare_site)
    gaps = [gap["reason"] for gap in bare_site.json("gaps", "a")["gaps"]]
    assert len(gaps) == 1
    assert (
        "of table public.orders not all rows have come, and no more do: it was dropped, or has another name" in gaps[0]
    )
    assert ("r", "others", 1) in told(bare_site)
    assert [number for op, table, number in told(bare_site) if (op, table) == ("r", "olders")] == []
    bare_site.waybill("snapshot", "a", "--table", "public.olders")
    run(bare_site)
    assert [number for op, table, number in told(bare_site) if (op, table) == ("r", "olders")] == [*range(1, 31)]
    assert remade == (("c", "orders", 77) in told(bare_site))
    database.run("DROP PUBLICATION everything")
