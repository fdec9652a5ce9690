"""Rows of MariaDB that fulfil a condition, and snapshots that are cancelled, as people ask for them by the command."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any

import pytest

from tests.chosen_rows import check, fill, told
from tests.faults.kit.journeys import SHORT_LEASES
from tests.mariadb import Database, MariaDB
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


def to_file(site: Site, database: Database, *tables: str, **options: Any) -> None:
    source = database.changes(*tables, **options)
    limits = {"range_records": 5}
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "limits": limits})


@pytest.mark.parametrize("steps", [("planned",), ("executed",), ("settled",), ("executed", "planned", "settled")])
def test_kills_beside_busy_writers(bare_site: Site, database: Database, steps: tuple[str, ...]) -> None:
    bare_site.settings.update(SHORT_LEASES)
    fill(database.run)
    to_file(bare_site, database, "orders", snapshot_rows=4)
    run(bare_site)
    check(bare_site, database.run, steps, random.Random(len(steps)))


def test_a_condition_that_fails_on_the_way_and_is_cancelled(bare_site: Site, database: Database) -> None:
    """The run that fails has moved all else; cancelling takes effect wherever the run behind it is killed."""
    bare_site.settings.update(SHORT_LEASES)
    name = f"{database.name}.orders"
    database.run("CREATE TABLE orders (id int PRIMARY KEY, price varchar(9))")
    database.run("CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO others VALUES (1)")
    database.run("INSERT INTO orders SELECT seq, IF(seq = 9, 'none', seq) FROM seq_1_to_12")
    to_file(bare_site, database, "orders", "others", snapshot_rows=4)
    run(bare_site)
    bare_site.waybill("snapshot", "a", "--table", "orders", "--where", "price > 0")
    bare_site.waybill("snapshot", "a", "--table", "others")
    for _ in range(2):
        said = run(bare_site, code=6)
        assert f"rows of table {name} that fulfil the condition of a snapshot: it does not copy them" in said
        assert f"--table {name} --cancel" in said
        assert "price >" not in said
    assert told(bare_site) == [*(("r", one) for one in range(1, 9)), ("r", 1)]
    assert f"table {name} WHERE price > 0: about" in bare_site.waybill("lag", "a")
    conditions = {
        tuple(one["conditions"]) for one in bare_site.json("receipts", "a")["receipts"] if one["delivered"] > 3
    }
    assert conditions == {(f"{name} WHERE price > 0",)}
    database.run("INSERT INTO orders VALUES (13, '1')")
    assert "no more rows come" in bare_site.waybill("snapshot", "a", "--table", "orders", "--cancel")
    for step in ("planned", "executed"):
        bare_site.fault(step)
        run(bare_site, code=-9)
    run(bare_site)
    assert told(bare_site)[9:] == [("c", 13)]
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == []
    bare_site.waybill("snapshot", "a", "--cancel")
    run(bare_site)
    assert told(bare_site)[10:] == []
    assert database.run("SELECT * FROM waybill_snapshots") == []


def test_what_a_connector_begins_with_is_not_cancelled(bare_site: Site, database: Database) -> None:
    """And what was asked for beside is, also while somebody holds a row."""
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)", "INSERT INTO orders (id) VALUES (1), (2)")
    to_file(bare_site, database, "orders", snapshot="initial")
    with closing(database.connected()) as session, session.cursor() as writing:
        session.begin()
        writing.execute("UPDATE orders SET note = 'new' WHERE id = 1")
        run(bare_site)
        said = bare_site.waybill("snapshot", "a", "--table", "orders", "--cancel", code=2)
        assert f"Rows of table {database.name}.orders are still to come for which nobody has asked" in said
        bare_site.waybill("snapshot", "a", "--table", "orders", "--where", "note IS NULL")
        run(bare_site)
        bare_site.waybill("snapshot", "a", "--table", "orders", "--cancel")
        session.rollback()
    run(bare_site)
    assert told(bare_site) == [("r", 1), ("r", 2)]
