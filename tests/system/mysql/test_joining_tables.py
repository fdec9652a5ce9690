"""Tables that join a connector of `mysql_changes`: their rows come too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.kit.row_events import contradictions, state_of
from tests.mariadb import Database, MariaDB
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE {} (id int PRIMARY KEY, note varchar(20))"
FILL = "INSERT INTO {} SELECT seq, 'there' FROM seq_1_to_20"


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    made = Database(mariadb)
    for name in ("a", "b"):
        made.run(TABLE.format(name), FILL.format(name))
    return made


def to_file(site: Site, database: Database, *tables: str, **options: Any) -> None:
    source = database.changes(*tables, **{"snapshot": "initial", "snapshot_rows": 7, **options})
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})


def lines(site: Site, table: str) -> list[str]:
    path = Path(site.folder / "out.jsonl")
    return [line for line in path.read_text().splitlines() if f'"table":"{table}"' in line] if path.exists() else []


def test_rows_of_a_table_that_joins_come_with_its_changes(bare_site: Site, database: Database) -> None:
    """Also what is changed before the run that hears of it."""
    to_file(bare_site, database, "a")
    run(bare_site)
    to_file(bare_site, database, "a", "b")
    database.run("UPDATE b SET note = 'changed' WHERE id = 1", "DELETE FROM b WHERE id = 2")
    assert "21 delivered" in run(bare_site)
    database.run("UPDATE b SET note = 'again' WHERE id = 3", "DELETE FROM b WHERE id = 4")
    run(bare_site)
    assert state_of(lines(bare_site, "b")) == dict(database.run("SELECT id, note FROM b"))
    assert contradictions(lines(bare_site, "b")) == 0
    assert len(lines(bare_site, "a")) == 20
    assert "nothing to move" in run(bare_site)


def test_rows_of_a_table_that_was_away_come_again(bare_site: Site, database: Database) -> None:
    """What happened to it meanwhile never came."""
    to_file(bare_site, database, "a", "b")
    run(bare_site)
    to_file(bare_site, database, "a")
    run(bare_site)
    database.run("UPDATE b SET note = 'unseen' WHERE id = 1")
    run(bare_site)
    to_file(bare_site, database, "?")
    assert "20 delivered" in run(bare_site)
    assert state_of(lines(bare_site, "b")) == dict(database.run("SELECT id, note FROM b"))
    assert len(lines(bare_site, "a")) == 20


def test_a_table_that_is_made_later_has_changes_alone(bare_site: Site, database: Database) -> None:
    """All of its rows are among them."""
    to_file(bare_site, database, "?")
    run(bare_site)
    database.run(TABLE.format("c"), FILL.format("c"))
    assert "20 delivered" in run(bare_site)
    assert "nothing to move" in run(bare_site)


def test_of_who_wants_changes_alone_no_rows_of_a_table_that_joins_come(bare_site: Site, database: Database) -> None:
    to_file(bare_site, database, "a", snapshot="never")
    run(bare_site)
    to_file(bare_site, database, "a", "b", snapshot="never")
    database.run("DELETE FROM b WHERE id = 4")
    assert "1 delivered" in run(bare_site)


def test_a_table_that_joins_and_cannot_be_read_holds_up_no_other(bare_site: Site, database: Database) -> None:
    to_file(bare_site, database, "a")
    run(bare_site)
    database.run("CREATE TABLE keyless (id int, note varchar(20))", "INSERT INTO keyless VALUES (1, 'x')")
    to_file(bare_site, database, "keyless", "b")
    assert "has no primary key" in run(bare_site, code=2)
    assert len(lines(bare_site, "b")) == 20
