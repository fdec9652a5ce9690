"""Rows of PostgreSQL that fulfil a condition, and snapshots that are cancelled, as people ask by the command."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chosen_rows import check, fill, told
from tests.faults.kit.journeys import SHORT_LEASES
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.drop_slots()


def to_file(site: Site, database: Database, *tables: str, **options: Any) -> None:
    source = database.changes(*tables, **options)
    limits = {"range_records": 5}
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "limits": limits})


@pytest.mark.parametrize("steps", [("planned",), ("executed",), ("settled",), ("executed", "planned", "settled")])
def test_kills_beside_busy_writers(bare_site: Site, database: Database, steps: tuple[str, ...]) -> None:
    bare_site.settings.update(SHORT_LEASES)
    fill(database.run)
    database.run("ALTER TABLE orders REPLICA IDENTITY FULL")
    to_file(bare_site, database, "orders", snapshot_rows=4)
    run(bare_site)
    check(bare_site, database.run, steps, random.Random(len(steps)))


def test_a_condition_that_fails_on_the_way_and_is_cancelled(bare_site: Site, database: Database) -> None:
    """The run that fails has moved all else; cancelling takes effect wherever the run behind it is killed."""
    bare_site.settings.update(SHORT_LEASES)
    database.run("CREATE TABLE orders (id int PRIMARY KEY, price int)", "CREATE TABLE others (id int PRIMARY KEY)")
    database.run("INSERT INTO orders SELECT n, 9 - n FROM generate_series(1, 12) n", "INSERT INTO others VALUES (1)")
    to_file(bare_site, database, "orders", "others", snapshot_rows=4)
    run(bare_site)
    said = bare_site.waybill("snapshot", "a", "--table", "orders", "--where", "100 / price > 0")
    assert "the next runs bring the rows that fulfil the condition of public.orders" in said
    bare_site.waybill("snapshot", "a", "--table", "others")
    for _ in range(2):
        said = run(bare_site, code=6)
        assert "rows of table public.orders that fulfil the condition of a snapshot: DivisionByZero (22012)" in said
        assert "--table public.orders --cancel" in said
        assert "100 /" not in said
    assert told(bare_site) == [*(("r", one) for one in range(1, 9)), ("r", 1)]
    lag = bare_site.waybill("lag", "a")
    assert "table public.orders WHERE 100 / price > 0: about" in lag
    assert "rows are still to be read" in lag
    [first] = {tuple(one["conditions"]) for one in bare_site.json("receipts", "a")["receipts"] if one["delivered"] > 3}
    assert first == ("public.orders WHERE 100 / price > 0",)
    database.run("INSERT INTO orders VALUES (13, 1)")
    assert "no more rows come" in bare_site.waybill("snapshot", "a", "--table", "orders", "--cancel")
    for step in ("planned", "executed"):
        bare_site.fault(step)
        run(bare_site, code=-9)
    run(bare_site)
    assert told(bare_site)[9:] == [("c", 13)]
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == []
    bare_site.waybill("snapshot", "a", "--table", "orders", "--cancel")
    bare_site.waybill("snapshot", "a", "--cancel")
    run(bare_site)
    assert told(bare_site)[10:] == []


def test_what_is_asked_for_wrongly_is_refused(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)", "CREATE TABLE others (id int PRIMARY KEY)")
    database.run("INSERT INTO orders VALUES (1)", "INSERT INTO others VALUES (1)")
    to_file(bare_site, database, "orders", "others", snapshot="initial")
    for words in (["--where", "id > 0", "--table", "orders"], ["--cancel"]):
        assert "has not begun" in bare_site.waybill("snapshot", "a", *words, code=2)
    with database.connected() as session, session.cursor() as cursor:
        bare_site.waybill("plan", "a")
        cursor.execute("SELECT 1")
        run(bare_site)
    for words in ([], ["--table", "orders", "--table", "others"]):
        assert "A condition is of one table" in bare_site.waybill("snapshot", "a", *words, "--where", "true", code=2)
    both = ["--table", "orders", "--cancel", "--where", "true"]
    assert "--cancel takes no condition" in bare_site.waybill("snapshot", "a", *both, code=2)
    said = bare_site.waybill("snapshot", "a", "--table", "orders", "--where", "nothing = 1", code=2)
    assert 'The server does not take the condition: column "nothing" does not exist [connector a, ' in said
    assert "table public.orders]" in said
    bare_site.waybill("snapshot", "a", "--table", "orders", "--where", "note IS NULL")
    run(bare_site)
    assert told(bare_site) == [("r", 1), ("r", 1), ("r", 1)]
