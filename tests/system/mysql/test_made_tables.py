"""Tables of MySQL that the sink makes, and columns that it adds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mariadb import Database, MariaDB
from tests.site import Site
from tests.table_connectors import FIELDS, UNREACHABLE, apply, run, write

pytestmark = pytest.mark.server


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


ALL: dict[str, Any] = {
    "id": "text",
    "a": "uint64",
    "b": "bool",
    "c": "float32",
    "d": "decimal(38,30)",
    "e": "bytes",
    "f": "date",
    "g": "time(ms)",
    "h": "timestamp(us)",
    "i": "datetime(s)",
    "j": "epoch(ms)",
    "k": ["decimal(4,2)"],
    "l": {"x": "text"},
    "select": "int8",
}


def test_a_table_is_made_with_a_column_for_each_field(bare_site: Site, database: Database) -> None:
    apply(bare_site, database.sink("t", create_table=True, mode="upsert", key=["id"]), ALL)
    with bare_site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert "will be made: CREATE TABLE" in said
    assert database.run("SHOW TABLES") == []
    write(bare_site, {"id": "x", "a": 2**64 - 1, "k": ["1.50"], "l": {"x": "y"}, "h": "2026-01-02T03:04:05Z"})
    run(bare_site)
    [row] = database.run("SELECT id, a, k, l, h FROM t")
    assert row[:4] == ("x", 2**64 - 1, "[1.50]", '{"x":"y"}')
    [(engine, collation)] = database.run(
        "SELECT engine, table_collation FROM information_schema.tables WHERE table_name = 't'"
        f" AND table_schema = '{database.name}'"
    )
    assert engine == "InnoDB"
    assert collation.startswith("utf8mb4")


def test_a_table_that_was_written_and_is_gone_is_not_made_again(bare_site: Site, database: Database) -> None:
    apply(bare_site, database.sink("t", create_table=True))
    write(bare_site, {"id": 1, "name": "a"})
    run(bare_site)
    database.run("RENAME TABLE t TO elsewhere")
    write(bare_site, {"id": 2, "name": "b"})
    assert "this connector has had one of its name before" in run(bare_site, code=UNREACHABLE)
    database.run("RENAME TABLE elsewhere TO t")
    run(bare_site)
    assert database.run("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_columns_are_added_for_new_fields(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint)")
    apply(bare_site, database.sink("t", add_columns=True))
    write(bare_site, {"id": 1, "name": "a"})
    run(bare_site)
    assert database.run("SELECT * FROM t") == [(1, "a")]


def test_a_name_that_differs_by_a_capital_is_no_new_column(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (ID bigint)")
    apply(bare_site, database.sink("t", add_columns=True), FIELDS)
    write(bare_site, {"id": 1, "name": "a"})
    assert "Field id and column ID have one name to the database" in run(bare_site, code=2)
