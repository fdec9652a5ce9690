"""A table of PostgreSQL as the target of connectors that people run with the command."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from connect_core.systems.postgresql.options import PostgresSinkOptions
from connect_core.systems.postgresql.sink import PostgresSink
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import FIELDS, UNREACHABLE, apply, apply_changes, event, run, write

pytestmark = pytest.mark.server


@pytest.fixture
def database(postgres_url: str) -> Database:
    return Database(postgres_url)


def test_each_record_is_one_more_row(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE people (id bigint, name text, seen timestamptz DEFAULT now())")
    write(bare_site, {"id": 1, "name": 'Zoë "Z" \\N,;\n\t'}, {"id": 2, "name": None}, {"id": 1, "name": ""})
    apply(bare_site, database.sink("people"))
    run(bare_site)
    run(bare_site)
    assert database.run("SELECT id, name FROM people ORDER BY ctid") == [
        (1, 'Zoë "Z" \\N,;\n\t'),
        (2, None),
        (1, ""),
    ]
    assert database.run("SELECT count(*) FROM people WHERE seen IS NULL") == [(0,)]
    assert len(database.run("SELECT * FROM waybill_markers")) == 1


@pytest.mark.parametrize(
    ("table", "fields", "sink", "words"),
    [
        ("id bigint", FIELDS, {}, "The table has no column name"),
        ("id integer, name text", FIELDS, {}, "Column id is integer, and does not keep int64 exactly"),
        ("id bigint, name character(9)", FIELDS, {}, "Column name is character(9), and does not keep text exactly"),
        ("id bigint, name text, born date NOT NULL", FIELDS, {}, "Column born takes no NULL, and records have no such"),
        ("id bigint GENERATED ALWAYS AS IDENTITY, name text", FIELDS, {}, "makes the values of column id itself"),
        (
            "id bigint, at timestamptz",
            {"id": "int64", "at": "timestamp(ns)"},
            {},
            "does not keep timestamp(ns) exactly",
        ),
        ("id bigint, at timestamp(3)", {"id": "int64", "at": "datetime(us)"}, {}, "does not keep datetime(us)"),
        (
            "id bigint, n numeric(10,2)",
            {"id": "int64", "n": "decimal(10,3)"},
            {},
            "does not keep decimal(10,3) exactly",
        ),
        ("id bigint, name text", FIELDS, {"mode": "upsert"}, "The table has no primary key"),
        (
            "id bigint, name text",
            FIELDS,
            {"mode": "upsert", "key": ["id"]},
            "No index of the table says that id",
        ),
        (
            "no serial PRIMARY KEY, id bigint, name text",
            FIELDS,
            {"mode": "upsert"},
            "have no field no, which",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_planned(
    bare_site: Site, database: Database, table: str, fields: Any, sink: Any, words: str
) -> None:
    database.run(f"CREATE TABLE t ({table})")
    write(bare_site, dict.fromkeys(fields))
    apply(bare_site, database.sink("t", **sink), fields)
    assert words in run(bare_site, code=2)
    assert database.run("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.parametrize(
    ("domain", "fields", "words"),
    [
        ("numeric(5,2)", {"id": "int64", "x": "decimal(6,4)"}, "Column x is numeric(5,2), and does not keep"),
        ("timestamptz(0)", {"id": "int64", "x": "timestamp(us)"}, "does not keep timestamp(us) exactly"),
        ("numeric(5,2)[]", {"id": "int64", "x": ["decimal(8,4)"]}, "does not keep [decimal(8,4)] exactly"),
        ("interval(0)", {"id": "int64", "x": "text"}, "does not keep text exactly"),
    ],
)
def test_a_domain_counts_as_what_it_is_made_of_with_its_size(
    bare_site: Site, database: Database, domain: str, fields: Any, words: str
) -> None:
    database.run(f"CREATE DOMAIN sized AS {domain}")
    database.run("CREATE TABLE t (id bigint, x sized)")
    write(bare_site, dict.fromkeys(fields))
    apply(bare_site, database.sink("t"), fields)
    assert words in run(bare_site, code=2)


def test_a_domain_cuts_no_blanks(bare_site: Site, database: Database) -> None:
    database.run("CREATE DOMAIN short AS varchar(3)")
    database.run("CREATE TABLE t (id bigint, name short)")
    write(bare_site, {"id": 1, "name": "abc  "}, {"id": 2, "name": "abc"})
    apply(bare_site, database.sink("t"), errors={"tolerance": "all"})
    run(bare_site)
    assert database.run("SELECT id, name FROM t") == [(2, "abc")]


def test_a_table_that_a_crash_empties_is_refused(bare_site: Site, database: Database) -> None:
    database.run("CREATE UNLOGGED TABLE t (id bigint, name text)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t"))
    assert "The table is UNLOGGED" in run(bare_site, code=2)


def test_a_null_in_a_list_is_null_whatever_the_role_says(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, x text[])")
    database.run("DO $$ BEGIN EXECUTE format('ALTER ROLE %I SET array_nulls = off', current_user); END $$")
    try:
        write(bare_site, {"id": 1, "x": ["a", None]})
        apply(bare_site, database.sink("t"), {"id": "int64", "x": ["text"]})
        run(bare_site)
    finally:
        database.run("DO $$ BEGIN EXECUTE format('ALTER ROLE %I RESET array_nulls', current_user); END $$")
    assert database.run("SELECT x FROM t") == [(["a", None],)]


def test_rows_come_from_a_worker_of_spark(site: Site, database: Database) -> None:
    database.run("CREATE TABLE people (id bigint PRIMARY KEY, name text)")
    write(site, *({"id": number, "name": "Zoë"} for number in range(100)))
    apply(site, database.sink("people", mode="upsert"))
    site.waybill("run", "a")
    assert database.run("SELECT count(*), min(name), max(id) FROM people") == [(100, "Zoë", 99)]


def test_a_row_that_the_table_refuses_is_a_dead_letter_and_no_other(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY CHECK (id <> 13), name varchar(3))")
    rows = [{"id": number, "name": "ok"} for number in range(40)]
    rows[20]["name"] = "secret-value"
    rows[25]["name"] = "ab  "
    rows[30]["name"] = "a\0b"
    write(bare_site, *rows, {"id": 7, "name": "no"})
    apply(bare_site, database.sink("t"), errors={"tolerance": "all"})
    run(bare_site)
    assert [id_ for (id_,) in database.run("SELECT id FROM t ORDER BY id")] == [
        number for number in range(40) if number not in (13, 20, 25, 30)
    ]
    letters = bare_site.json("dead-letters", "list", "a")["dead_letters"][::-1]
    assert [letter["kind"] for letter in letters] == [
        "CheckViolation",
        *["StringDataRightTruncation"] * 2,
        "CharacterNotInRepertoire",
        "UniqueViolation",
    ]
    assert "Constraint t_pkey of table t forbids the row" in json.dumps(letters)
    assert "secret-value" not in bare_site.waybill("dead-letters", "list", "a")


def test_a_refused_row_is_replayed_through_the_document_of_today(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, label varchar(3))")
    write(bare_site, {"id": 1, "name": "long"}, {"id": 2, "name": "ok"})
    renamed = [{"rename": {"name": "label"}}]
    apply(bare_site, database.sink("t"), transforms=renamed, errors={"tolerance": "all"})
    run(bare_site)
    database.run("ALTER TABLE t ALTER label TYPE text")
    bare_site.waybill("dead-letters", "replay", "a", "--yes", "--engine", "inline")
    assert database.run("SELECT id, label FROM t ORDER BY id") == [(1, "long"), (2, "ok")]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_rows_that_a_trigger_leaves_out_are_counted_as_refused(bare_site: Site, database: Database, mode: str) -> None:
    body = "BEGIN IF NEW.id % 3 = 0 THEN RETURN NULL; END IF; RETURN NEW; END"
    database.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, name text)",
        f"CREATE FUNCTION thins() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
        "CREATE TRIGGER thins BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION thins()",
    )
    write(bare_site, *({"id": number, "name": "x"} for number in range(7)))
    apply(bare_site, database.sink("t", mode=mode), errors={"tolerance": "all"})
    run(bare_site)
    assert database.run("SELECT id FROM t ORDER BY id") == [(1,), (2,), (4,), (5,)]
    letters = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert [(letter["stage"], letter["kind"]) for letter in letters] == [("write", "LeftOut")] * 3


def test_a_deferred_constraint_refuses_its_row_and_no_other(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE places (id bigint PRIMARY KEY)",
        "INSERT INTO places VALUES (1)",
        "CREATE TABLE t (id bigint REFERENCES places DEFERRABLE INITIALLY DEFERRED, name text)",
    )
    write(bare_site, {"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"})
    apply(bare_site, database.sink("t"), errors={"tolerance": "all"})
    run(bare_site)
    assert database.run("SELECT name FROM t ORDER BY name") == [("a",), ("c",)]
    [letter] = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert letter["kind"] == "ForeignKeyViolation"


def test_a_record_without_its_key_is_a_dead_letter(bare_site: Site, database: Database) -> None:
    database.run('CREATE TABLE t (id bigint UNIQUE, name text, "waybill number" bigint)')
    write(bare_site, {"id": None, "name": "a"}, {"id": None, "name": "b"}, {"id": 1, "name": "c"})
    apply(bare_site, database.sink("t", mode="upsert", key=["id"]), errors={"tolerance": "all"})
    run(bare_site)
    assert database.run("SELECT id, name FROM t") == [(1, "c")]
    assert [one["kind"] for one in bare_site.json("dead-letters", "list", "a")["dead_letters"]] == ["NoKey", "NoKey"]


def test_changes_are_done_to_the_rows(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, name text, place text DEFAULT 'north', PRIMARY KEY (id))")
    one, two, three = ({"id": number, "name": f"n{number}"} for number in (1, 2, 3))
    write(
        bare_site,
        event("r", None, one),
        event("c", None, two),
        event("c", None, three),
        event("u", two, two | {"name": "changed"}),
        event("d", three, None),
        event("d", one, None),
        event("c", None, one | {"name": "back"}),
    )
    parse = {"format": "debezium", "fields": FIELDS}
    sink = database.sink("t", mode="upsert")
    bare_site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": sink, "parse": parse})
    run(bare_site)
    now = "SELECT id, name, place FROM t ORDER BY id"
    assert database.run(now) == [(1, "back", "north"), (2, "changed", "north")]
    write(bare_site, event("d", two, None), event("u", None, one | {"name": "last"}))
    run(bare_site)
    assert database.run(now) == [(1, "last", "north")]


def test_an_update_that_changes_the_key_takes_the_old_row_with_it(bare_site: Site, database: Database) -> None:
    database.run("CREATE DOMAIN short AS varchar(5) NOT NULL", "CREATE TABLE t (id bigint PRIMARY KEY, name short)")
    one, two, three, four = ({"id": number, "name": f"n{number}"} for number in (1, 2, 3, 4))
    write(bare_site, *(event("c", None, row) for row in (one, two, three, four)))
    apply_changes(bare_site, database.sink("t", mode="upsert"))
    run(bare_site)
    write(
        bare_site,
        event("u", one | {"name": "was longer than the column"}, one | {"id": 11}),  # 1 -> 11
        event("u", two, two | {"id": 22}),  # 2 -> 22 -> 23, and another 2
        event("u", two | {"id": 22}, two | {"id": 23}),
        event("c", None, two | {"name": "new"}),
        event("u", three, three | {"id": 4}),  # 3 -> 4, in the place of a row that goes somewhere else later
        event("u", None, four | {"id": 44}),
    )
    run(bare_site)
    now = "SELECT id, name FROM t ORDER BY id"
    assert database.run(now) == [(2, "new"), (4, "n3"), (11, "n1"), (23, "n2"), (44, "n4")]
    write(bare_site, event("u", {"id": 11, "name": "n1"}, one), event("u", one, {"id": 12, "name": "n1"}))
    run(bare_site)
    assert database.run(now) == [(2, "new"), (4, "n3"), (12, "n1"), (23, "n2"), (44, "n4")]


def test_steps_change_the_old_key_too(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (number bigint PRIMARY KEY, name text)")
    rows = [{"id": number, "name": "x"} for number in (1, 2)]
    write(bare_site, event("c", None, rows[0]), event("u", rows[0], rows[1]))
    steps = [{"filter": "$.name = 'x'"}, {"rename": {"id": "number"}}]
    apply_changes(bare_site, database.sink("t", mode="upsert"), transforms=steps)
    run(bare_site)
    assert database.run("SELECT number FROM t") == [(2,)]


def test_a_delete_must_not_become_one_more_row(bare_site: Site, database: Database) -> None:
    document = {
        "version": 1,
        "name": "a",
        "source": {"file": {"path": "*.log"}},
        "sink": database.sink("t"),
        "parse": {"format": "debezium", "fields": FIELDS},
    }
    (bare_site.folder / "a.yaml").write_text(json.dumps(document))
    said = bare_site.waybill("check", "a.yaml", code=2)
    assert "with insert a deleted row is one more row: write upsert" in said


def test_a_table_that_is_away_is_waited_for(bare_site: Site, database: Database) -> None:
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t"))
    assert "There is no such table" in run(bare_site, code=UNREACHABLE)
    database.run("CREATE TABLE t (id bigint, name text)")
    run(bare_site)
    database.run("ALTER TABLE t RENAME TO elsewhere")
    write(bare_site, {"id": 2, "name": "b"})
    run(bare_site, code=UNREACHABLE)
    database.run("ALTER TABLE elsewhere RENAME TO t")
    run(bare_site)
    assert database.run("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_many_who_make_the_table_of_markers_at_once_make_it_once(database: Database) -> None:
    database.run("CREATE TABLE t (id bigint)")
    sink = database.sink("t")["postgresql"] | {"row_fields": {"id": "int64"}}
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(lambda _: PostgresSink(PostgresSinkOptions(**sink)).prepare(), range(8)))
            database.run("DROP TABLE waybill_markers")


def test_markers_that_somebody_deleted_are_noticed(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, name text)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t"))
    run(bare_site)
    database.run("DELETE FROM waybill_markers")
    write(bare_site, {"id": 2, "name": "b"})
    with bare_site.start("run", "a", "--engine", "inline") as process:
        out, err = process.communicate(timeout=240)
    assert process.returncode != 0, out
    assert "marker" in err
    assert database.run("SELECT id FROM t") == [(1,)]


def test_the_probe_says_what_is_missing(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t", mode="upsert"))
    said, [(oid,)] = bare_site.waybill("check", "a.yaml", "--probe"), database.run("SELECT 't'::regclass::oid")
    assert "table waybill_markers will be made" in said
    assert f"is there, oid {oid}" in said
    user = f"u_{database.options['database']}"
    database.run(f"CREATE ROLE {user} LOGIN PASSWORD 'x'", f"GRANT INSERT ON t TO {user}")
    (bare_site.folder / "key").write_text("pw=x\n")
    reference = f"${{file:{bare_site.folder}/key#pw}}"
    apply(bare_site, database.sink("t", mode="upsert", user=user, password=reference))
    with bare_site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == UNREACHABLE
    assert f"{user} lacks SELECT, UPDATE, DELETE on t: GRANT SELECT, UPDATE, DELETE" in said
    assert "GRANT CREATE ON SCHEMA public" in said


def test_a_backfill_into_the_table_says_what_it_does_to_newer_rows(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    write(bare_site, {"id": 1, "name": "old"}, {"id": 1, "name": "new"})
    apply(bare_site, database.sink("t", mode="upsert"))
    run(bare_site)
    [receipt] = bare_site.json("receipts", "a")["receipts"]
    with bare_site.start("backfill", "a", "--range", f"{receipt['partition']}:0-10", "--engine", "inline") as process:
        _, told = process.communicate(timeout=120)
    assert "older records replace newer rows" in " ".join(told.split())
    assert database.run("SELECT name FROM t") == [("old",)]
