"""A table of SQLite as the target of connectors that people run with the command."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.site import Site
from tests.sqlite_files import Database
from tests.table_connectors import FIELDS, UNREACHABLE, apply, apply_changes, event, run, write

TOLERANT = {"tolerance": "all"}
ODD = "Zoë \"Z\" 'q' '' \\N \\' ,;\n\t\0\x1a % _ 🙂 :p0"


def database(site: Site, *statements: str) -> list[Any]:
    """The rows of the last statement."""
    return Database(site.folder / "shop.db").run(*statements)


def table(name: str = "people", **more: Any) -> dict[str, Any]:
    return {"sql": {"url": "sqlite:///shop.db", "table": name, **more}}


def letters(site: Site) -> list[dict[str, Any]]:
    return site.json("dead-letters", "list", "a", "--last", "999")["dead_letters"][::-1]  # type: ignore[no-any-return]


def test_each_record_is_one_more_row(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (n INTEGER PRIMARY KEY, id BIGINT, name TEXT, seen TEXT DEFAULT 'now')")
    write(bare_site, {"id": 0, "name": ODD}, {"id": 2, "name": None}, {"id": 1, "name": ""})
    apply(bare_site, table())
    run(bare_site)
    run(bare_site)
    found = database(bare_site, "SELECT id, name, seen FROM people ORDER BY n")
    assert found == [(0, ODD, "now"), (2, None, "now"), (1, "", "now")]
    assert len(database(bare_site, "SELECT * FROM waybill_markers")) == 1


def test_lines_of_csv_are_rows(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (id TEXT, name TEXT)")
    (bare_site.folder / "a.log").write_text('1,"Zoë, Z"\n2,\n')
    parse = {"format": "csv", "columns": ["id", "name"]}
    bare_site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": table(), "parse": parse})
    run(bare_site)
    assert database(bare_site, "SELECT * FROM people ORDER BY id") == [("1", "Zoë, Z"), ("2", None)]


@pytest.mark.parametrize(
    ("made", "fields", "sink", "words"),
    [
        ("id BIGINT", FIELDS, {}, "The table has no column name"),
        ("id TEXT, name TEXT", FIELDS, {}, "and does not keep int64 exactly"),
        ("id BIGINT, name STRING", FIELDS, {}, "does not keep text exactly"),  # its affinity is that of numbers
        ("id BIGINT, name", FIELDS, {}, "does not keep text exactly"),
        ("id BIGINT, name TEXT, born DATE NOT NULL", FIELDS, {}, "Column born takes no NULL, and records have no such"),
        ("id BIGINT, name TEXT AS ('x')", FIELDS, {}, "makes the values of column name itself"),
        ("id BIGINT, n DECIMAL(20,2)", {"id": "int64", "n": "decimal(16,2)"}, {}, "does not keep decimal(16,2)"),
        ("id BIGINT, n BIGINT", {"id": "int64", "n": "uint64"}, {}, "does not keep uint64 exactly"),
        ("id BIGINT, at TIMESTAMP", {"id": "int64", "at": "timestamp(ns)"}, {}, "does not keep timestamp(ns) exactly"),
        ("id BIGINT, at DATETIME", {"id": "int64", "at": "timestamp(us)"}, {}, "does not keep timestamp(us) exactly"),
        ("id BIGINT, name TEXT", FIELDS, {"mode": "upsert"}, "The table has no primary key"),
        ("id BIGINT, name TEXT", FIELDS, {"mode": "upsert", "key": ["id"]}, "No index of the table says that id"),
        (
            "id BIGINT, name TEXT COLLATE NOCASE PRIMARY KEY",
            FIELDS,
            {"mode": "upsert"},
            "No index of the table says that name is unique",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_planned(
    bare_site: Site, made: str, fields: Any, sink: Any, words: str
) -> None:
    database(bare_site, f"CREATE TABLE t ({made})")
    write(bare_site, dict.fromkeys(fields))
    apply(bare_site, table("t", **sink), fields)
    assert words in run(bare_site, code=2)
    assert database(bare_site, "SELECT count(*) FROM t") == [(0,)]


def test_a_view_is_refused(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE u (id BIGINT, name TEXT)", "CREATE VIEW t AS SELECT * FROM u")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, table("t"))
    assert "This is no table" in run(bare_site, code=2)


def test_a_row_that_the_table_refuses_is_a_dead_letter_and_no_other(bare_site: Site) -> None:
    database(
        bare_site,
        "CREATE TABLE places (id BIGINT PRIMARY KEY)",
        *(f"INSERT INTO places VALUES ({number})" for number in range(40) if number not in (14, 15)),
        "CREATE TABLE later (id BIGINT PRIMARY KEY)",
        *(f"INSERT INTO later VALUES ({number})" for number in range(40) if number != 15),
        "CREATE TABLE people (id BIGINT NOT NULL, name TEXT UNIQUE ON CONFLICT REPLACE, CHECK (id <> 13),"
        " FOREIGN KEY (id) REFERENCES later DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TRIGGER leaves BEFORE INSERT ON people WHEN NEW.id = 16 BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER raises BEFORE INSERT ON people WHEN NEW.id = 17 BEGIN SELECT RAISE(ABORT, 'secret'); END",
    )
    rows = [{"id": number, "name": f"secret-{number}"} for number in range(40)]
    write(bare_site, *rows, {"id": 7, "name": "secret-8"}, {"id": None, "name": "x"})
    apply(bare_site, table(), errors=TOLERANT)
    run(bare_site)
    left_out = (13, 15, 16, 17)
    assert [one for (one,) in database(bare_site, "SELECT id FROM people ORDER BY id")] == [
        number for number in range(40) if number not in left_out
    ]
    assert [(letter["offset"] > 0, letter["kind"]) for letter in letters(bare_site)] == [
        (True, kind)
        for kind in (
            "CheckViolation",
            "ForeignKeyViolation",
            "LeftOut",
            "RaisedByTrigger",
            "DuplicateKey",
            "NullRefused",
        )
    ]
    assert "secret" not in bare_site.waybill("dead-letters", "list", "a")


def test_the_last_record_of_a_key_is_its_row(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT, seen TEXT DEFAULT 'kept')")
    database(bare_site, "INSERT INTO people VALUES (2, 'before', 'other')")
    write(bare_site, {"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"})
    apply(bare_site, table(mode="upsert"))
    run(bare_site)
    found = database(bare_site, "SELECT * FROM people ORDER BY id")
    assert found == [(1, "c", "kept"), (2, "b", "other")]


def test_a_record_without_its_key_is_a_dead_letter_also_where_the_key_takes_null(bare_site: Site) -> None:
    """Of two in one run the last would count, and of two in two runs both."""
    database(bare_site, "CREATE TABLE people (id BIGINT, name TEXT, PRIMARY KEY (id, name))")
    write(bare_site, {"id": 1, "name": "a"}, {"id": 1}, {"name": "b"}, {"id": 1, "name": "c"})
    apply(bare_site, table(mode="upsert"), errors=TOLERANT)
    run(bare_site)
    assert database(bare_site, "SELECT * FROM people ORDER BY name") == [(1, "a"), (1, "c")]
    assert [one["kind"] for one in letters(bare_site)] == ["NullRefused", "NullRefused"]


def test_changes_are_done_to_the_table(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT NOT NULL)")
    write(
        bare_site,
        *(event("c", None, {"id": number, "name": f"n{number}"}) for number in range(5)),
        event("u", {"id": 1, "name": "n1"}, {"id": 1, "name": "later"}),
        event("d", {"id": 2, "name": "n2"}, None),
        event("u", {"id": 3, "name": "n3"}, {"id": 30, "name": "moved"}),
    )
    apply_changes(bare_site, table(mode="upsert"))
    run(bare_site)
    found = database(bare_site, "SELECT * FROM people ORDER BY id")
    assert found == [(0, "n0"), (1, "later"), (4, "n4"), (30, "moved")]


def test_the_file_and_the_table_are_made(bare_site: Site) -> None:
    fields = {"id": "int64", "price": "decimal(10,2)", "sum": "decimal(30,2)", "at": "timestamp(us)", "tags": ["text"]}
    row = {"id": 1, "price": "12345678.90", "sum": "1234567890123456789012345678.90", "tags": ["a"]}
    write(bare_site, row | {"at": "2026-01-02T03:04:05.000006Z"})
    apply(bare_site, table(mode="upsert", key=["id"], create_table=True), fields)
    said = bare_site.waybill("check", "a.yaml", "--probe")
    assert "shop.db will be made" in said
    run(bare_site)
    assert database(bare_site, "SELECT id, price, sum, at, tags FROM people") == [
        (1, 12345678.9, "1234567890123456789012345678.90", "2026-01-02 03:04:05.000006", '["a"]')
    ]
    [(made,)] = database(bare_site, "SELECT sql FROM sqlite_master WHERE name = 'people'")
    assert sorted(made.removeprefix("CREATE TABLE people ( ").removesuffix(" )").split(", ")) == sorted(
        ["id INTEGER NOT NULL", "price NUMERIC(10", "2)", "sum TEXT", "at TIMESTAMP", "tags JSON", "PRIMARY KEY (id)"]
    )
    assert "keeps each field exactly" in bare_site.waybill("check", "a.yaml", "--probe")


def test_columns_are_added(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (id BIGINT)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, table(add_columns=True))
    assert "ALTER TABLE people ADD COLUMN name TEXT" in bare_site.waybill("check", "a.yaml", "--probe")
    run(bare_site)
    assert database(bare_site, "SELECT * FROM people") == [(1, "a")]


@pytest.mark.parametrize("gone", ["file", "table"])
def test_what_had_rows_and_is_gone_is_not_made_again(bare_site: Site, gone: str) -> None:
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, table(create_table=True))
    run(bare_site)
    path = bare_site.folder / "shop.db"
    if gone == "file":
        path.rename(path.with_name("moved.db"))
    else:
        database(bare_site, "ALTER TABLE people RENAME TO moved")
    write(bare_site, {"id": 2, "name": "b"})
    run(bare_site, code=UNREACHABLE)
    assert path.exists() == (gone == "table")
    if gone == "file":
        path.with_name("moved.db").rename(path)
    else:
        database(bare_site, "ALTER TABLE moved RENAME TO people")
    run(bare_site)
    assert database(bare_site, "SELECT * FROM people") == [(1, "a"), (2, "b")]


def test_a_table_of_markers_that_is_gone_stops_the_run(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (id BIGINT, name TEXT)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, table())
    run(bare_site)
    database(bare_site, "DROP TABLE waybill_markers")
    write(bare_site, {"id": 2, "name": "b"})
    assert "0 rows of this partition and 1 were settled" in run(bare_site, code=5)
    assert database(bare_site, "SELECT * FROM people") == [(1, "a")]


def test_several_tasks_and_tables_share_the_file(bare_site: Site) -> None:
    """Each task has its partitions, and waits for the others."""
    database(
        bare_site,
        "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT)",
        "CREATE TABLE odd (id BIGINT PRIMARY KEY)",
    )
    for task in range(3):
        write(bare_site, *({"id": 100 * task + one, "name": "x"} for one in range(100)), name=f"{task}.log")
    bare_site.apply(
        "a",
        {
            "source": {"file": {"path": "*.log"}},
            "sink": table(mode="upsert", tables={"odd": {"fields": ["id"]}}),
            "parse": {"format": "json", "fields": FIELDS},
            "rules": [{"name": "all"}, {"name": "odd", "when": "$.id = 205", "to": "odd"}],
            "tasks": 3,
        },
    )
    run(bare_site)
    assert database(bare_site, "SELECT count(*), sum(id) FROM people") == [(300, 44850)]
    assert database(bare_site, "SELECT id FROM odd") == [(205,)]
    assert len(database(bare_site, "SELECT * FROM waybill_markers")) == 3


def test_a_file_that_another_program_has_is_waited_for(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (id BIGINT, name TEXT)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, table(lock_timeout_s=0.2))
    with closing(sqlite3.connect(bare_site.folder / "shop.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "Another program has the file" in run(bare_site, code=UNREACHABLE)
    run(bare_site)
    assert database(bare_site, "SELECT * FROM people") == [(1, "a")]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://db/shop", "with a system of its own, which promises more: write `postgresql: {host"),
        ("mariadb+pymysql://db/shop", "with a system of its own, which promises more: write `mysql: {host"),
        ("mssql+pyodbc://sa:hunter22@db/shop", "must not hold a user or a password"),
        ("mssql+pyodbc://db/shop?PWD=hunter22", "must not hold PWD"),
        ("oracle+oracledb://db/shop?host=hunter22", "must not hold host"),
        ("duckdb:///shop.duckdb", "names no host: only of SQLite may a database be a file"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite:////etc/shop.db", "is outside of the folders that files may be in"),
        ("sqlite:///.waybill/ledger.db", "is of the ledger"),
        ("sqlite:///a*.db", "must name one file"),
        ("${env:SHOP_URL}", "must be written out"),
    ],
)
def test_urls_that_are_not_taken(bare_site: Site, url: str, words: str) -> None:
    path = bare_site.folder / "a.yaml"
    sink = json.dumps({"sql": {"url": url, "table": "t"}})
    parse = "{format: json, fields: {id: int64}}"
    path.write_text(f"version: 1\nname: a\nsource: {{file: {{path: a.log}}}}\nsink: {sink}\nparse: {parse}\n")
    said = bare_site.waybill("check", "a.yaml", code=2)
    assert words in " ".join(said.split())
    assert "hunter22" not in said
    assert "hunter22" not in bare_site.waybill("apply", "a.yaml", code=2)


def test_a_driver_that_is_not_installed_is_named(bare_site: Site) -> None:
    write(bare_site, {"id": 1, "name": "a"})
    for url, words in (
        ("mssql+pymssql://db/shop", "pip install pymssql"),
        ("snowflake://db/shop", "pip install snowflake-sqlalchemy"),
    ):
        apply(bare_site, {"sql": {"url": url, "table": "t", "user": "a"}})
        assert words in run(bare_site, code=2)


def test_what_a_person_sees_before_a_run(bare_site: Site) -> None:
    database(bare_site, "CREATE TABLE people (id BIGINT, name TEXT)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, table())
    said = bare_site.waybill("check", "a.yaml", "--probe")
    assert "exactly once" in said
    assert "The file is on a local file system of the driver's host" in said
    assert "is a database of SQLite" in said
    assert "table people keeps each field exactly" in said
    assert "table waybill_markers will be made" in said
