"""Which JSON a value of a table becomes, and which field reads that: the rows of the table in docs/tables.md."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from connect_core.rows.json_reading import JsonReader
from connect_core.rows.types import struct_of
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.systems.postgresql.source import PostgresSource
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from tests.postgres_tables import Database

pytestmark = pytest.mark.server

LONG = "123456789012345678901234567890.0123456789"

KEPT: list[tuple[str, str, str, Any]] = [
    # column, value as SQL, JSON, a field that reads it
    ("smallint", "-32768", "-32768", "int16"),
    ("integer", "2147483647", "2147483647", "int32"),
    ("bigint", "9007199254740993", "9007199254740993", "int64"),
    ("bigint", "NULL", "null", "int64"),
    ("numeric(5,2)", "1.5", "1.50", "decimal(5,2)"),
    ("numeric", LONG[3:], LONG[3:], "decimal(38,10)"),
    ("numeric", LONG, LONG, None),
    ("real", "0.1", "0.1", "float32"),
    ("double precision", "0.1", "0.1", "float64"),
    ("double precision", "1.7976931348623157e308", "1.7976931348623157e+308", "float64"),
    ("double precision", "'-0'", "-0", "float64"),
    ("boolean", "true", "true", "bool"),
    ("text", "E'Zoë \"q\" \\\\ \\n\\t'", r'"Zoë \"q\" \\ \n\t"', "text"),
    ("character varying(9)", "'ab '", '"ab "', "text"),
    ("character(4)", "'ab'", '"ab  "', "text"),
    ("mood", "'fine'", '"fine"', "text"),
    ("uuid", "'5F0C2E9A51C84F4F9B1F6B0A3A1B2C3D'", '"5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d"', "text"),
    ("inet", "'10.0.0.0/8'", '"10.0.0.0/8"', "text"),
    ("macaddr", "'08:00:2b:01:02:03'", '"08:00:2b:01:02:03"', "text"),
    ("bit varying", "'101'", '"101"', "text"),
    ("interval", "'1 year 2 days 03:04:05.000006'", '"1 year 2 days 03:04:05.000006"', "text"),
    ("bytea", r"'\x00ff'", '"AP8="', "bytes"),
    ("bytea", "decode(repeat('00', 100), 'hex')", f'"{"A" * 134}=="', "bytes"),
    ("date", "'2026-01-02'", '"2026-01-02"', "date"),
    ("time", "'13:45:10.250001'", '"13:45:10.250001"', "time(us)"),
    ("time with time zone", "'13:45:10+01'", '"13:45:10+01"', "text"),
    ("timestamp", "'2026-01-02 03:04:05.000006'", '"2026-01-02T03:04:05.000006"', "datetime(us)"),
    ("timestamptz", "'2026-01-02 03:04:05+02'", '"2026-01-02T01:04:05+00:00"', "timestamp(us)"),
    ("json", "E'{\"a\":\\n 1.50}'", '{"a":  1.50}', {"a": "decimal(5,2)"}),
    ("jsonb", """'{"a": [1, null]}'""", '{"a": [1, null]}', {"a": ["int64"]}),
    ("integer[]", "'{1,NULL}'", "[1,null]", ["int32"]),
    ("integer[]", "'{{1,2},{3,4}}'", "[[1,2],[3,4]]", [["int32"]]),
    ("text[]", '\'{"a,b",""}\'', '["a,b",""]', ["text"]),
    ("small", "7", "7", "int16"),
]
NO_NUMBERS: list[tuple[str, str, str, str]] = [
    # what a column may hold and a field of its kind does not: a text, which such a field refuses
    ("numeric", "'NaN'", '"NaN"', "decimal(38,10)"),
    ("numeric", "'Infinity'", '"Infinity"', "decimal(38,10)"),
    ("double precision", "'NaN'", '"NaN"', "float64"),
    ("real", "'-Infinity'", '"-Infinity"', "float32"),
    ("date", "'infinity'", '"infinity"', "date"),
    ("date", "'0044-03-15 BC'", '"0044-03-15 BC"', "date"),
    ("timestamptz", "'-infinity'", '"-infinity"', "timestamp(us)"),
    ("time", "'24:00:00'", '"24:00:00"', "time(us)"),
]


@pytest.fixture(scope="module")
def database(postgres_url: str) -> Database:
    made = Database(postgres_url)
    made.run("CREATE TYPE mood AS ENUM ('fine')", "CREATE DOMAIN small AS smallint")
    return made


def source(database: Database) -> PostgresSource:
    return PostgresSource(PostgresSourceOptions.model_validate({**database.options, "table": "t"}))


def value_of(database: Database, column: str, value: str) -> bytes:
    database.run(f"DROP TABLE IF EXISTS t; CREATE TABLE t (id serial PRIMARY KEY, v {column})")
    database.run(f"INSERT INTO t (v) VALUES ({value})")
    [read] = Follower(source(database)).run()
    assert read is not None
    return read


def read_as(value: bytes, field: Any) -> tuple[Any, list[tuple[int, str]]]:
    found = JsonReader(struct_of({"id": "int32", "v": field})).read(pa.array([value], pa.binary()))
    return found.rows.to_pylist(), found.unfit


@pytest.mark.parametrize(("column", "value", "written", "field"), KEPT)
def test_a_value_is_kept(database: Database, column: str, value: str, written: str, field: Any) -> None:
    read = value_of(database, column, value)
    assert read.decode() == f'{{"id":1,"v":{written}}}'
    if field is not None:
        [row], unfit = read_as(read, field)
        assert unfit == []
        assert (row["v"] is None) == (written == "null")


@pytest.mark.parametrize(("column", "value", "written", "field"), NO_NUMBERS)
def test_what_no_field_holds_is_a_text(database: Database, column: str, value: str, written: str, field: str) -> None:
    read = value_of(database, column, value)
    assert read.decode() == f'{{"id":1,"v":{written}}}'
    _, unfit = read_as(read, field)
    assert len(unfit) == 1
    assert read_as(read, "text")[1] == []


@pytest.mark.parametrize(
    ("columns", "values", "key"),
    [
        ("id bigserial PRIMARY KEY, v text", "(1, 'a')", "1"),
        ("id bigserial UNIQUE, v text PRIMARY KEY", "(1, 'a \"b\"')", 'a "b"'),
        ("id bigserial UNIQUE, v bytea PRIMARY KEY", r"(1, '\x00ff')", "AP8="),
        ("id bigserial UNIQUE, v timestamptz PRIMARY KEY", "(1, '2026-01-02 03:04:05Z')", "2026-01-02T03:04:05+00:00"),
        ("id bigserial UNIQUE, v text, PRIMARY KEY (v, id)", "(1, 'a')", '{"v":"a","id":1}'),
        ("id bigserial UNIQUE, v text", "(1, 'a')", None),
    ],
)
def test_the_key_is_the_primary_key(database: Database, columns: str, values: str, key: str | None) -> None:
    database.run(f"DROP TABLE IF EXISTS t; CREATE TABLE t ({columns})")
    database.run(f"INSERT INTO t VALUES {values}", "SELECT setval(pg_get_serial_sequence('t', 'id'), 1)")
    made = PostgresSource(
        PostgresSourceOptions.model_validate({**database.options, "table": "t", "incrementing": "id"})
    )
    table = Partition("public.t")
    [batch] = made.read(range_of(table, made.available_offsets({table: None})[table]), limit())
    assert batch.records.column("key").to_pylist() == [key]


def test_names_are_kept(database: Database) -> None:
    database.run("""DROP TABLE IF EXISTS t; CREATE TABLE t ("a ""b"" %s" serial PRIMARY KEY, "select" text)""")
    database.run("INSERT INTO t VALUES (DEFAULT, 'x')")
    [read] = Follower(source(database)).run()
    assert json.loads(read or b"") == {'a "b" %s': 1, "select": "x"}
