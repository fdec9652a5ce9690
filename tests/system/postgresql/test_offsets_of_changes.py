"""Offsets of changes that a person moves: a slot gives nothing again that is before the place it was asked for last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.drop_slots()


def test_an_undo_is_refused_behind_what_the_slot_still_gives(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY)")
    source = database.changes("orders")
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    partition = str(database.options["database"])
    database.run("INSERT INTO orders SELECT generate_series(1, 3)")
    for _ in range(2):
        bare_site.waybill("offsets", "set", "a", partition, "3")
        assert "3 -> 0" in bare_site.waybill("offsets", "undo", "a", partition, "--yes")
    bare_site.waybill("offsets", "set", "a", partition, "3")
    database.run("INSERT INTO orders VALUES (4)")
    assert "1 delivered" in run(bare_site)
    run(bare_site)
    refused = bare_site.waybill("offsets", "undo", "a", partition, "--yes", code=2)
    assert "Reading cannot continue at offset 0: slot" in refused
    assert "nothing to move" in run(bare_site)
