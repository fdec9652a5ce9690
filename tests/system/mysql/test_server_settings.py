"""A server with settings of its own, with which our sessions would begin: nothing is cut, and nothing let in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mariadb import Database, MariaDB
from tests.mysql import MySQL
from tests.site import Site
from tests.system.mysql.test_table_sink import TOLERANT, letters
from tests.table_connectors import apply, run, write

pytestmark = pytest.mark.server

SETTINGS = {"sql_select_limit": 2, "max_error_count": 0, "check_constraint_checks": 0, "sql_safe_updates": 1}
FIELDS = {"id": "int64", **dict.fromkeys(("a", "b", "c", "d"), "text")}


@pytest.fixture
def database(mariadb: MariaDB) -> Iterator[Database]:
    database = Database(mariadb)
    database.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, a tinytext, b text CHECK (b <> 'bad'),"
        " c text CHECK (json_length(c) < 3), d text)"
    )
    settings = {one: given for one, given in SETTINGS.items() if database.run(f"SHOW VARIABLES LIKE '{one}'")}
    before = {name: database.run(f"SELECT @@GLOBAL.{name}")[0][0] for name in settings}
    database.run(*(f"SET GLOBAL {name} = {value}" for name, value in settings.items()))
    yield database
    database.run(*(f"SET GLOBAL {name} = {value}" for name, value in before.items()))


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_what_the_table_cannot_keep_is_refused_and_its_neighbours_come(
    bare_site: Site, database: Database, mode: str
) -> None:
    sound = {"a": "x" * 255, "b": "good", "c": "[1]", "d": "y"}
    cut, bad, worse = {"a": "x" * 250 + " " * 10}, {"b": "bad"}, {"c": "no"}
    rows = [{"id": number, **sound, **changed} for number, changed in enumerate([{}, cut, {}, bad, worse, {}])]
    write(bare_site, *rows)
    apply(bare_site, database.sink("t", mode=mode), FIELDS, errors=TOLERANT)
    run(bare_site)
    database.run("SET GLOBAL sql_select_limit = 1000")
    assert database.run("SELECT * FROM t") == [(number, *sound.values()) for number in (0, 2, 5)]
    no_json = "CheckViolation" if isinstance(database.server, MySQL) else "WrongValue"
    assert [one["kind"] for one in letters(bare_site)] == ["WrongValue", "CheckViolation", no_json]
