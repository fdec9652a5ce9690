"""`unknown: evolve` into a table: what it has no column for is rejected and says so, what it has one for is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.postgres_tables import Database
from tests.site import Site

pytestmark = pytest.mark.server


def run(site: Site, *rows: dict[str, Any]) -> dict[str, Any]:
    with (site.folder / "a.log").open("a") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return site.json("run", "a")


def test_a_column_that_a_person_adds_is_filled_from_the_next_run_on(bare_site: Site, postgres_url: str) -> None:
    site, database = bare_site, Database(postgres_url)
    database.run("CREATE TABLE people (id bigint, name text)")
    site.apply(
        "a",
        {
            "source": {"file": {"path": "a.log"}},
            "sink": database.sink("people"),
            "engine": "inline",
            "parse": {"format": "json", "fields": {"id": "int32"}, "unknown": "evolve"},
            "errors": {"tolerance": "all"},
        },
    )
    told = run(site, {"id": 1}, {"id": 2, "late": True}, {"id": 3, "name": "ann"}, {"id": 1 << 40}, {"id": 1 << 70})
    assert (told["delivered"], told["rejected"]) == (3, 2)
    assert sorted(database.run("SELECT * FROM people")) == [(1, None), (3, "ann"), (1 << 40, None)]
    letters = site.json("dead-letters", "list", "a")["dead_letters"][::-1]
    assert "a field that is not declared: " in letters[0]["message"]
    assert "late" in letters[0]["message"]
    assert "id: not a whole number that int64 holds: " in letters[1]["message"]
    database.run("ALTER TABLE people ADD COLUMN late boolean")
    told = run(site, {"id": 5, "late": False})
    assert (told["delivered"], told["rejected"]) == (1, 0)
    site.waybill("dead-letters", "replay", "a", "--yes")
    assert sorted(database.run("SELECT id, late FROM people WHERE late IS NOT NULL")) == [(2, True), (5, False)]
