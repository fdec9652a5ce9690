"""Tables that are read by the time of the last change, of either database, in connectors that people run with the
command."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from tests import mariadb, postgres_tables
from tests.changing_writers import Database, fill, make
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


def lines(site: Site) -> list[tuple[int, int]]:
    found = [json.loads(line) for line in (site.folder / "out.jsonl").read_text().splitlines()]
    return [(line["id"], line["version"]) for line in found]


def change(database: Database, *rows: int) -> None:
    numbers = ", ".join(map(str, rows))
    database.run(f"UPDATE orders SET version = version + 1, at = now() WHERE id IN ({numbers})")


def to_file(site: Site, database: Database, **more: Any) -> None:
    source = database.source("orders", timestamp="at", **more)
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})


def test_each_change_becomes_a_line(bare_site: Site, database: Database) -> None:
    make(database)
    fill(database, 1, 6)
    to_file(bare_site, database)
    with bare_site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    for words in ("exactly once", "of several within a short time the last one", "are found by at"):
        assert words in " ".join(said.split())
    assert "5 delivered" in run(bare_site)
    change(database, 4, 2)
    assert "2 delivered" in run(bare_site)
    run(bare_site)
    assert lines(bare_site) == [*((row, 0) for row in range(1, 6)), (2, 1), (4, 1)]
    [lag] = bare_site.json("lag", "a")["connectors"]
    assert [one["lag"] for one in lag["partitions"]] == [0]
    receipts = bare_site.json("receipts", "a", "--last", "10")["receipts"]
    assert sorted(one["delivered"] for one in receipts) == [2, 5]


def test_a_window_follows_changes(bare_site: Site, database: Database) -> None:
    make(database)
    fill(database, 1, 6)
    to_file(bare_site, database, every_s=0.1, delay_s=0.2)
    run(bare_site)
    changing = threading.Thread(target=_change_now_and_then, args=(database,))
    changing.start()
    run(bare_site, "--window", "8s")
    changing.join()
    run(bare_site)
    found = [line for line in lines(bare_site) if line[0] == 3]
    assert found[-1] == (3, 4)
    assert found == sorted(set(found))
    assert len(found) > 2


def _change_now_and_then(database: Database) -> None:
    for _ in range(4):
        time.sleep(1.5)
        change(database, 3)
