"""The document of a connector names another server than before, whose table of the same name looks alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mariadb import Database, MariaDB
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

TABLE = """
CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, place text, at timestamp(6) NOT NULL DEFAULT now(6))
"""
ROWS = "INSERT INTO orders (place) SELECT '{}' FROM seq_1_to_{}"
STOPPED = 5
MODES: list[dict[str, Any]] = [{}, {"timestamp": "at", "incrementing": "id"}]


@pytest.fixture
def databases(mariadb: MariaDB, own_mariadb: MariaDB) -> tuple[Database, Database]:
    first = Database(mariadb)
    second = Database(own_mariadb, first.name)
    first.run(TABLE, ROWS.format("first", 3))
    second.run(TABLE, ROWS.format("second", 6))
    return first, second


def to_file(site: Site, database: Database, **options: Any) -> None:
    site.apply("a", {"source": database.source("orders", **options), "sink": {"file": {"path": "out.jsonl"}}})


def places(site: Site) -> list[str]:
    return [json.loads(line)["place"] for line in (site.folder / "out.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("mode", MODES, ids=["numbers", "times"])
def test_rows_of_another_server_are_not_those_that_were_read(
    bare_site: Site, databases: tuple[Database, Database], mode: dict[str, Any]
) -> None:
    first, second = databases
    to_file(bare_site, first, **mode)
    run(bare_site)
    to_file(bare_site, second, **mode)
    said = run(bare_site, code=STOPPED)
    assert f"this is another server: it was 127.0.0.1:{first.server.port}" in said
    run(bare_site, "--accept-gaps")
    assert places(bare_site) == ["first"] * 3 + ["second"] * 6
    first.run(ROWS.format("again", 7))
    to_file(bare_site, first, **mode)
    assert "this is another server" in run(bare_site, code=STOPPED)
    run(bare_site, "--accept-gaps")
    assert places(bare_site)[9:] == ["first"] * 3 + ["again"] * 7


def test_another_name_of_the_server_is_the_same_one(bare_site: Site, databases: tuple[Database, Database]) -> None:
    first, _ = databases
    to_file(bare_site, first)
    run(bare_site)
    first.run(ROWS.format("later", 1))
    first.run("CREATE USER IF NOT EXISTS tester@localhost", "GRANT ALL ON *.* TO tester@localhost")
    to_file(bare_site, first, host="localhost")
    assert "1 delivered" in run(bare_site)
