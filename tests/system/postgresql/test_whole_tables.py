"""Tables that each run reads whole, of either database, in connectors that people run with the command."""

from __future__ import annotations

import json

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
