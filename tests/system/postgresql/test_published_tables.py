"""Tables that join a publication, and those that it cannot have, by connectors that people run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests import mariadb
from tests.faults.kit.row_events import contradictions, state_of
from tests.postgres_tables import Database
from tests.site import Site
from tests.system.postgresql.test_changes import to_file
from tests.table_connectors import run

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE {0} (id int PRIMARY KEY, note text)"
FILL = "INSERT INTO {0} SELECT n, 'there' FROM generate_series(1, 20) n"


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.drop_slots()


def lines(site: Site, table: str) -> list[str]:
    return [line for line in (site.folder / "out.jsonl").read_text().splitlines() if f'"table":"{table}"' in line]


def probed(site: Site) -> str:
    with site.start("check", "a.yaml", "--probe") as process:
        return "".join(process.communicate(timeout=60))


def test_rows_of_a_table_that_joins_come_with_its_changes(bare_site: Site, database: Database) -> None:
    """Also what is changed before the run that publishes it."""
    database.run(TABLE.format("a"), TABLE.format("b"), FILL.format("a"), FILL.format("b"))
    to_file(bare_site, database, "a", snapshot="initial", snapshot_rows=7)
    run(bare_site)
    to_file(bare_site, database, "a", "b", snapshot="initial", snapshot_rows=7)
    database.run("UPDATE b SET note = 'changed' WHERE id = 1", "DELETE FROM b WHERE id = 2")
    assert "19 delivered" in run(bare_site)
    database.run("UPDATE b SET note = 'again' WHERE id = 3", "DELETE FROM b WHERE id = 4")
    run(bare_site)
    there = dict(database.run("SELECT id, note FROM b"))
    assert state_of(lines(bare_site, "b")) == there
    assert contradictions(lines(bare_site, "b")) == 0
    assert len(lines(bare_site, "a")) == 20
    assert "nothing to move" in run(bare_site)


@pytest.mark.parametrize("names", [("b",), ("public.?",)])
def test_rows_of_a_table_of_a_publication_of_others_that_joins_come(
    bare_site: Site, database: Database, names: tuple[str, ...]
) -> None:
    database.run(TABLE.format("a"), TABLE.format("b"), FILL.format("a"), FILL.format("b"))
    database.run("CREATE PUBLICATION everything FOR ALL TABLES")
    options = {"snapshot": "initial", "snapshot_rows": 7, "publication": "everything"}
    to_file(bare_site, database, "a", **options)
    run(bare_site)
    to_file(bare_site, database, "a", *names, **options)
    database.run("UPDATE b SET note = 'changed' WHERE id = 1", "DELETE FROM b WHERE id = 2")
    run(bare_site)
    database.run("UPDATE b SET note = 'again' WHERE id = 3", TABLE.format("c"), FILL.format("c"))
    run(bare_site)
    assert state_of(lines(bare_site, "b")) == dict(database.run("SELECT id, note FROM b"))
    assert contradictions(lines(bare_site, "b")) == 0
    assert len(lines(bare_site, "a")) == 20
    assert "nothing to move" in run(bare_site)


def test_rows_have_the_generated_columns_that_are_published(bare_site: Site, database: Database) -> None:
    database.run(
        TABLE.format("a"),
        "ALTER TABLE a ADD twice int GENERATED ALWAYS AS (id * 2) STORED, ADD half int GENERATED ALWAYS AS (id / 2)",
        "CREATE PUBLICATION everything FOR ALL TABLES WITH (publish_generated_columns = stored)",
        "INSERT INTO a (id) VALUES (1)",
    )
    to_file(bare_site, database, "a", snapshot="initial", publication="everything")
    told = probed(bare_site)
    assert ("a.half is generated" in told, "a.twice is generated" in told) == (True, False)
    run(bare_site)
    database.run("INSERT INTO a (id) VALUES (2)")
    run(bare_site)
    assert [json.loads(line)["after"] for line in lines(bare_site, "a")] == [
        {"id": 1, "note": None, "twice": 2},
        {"id": 2, "note": None, "twice": 4},
    ]


def test_a_table_that_is_made_again_in_a_publication_of_all_tables_is_told(bare_site: Site, database: Database) -> None:
    database.run(TABLE.format("a"), TABLE.format("b"), FILL.format("a"), "CREATE PUBLICATION everything FOR ALL TABLES")
    to_file(bare_site, database, "a", "b", snapshot="initial", publication="everything")
    run(bare_site)
    database.run("ALTER TABLE b ADD more int", "INSERT INTO b VALUES (1, 'x')", "TRUNCATE a", FILL.format("a"))
    assert "22 delivered" in run(bare_site)
    database.run("DROP TABLE a", TABLE.format("a"), "INSERT INTO a VALUES (7, 'new')")
    assert "public.a was not in the publication for a while, or was altered in it" in run(bare_site, code=5)
    run(bare_site, "--accept-gaps")
    run(bare_site)
    assert '"op":"r"' in lines(bare_site, "a")[-1]


def test_of_who_wants_changes_alone_nothing_else_of_a_table_that_joins_comes(
    bare_site: Site, database: Database
) -> None:
    database.run(TABLE.format("a"), TABLE.format("b"), FILL.format("b"))
    to_file(bare_site, database, "a")
    run(bare_site)
    to_file(bare_site, database, "a", "b")
    run(bare_site)
    database.run("DELETE FROM b WHERE id = 4")
    assert "1 delivered" in run(bare_site)


@pytest.mark.parametrize(
    ("made", "identity"),
    [
        ("id int PRIMARY KEY, note text, twice int GENERATED ALWAYS AS (id * 2) STORED", "FULL"),
        ("id int PRIMARY KEY, note text, twice int NOT NULL GENERATED ALWAYS AS (id * 2) STORED UNIQUE", "INDEX"),
    ],
)
def test_a_table_with_a_generated_column_in_its_identity_is_not_published(
    bare_site: Site, database: Database, made: str, identity: str
) -> None:
    """Its updates and deletes would fail, in the programs of others."""
    using = "FULL" if identity == "FULL" else "USING INDEX a_twice_key"
    database.run(f"CREATE TABLE a ({made})", f"ALTER TABLE a REPLICA IDENTITY {using}", "INSERT INTO a VALUES (1, 'x')")
    to_file(bare_site, database, "a")
    assert "has a generated column in its replica identity" in run(bare_site, code=2)
    assert "has a generated column in its replica identity" in probed(bare_site)
    database.run("UPDATE a SET note = 'y'", "ALTER TABLE a REPLICA IDENTITY DEFAULT")
    run(bare_site)
    database.run("UPDATE a SET note = 'z'", "DELETE FROM a")
    assert "2 delivered" in run(bare_site)


def test_a_generated_column_that_comes_into_the_identity_is_told(bare_site: Site, database: Database) -> None:
    database.run(TABLE.format("a"), "ALTER TABLE a REPLICA IDENTITY FULL", TABLE.format("b"))
    to_file(bare_site, database, "a", "b")
    run(bare_site)
    database.run("ALTER TABLE a ADD twice int GENERATED ALWAYS AS (id * 2) STORED", "INSERT INTO b VALUES (1)")
    said = run(bare_site, code=2)
    assert "while it is published, its updates and deletes fail" in said
    assert len(lines(bare_site, "b")) == 1


@pytest.mark.parametrize("narrow", ["a WHERE (id > 2)", "a (id)"])
def test_rows_do_not_come_whole_of_a_table_that_is_published_in_part(
    bare_site: Site, database: Database, narrow: str
) -> None:
    database.run(TABLE.format("a"), FILL.format("a"), f"CREATE PUBLICATION part FOR TABLE {narrow}")
    to_file(bare_site, database, "a", snapshot="initial", publication="part")
    assert "has some rows or columns of table public.a alone" in run(bare_site, code=2)
    assert "has some rows or columns of table public.a alone" in probed(bare_site)
    to_file(bare_site, database, "a", publication="part")
    run(bare_site)
    database.run("INSERT INTO a VALUES (21, 'new')")
    assert "1 delivered" in run(bare_site)
    with bare_site.start("snapshot", "a", "--table", "a") as process:
        assert "has some rows or columns of table public.a alone" in "".join(process.communicate(timeout=60))


def test_rows_of_a_table_that_is_not_published_are_refused(bare_site: Site, database: Database) -> None:
    """A pattern means tables of the publication."""
    database.run(TABLE.format("a"), TABLE.format("b"), FILL.format("b"), "CREATE PUBLICATION one FOR TABLE a")
    to_file(bare_site, database, "public.*", publication="one")
    run(bare_site)
    with bare_site.start("snapshot", "a", "--table", "public.b") as process:
        assert "Publication one does not have table public.b" in "".join(process.communicate(timeout=60))
    database.run(FILL.format("a"))
    assert "public.a" in bare_site.waybill("snapshot", "a", "--table", "a", "--table", "public.a")
    run(bare_site)
    assert sum('"op":"r"' in line for line in lines(bare_site, "a")) == 20


def test_a_table_whose_events_have_another_key_is_named(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE a (id int PRIMARY KEY, other int NOT NULL UNIQUE)",
        "ALTER TABLE a REPLICA IDENTITY USING INDEX a_other_key",
        TABLE.format("b"),
    )
    to_file(bare_site, database, "a", "b")
    said = probed(bare_site)
    assert "table public.a: events say which row by its REPLICA IDENTITY" in said
    assert "table public.b: events" not in said


@pytest.mark.parametrize("made", ["CREATE UNLOGGED TABLE a (id int PRIMARY KEY)", "CREATE VIEW a AS SELECT 1 AS id"])
def test_what_no_log_has_is_refused_by_name(bare_site: Site, database: Database, made: str) -> None:
    database.run(made)
    to_file(bare_site, database, "a")
    assert "public.a has no changes in the log" in run(bare_site, code=2)


@pytest.mark.parametrize("into", ["postgresql", "mysql"])
def test_a_deletion_that_does_not_say_which_row_goes_is_a_dead_letter(
    bare_site: Site, database: Database, into: str, request: pytest.FixtureRequest
) -> None:
    """The source logs the columns of another key of a row that is deleted; the table has its own."""
    database.run(
        "CREATE TABLE a (id int PRIMARY KEY, other int NOT NULL UNIQUE)",
        "ALTER TABLE a REPLICA IDENTITY USING INDEX a_other_key",
    )
    target = database if into == "postgresql" else mariadb.Database(request.getfixturevalue("mariadb"))
    target.run("CREATE TABLE copies (id int PRIMARY KEY, other int)")
    parse = {"format": "debezium", "fields": {"id": "int32", "other": "int32"}}
    source, sink = database.changes("a", schemas=True), target.sink("copies", mode="upsert")
    bare_site.apply("a", {"source": source, "sink": sink, "parse": parse, "errors": {"tolerance": "all"}})
    run(bare_site)
    database.run("INSERT INTO a VALUES (1, 11), (2, 12)", "DELETE FROM a WHERE id = 1")
    run(bare_site)
    [letter] = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert "Field id, which is in the key, is missing: it is not known which row goes" in str(letter)
    assert target.run("SELECT id FROM copies ORDER BY id") == [(1,), (2,)]
