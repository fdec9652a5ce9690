"""A table of MySQL as the target of connectors that people run with the command."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from connect_core.systems.mysql.options import MysqlSinkOptions
from connect_core.systems.mysql.sink import MysqlSink
from tests.mariadb import Database, MariaDB
from tests.mysql import ONLY_MARIADB
from tests.site import Site
from tests.table_connectors import FIELDS, UNREACHABLE, apply, apply_changes, event, run, write

pytestmark = pytest.mark.server

TOLERANT = {"tolerance": "all"}


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


def letters(site: Site) -> list[dict[str, Any]]:
    return site.json("dead-letters", "list", "a", "--last", "999")["dead_letters"][::-1]  # type: ignore[no-any-return]


ODD = "Zoë \"Z\" 'q' '' \\N \\' ,;\n\t\0\x1a % _ 🙂"


def test_each_record_is_one_more_row(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE people (n serial, id bigint, name text, seen timestamp(6) DEFAULT now(6))")
    write(bare_site, {"id": 0, "name": ODD}, {"id": 2, "name": None}, {"id": 1, "name": ""})
    apply(bare_site, database.sink("people"))
    run(bare_site)
    run(bare_site)
    assert database.run("SELECT id, name FROM people ORDER BY n") == [(0, ODD), (2, None), (1, "")]
    assert database.run("SELECT count(*) FROM people WHERE seen IS NULL") == [(0,)]
    assert len(database.run("SELECT * FROM waybill_markers")) == 1


@pytest.mark.parametrize(
    ("table", "fields", "sink", "words"),
    [
        ("id bigint", FIELDS, {}, "The table has no column name"),
        ("id int, name text", FIELDS, {}, "and does not keep int64 exactly"),
        ("id bigint, name set('a','b')", FIELDS, {}, "does not keep text exactly"),
        ("id bigint, name text, born date NOT NULL", FIELDS, {}, "Column born takes no NULL, and records have no such"),
        ("id bigint, name text AS ('x')", FIELDS, {}, "makes the values of column name itself"),
        ("id bigint, at timestamp(6)", {"id": "int64", "at": "timestamp(ns)"}, {}, "does not keep timestamp(ns) exact"),
        ("id bigint, at datetime(3)", {"id": "int64", "at": "datetime(us)"}, {}, "does not keep datetime(us) exactly"),
        ("id bigint, n decimal(10,2)", {"id": "int64", "n": "decimal(10,3)"}, {}, "does not keep decimal(10,3)"),
        ("id bigint, n double(9,2)", {"id": "int64", "n": "float64"}, {}, "does not keep float64 exactly"),
        ("id bigint, n bigint", {"id": "int64", "n": "uint64"}, {}, "does not keep uint64 exactly"),
        ("id bigint, name text) ENGINE = MyISAM #", FIELDS, {}, "The engine of the table is MyISAM, which has no"),
        ("id bigint, name text", FIELDS, {"mode": "upsert"}, "The table has no primary key"),
        ("id bigint, name text", FIELDS, {"mode": "upsert", "key": ["id"]}, "No index of the table says that id"),
        ("n serial PRIMARY KEY, id bigint, name text", FIELDS, {"mode": "upsert"}, "have no field n, which"),
        (
            "id bigint PRIMARY KEY, name varchar(9) UNIQUE",
            FIELDS,
            {"mode": "upsert"},
            "Index name is unique, too: a row could change one that has another key",
        ),
        (
            "id bigint PRIMARY KEY, name varchar(9), UNIQUE few (name(3))",
            FIELDS,
            {"mode": "upsert"},
            "Index few is unique, too",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_planned(
    bare_site: Site, database: Database, table: str, fields: Any, sink: Any, words: str
) -> None:
    database.run(f"CREATE TABLE t ({table}\n)" if "#" not in table else f"CREATE TABLE t ({table}")
    write(bare_site, dict.fromkeys(fields))
    apply(bare_site, database.sink("t", **sink), fields)
    assert words in run(bare_site, code=2)
    assert database.run("SELECT count(*) FROM t") == [(0,)]


def test_a_view_is_refused(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE u (id bigint, name text)", "CREATE VIEW t AS SELECT * FROM u")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t"))
    assert "This is no table" in run(bare_site, code=2)


def test_markers_without_transactions_are_refused(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE t (id bigint, name text)",
        "CREATE TABLE waybill_markers (name varbinary(700) PRIMARY KEY, marker longtext) ENGINE = MyISAM",
    )
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t"))
    assert "The engine of the table of markers is MyISAM" in run(bare_site, code=2)


def test_rows_come_from_a_worker_of_spark(site: Site, database: Database) -> None:
    database.run("CREATE TABLE people (id bigint PRIMARY KEY, name text)")
    write(site, *({"id": number, "name": "Zoë"} for number in range(100)))
    apply(site, database.sink("people", mode="upsert"))
    site.waybill("run", "a")
    assert database.run("SELECT count(*), min(name), max(id) FROM people") == [(100, "Zoë", 99)]


def test_a_row_that_the_table_refuses_is_a_dead_letter_and_no_other(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE places (id bigint PRIMARY KEY)",
        *(f"INSERT INTO places VALUES ({number})" for number in range(40) if number != 14),
        "CREATE TABLE t (id bigint PRIMARY KEY REFERENCES places (id), name varchar(3) CHARACTER SET latin1,"
        " CONSTRAINT unlucky CHECK (id <> 13))",
        "CREATE TRIGGER raises BEFORE INSERT ON t FOR EACH ROW IF NEW.id = 16 THEN SIGNAL SQLSTATE '45000'"
        " SET MESSAGE_TEXT = 'secret-value'; END IF",
    )
    rows = [{"id": number, "name": "ok"} for number in range(40)]
    rows[20]["name"] = "secret-value"
    rows[25]["name"] = "ab  "  # blanks behind the end are cut, and the server says so in a note
    rows[30]["name"] = "\u4e2d"  # the column's character set has none
    write(bare_site, *rows, {"id": 7, "name": "no"}, {"id": None, "name": "x"})
    apply(bare_site, database.sink("t"), errors=TOLERANT)
    run(bare_site)
    left_out = (13, 14, 16, 20, 25, 30)
    assert [one for (one,) in database.run("SELECT id FROM t ORDER BY id")] == [
        number for number in range(40) if number not in left_out
    ]
    assert [letter["kind"] for letter in letters(bare_site)] == [
        "CheckViolation",
        "ForeignKeyViolation",
        "RaisedByTrigger",
        *["TooLong"] * 2,
        "WrongValue",
        "DuplicateKey",
        "NullRefused",
    ]
    said = json.dumps(letters(bare_site))
    assert "Constraint unlucky forbids the row" in said
    assert "Key PRIMARY does not take its value" in said
    assert "secret-value" not in bare_site.waybill("dead-letters", "list", "a")


CHANGED: list[tuple[str, Any, Any]] = [
    # a column, a field, and a value that the server would keep as another one
    ("char(5)", "text", "ab "),
    ("binary(4)", "bytes", "AP8="),
    ("enum('1','10','x')", "text", "2"),  # the second one
    ("enum('a')", "text", "A"),
    ("int unsigned", "int32", -1),
    ("tinyint", "bool", None),
    ("timestamp(6) NULL", "timestamp(us)", "2050-01-01T00:00:00Z"),
    pytest.param("uuid", "text", "no", marks=ONLY_MARIADB),
    pytest.param("inet4", "text", "10.0.0.300", marks=ONLY_MARIADB),
    ("tinytext", "text", "x" * 256),
    ("tinyblob", "bytes", "A" * 344),
    ("longtext CHECK (json_valid(v))", "text", "{"),
]


@pytest.mark.parametrize(("column", "field", "value"), CHANGED)
def test_a_value_that_would_be_changed_is_refused(
    bare_site: Site, database: Database, column: str, field: Any, value: Any
) -> None:
    null = value is None
    database.run(f"CREATE TABLE t (id bigint, v {column}{' NOT NULL DEFAULT 7' if null else ''})")
    write(bare_site, {"id": 1, "v": value})
    apply(bare_site, database.sink("t"), {"id": "int64", "v": field}, errors=TOLERANT)
    run(bare_site)
    assert database.run("SELECT * FROM t") == []
    [letter] = letters(bare_site)
    assert letter["stage"] == "write"


def test_a_number_of_zero_is_kept_where_the_column_counts(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint AUTO_INCREMENT PRIMARY KEY, name text)")
    write(bare_site, {"id": 0, "name": "a"}, {"id": None, "name": "b"})
    apply(bare_site, database.sink("t"), errors=TOLERANT)
    run(bare_site)
    assert database.run("SELECT * FROM t") == [(0, "a")]
    assert [letter["kind"] for letter in letters(bare_site)] == ["NullRefused"]


def test_a_moment_without_a_value_is_not_now(bare_site: Site, database: Database) -> None:
    """What a TIMESTAMP column makes of NULL where explicit_defaults_for_timestamp is off."""
    with database.connected() as session, session.cursor() as making:
        making.execute("SET explicit_defaults_for_timestamp = 0")
        making.execute("CREATE TABLE t (id bigint, at timestamp(6))")
    write(bare_site, {"id": 1, "at": None})
    apply(bare_site, database.sink("t"), {"id": "int64", "at": "timestamp(us)"}, errors=TOLERANT)
    run(bare_site)
    assert database.run("SELECT * FROM t") == []
    assert [letter["kind"] for letter in letters(bare_site)] == ["NullRefused"]


def test_a_row_that_no_statement_holds_is_a_dead_letter(bare_site: Site, mariadb: MariaDB, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, name longtext)", "SET GLOBAL max_allowed_packet = 1048576")
    try:
        long, longer = "x" * 1_000_000, "x" * 1_100_000
        write(bare_site, *({"id": n, "name": one} for n, one in enumerate([long, longer, long, "y"])))
        apply(bare_site, database.sink("t"), errors=TOLERANT)
        run(bare_site)
    finally:
        database.run("SET GLOBAL max_allowed_packet = 16777216")
    assert [one for (one,) in database.run("SELECT id FROM t ORDER BY id")] == [0, 2, 3]
    assert [letter["kind"] for letter in letters(bare_site)] == ["TooLong"]


def test_two_spellings_that_the_column_takes_for_one_key_do_not_meet(bare_site: Site, database: Database) -> None:
    """`a`, `A` and `a ` are one key to the usual collation: the second would have gone into the row of the first."""
    database.run("CREATE TABLE t (name varchar(9) COLLATE utf8mb4_general_ci PRIMARY KEY, v bigint)")
    database.run("INSERT INTO t VALUES ('old', 0)")
    rows = [("a", 1), ("A", 2), ("a ", 3), ("b", 4), ("OLD", 5), ("b", 6)]
    write(bare_site, *({"name": name, "v": v} for name, v in rows))
    apply(bare_site, database.sink("t", mode="upsert"), {"name": "text", "v": "int64"}, errors=TOLERANT)
    run(bare_site)
    assert database.run("SELECT * FROM t ORDER BY name") == [("a", 1), ("b", 6), ("old", 0)]
    assert [letter["kind"] for letter in letters(bare_site)] == ["KeyTaken"] * 3


def test_a_delete_takes_no_other_spelling_along(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (name varchar(9) PRIMARY KEY, v bigint)", "INSERT INTO t VALUES ('a', 1), ('b', 2)")
    write(bare_site, event("d", {"name": "A", "v": 1}, None), event("d", {"name": "b", "v": 1}, None))
    apply_changes(bare_site, database.sink("t", mode="upsert"), {"name": "text", "v": "int64"})
    run(bare_site)
    assert database.run("SELECT name FROM t") == [("a",)]


def test_a_number_that_the_table_gives_is_no_second_key(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE t (n bigint AUTO_INCREMENT PRIMARY KEY, id bigint NOT NULL UNIQUE, name text, place text)"
    )
    database.run("INSERT INTO t (id, name, place) VALUES (1, 'old', 'here')")
    write(bare_site, {"id": 1, "name": "new"}, {"id": 2, "name": "x"}, {"id": 2, "name": "y"})
    apply(bare_site, database.sink("t", mode="upsert", key=["id"]))
    run(bare_site)
    assert database.run("SELECT id, name, place FROM t ORDER BY id") == [(1, "new", "here"), (2, "y", None)]


def test_a_record_without_its_key_is_a_dead_letter(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint UNIQUE, name text)")
    write(bare_site, {"id": None, "name": "a"}, {"id": None, "name": "b"}, {"id": 1, "name": "c"})
    apply(bare_site, database.sink("t", mode="upsert", key=["id"]), errors=TOLERANT)
    run(bare_site)
    assert database.run("SELECT id, name FROM t") == [(1, "c")]
    assert [one["kind"] for one in letters(bare_site)] == ["NoKey", "NoKey"]


def test_changes_are_done_to_the_rows(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, name text, place varchar(9) DEFAULT 'north', PRIMARY KEY (id))")
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
    apply_changes(bare_site, database.sink("t", mode="upsert"))
    run(bare_site)
    now = "SELECT id, name, place FROM t ORDER BY id"
    assert database.run(now) == [(1, "back", "north"), (2, "changed", "north")]
    write(bare_site, event("d", two, None), event("u", None, one | {"name": "last"}))
    run(bare_site)
    assert database.run(now) == [(1, "last", "north")]


def test_an_update_that_changes_the_key_takes_the_old_row_with_it(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, name varchar(5) NOT NULL)")
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


def test_a_key_of_several_columns(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (a varchar(9), b varbinary(9), c datetime(3), v bigint, PRIMARY KEY (a, b, c))")
    key = {"a": "x'", "b": "AP8=", "c": 1767323045250}
    fields = {"a": "text", "b": "bytes", "c": "datetime(ms)", "v": "int64"}
    write(bare_site, *(event("c", None, key | {"v": v} | more) for v, more in enumerate([{}, {"b": "AA=="}, {}])))
    write(bare_site, event("d", key | {"b": "AA==", "v": 1}, None))
    apply_changes(bare_site, database.sink("t", mode="upsert"), fields)
    run(bare_site)
    assert database.run("SELECT v FROM t") == [(2,)]


def test_many_changes_in_several_statements(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    write(bare_site, *(event("c", None, {"id": n, "name": "x" * 300}) for n in range(5_000)))
    write(bare_site, *(event("d", {"id": n, "name": "x"}, None) for n in range(0, 5_000, 2)))
    apply_changes(bare_site, database.sink("t", mode="upsert"))
    run(bare_site)
    assert database.run("SELECT count(*), min(id), sum(id % 2) FROM t") == [(2500, 1, 2500)]


def test_a_table_that_is_away_is_waited_for(bare_site: Site, database: Database) -> None:
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t"))
    assert "There is no such table" in run(bare_site, code=UNREACHABLE)
    database.run("CREATE TABLE t (id bigint, name text)")
    run(bare_site)
    database.run("RENAME TABLE t TO elsewhere")
    write(bare_site, {"id": 2, "name": "b"})
    run(bare_site, code=UNREACHABLE)
    database.run("RENAME TABLE elsewhere TO t")
    run(bare_site)
    assert database.run("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_lock_that_another_session_holds_ends_the_run(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, name text)", "INSERT INTO t VALUES (1, 'a')")
    write(bare_site, {"id": 0, "name": "b"}, {"id": 1, "name": "b"})
    apply(bare_site, database.sink("t", mode="upsert", lock_timeout_s=1))
    with database.connected() as session, session.cursor() as holding:
        holding.execute("BEGIN")
        holding.execute("SELECT * FROM t WHERE id = 1 FOR UPDATE")
        assert "held a lock for longer than lock_timeout_s" in run(bare_site, code=UNREACHABLE)
    assert database.run("SELECT * FROM t") == [(1, "a")]
    run(bare_site)
    assert database.run("SELECT name FROM t") == [("b",), ("b",)]


def test_a_server_that_takes_no_writes_is_waited_for(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    user = f"u{database.name[-8:]}"
    database.run(
        f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'x'", f"GRANT ALL ON {database.name}.* TO {user}@'127.0.0.1'"
    )
    write(bare_site, {"id": 0, "name": "b"})
    (bare_site.folder / "key").write_text("pw=x\n")
    apply(bare_site, database.sink("t", user=user, password=f"${{file:{bare_site.folder}/key#pw}}"))
    run(bare_site)
    write(bare_site, {"id": 1, "name": "b"})
    database.run("SET GLOBAL read_only = 1")
    try:
        assert "takes no writes" in run(bare_site, code=UNREACHABLE)
    finally:
        database.run("SET GLOBAL read_only = 0")
    run(bare_site)
    assert database.run("SELECT count(*) FROM t") == [(2,)]


def test_many_who_make_the_table_of_markers_at_once_make_it_once(database: Database) -> None:
    sink = database.sink("t", create_table=True)["mysql"] | {"row_fields": {"id": "int64"}}
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(lambda _: MysqlSink(MysqlSinkOptions(**sink)).prepare(), range(8)))
            database.run("DROP TABLE waybill_markers, t")


def test_markers_that_somebody_deleted_are_noticed(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, name text)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t"))
    run(bare_site)
    database.run("DELETE FROM waybill_markers")
    write(bare_site, {"id": 2, "name": "b"})
    assert "marker" in run(bare_site, code=5)
    assert database.run("SELECT id FROM t") == [(1,)]


def test_the_probe_says_what_is_missing(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    write(bare_site, {"id": 1, "name": "a"})
    apply(bare_site, database.sink("t", mode="upsert"))
    said = bare_site.waybill("check", "a.yaml", "--probe")
    assert "table waybill_markers will be made" in said
    assert "table t is there, engine InnoDB" in said
    assert "keeps each field exactly" in said
    user = f"u{database.name[-8:]}"
    database.run(
        f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'x'", f"GRANT INSERT ON {database.name}.t TO {user}@'127.0.0.1'"
    )
    (bare_site.folder / "key").write_text("pw=x\n")
    reference = f"${{file:{bare_site.folder}/key#pw}}"
    apply(bare_site, database.sink("t", mode="upsert", user=user, password=reference))
    with bare_site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == UNREACHABLE
    assert f"{user} lacks SELECT, UPDATE, DELETE on t: GRANT SELECT, UPDATE, DELETE" in said
    assert f"GRANT CREATE ON `{database.name}`" in said
    assert database.run("SELECT * FROM t") == []


def test_a_wrong_password_is_an_error_of_the_document(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE t (id bigint, name text)")
    write(bare_site, {"id": 1, "name": "a"})
    (bare_site.folder / "key").write_text("pw=no\n")
    apply(bare_site, database.sink("t", password=f"${{file:{bare_site.folder}/key#pw}}"))
    assert "The login was refused" in run(bare_site, code=2)
