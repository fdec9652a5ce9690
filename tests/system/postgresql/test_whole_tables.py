"""Tables that each run reads whole, of either database, in connectors that people run with the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core import stack
from tests import mariadb, postgres_tables
from tests.changing_writers import Database, fill, make
from tests.site import Site
from tests.system.postgresql.test_changes_after_failover import Server, served
from tests.table_connectors import run

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


@pytest.fixture
def server(worker_folder: Path) -> Iterator[Server]:
    yield from served(worker_folder)


def ids(site: Site) -> list[int]:
    return [json.loads(line)["id"] for line in (site.folder / "out.jsonl").read_text().splitlines()]


def test_each_run_writes_all_rows_and_a_window_does_so_again_and_again(bare_site: Site, database: Database) -> None:
    make(database)
    fill(database, 1, 4)
    source = database.source("orders", bulk=True, every_s=1)
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    with bare_site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    for words in ("exactly once", "Each pass brings all rows again", "each run reads all of them again"):
        assert words in " ".join(said.split())
    for _ in range(2):
        assert "3 delivered" in run(bare_site)
    assert ids(bare_site) == [1, 2, 3] * 2
    run(bare_site, "--window", "8s")
    written = ids(bare_site)
    assert written == [1, 2, 3] * (len(written) // 3)
    assert len(written) // 3 - 2 >= 2


def test_a_standby_is_read_whole_and_in_no_other_way(bare_site: Site, server: Server) -> None:
    make(server.database)
    fill(server.database, 1, 4)
    stack.down(server.home)
    server.standing_by()
    for name, more in (("a", {"bulk": True}), ("b", {})):
        source = server.database.source("orders", **more)
        bare_site.apply(name, {"source": source, "sink": {"file": {"path": f"{name}.jsonl"}}})
    assert "3 delivered" in run(bare_site)
    assert "3 delivered" in run(bare_site)
    assert "is a standby" in bare_site.waybill("run", "b", "--engine", "inline", code=6)
