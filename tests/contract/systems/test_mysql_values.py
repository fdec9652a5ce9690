"""Which JSON a value of a table becomes, and which field reads that: the rows of the table in docs/mysql.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from connect_core.rows.json_reading import JsonReader
from connect_core.rows.types import struct_of
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.systems.mysql.source import MysqlSource
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from tests.mariadb import Database, MariaDB
from tests.mysql import ONLY_MARIADB

pytestmark = pytest.mark.server

UUID = "5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d"
LONG = "12345678901234567890123456789012345.012345678901234567890123456789"

KEPT: list[Any] = [
    # column, value as SQL, JSON, a field that reads it
    ("tinyint", "-128", "-128", "int8"),
    ("tinyint(1)", "1", "1", "int8"),
    ("smallint", "-32768", "-32768", "int16"),
    ("mediumint unsigned", "16777215", "16777215", "uint32"),
    ("int(9) zerofill", "7", "7", "uint32"),
    ("bigint", "-9223372036854775808", "-9223372036854775808", "int64"),
    ("bigint unsigned", "18446744073709551615", "18446744073709551615", "uint64"),
    ("bigint", "NULL", "null", "int64"),
    ("decimal(5,2)", "1.5", "1.50", "decimal(5,2)"),
    ("decimal(8,2) zerofill", "1.5", "1.50", "decimal(8,2)"),
    ("decimal(38,10)", "-0.0000000001", "-0.0000000001", "decimal(38,10)"),
    ("decimal(65,30)", LONG, LONG, None),
    ("float", "0.1", "0.1", "float32"),
    ("float", "16777215", "1.6777215e+07", "float32"),
    ("float(7,3)", "1234.567", "1234.567", "float32"),
    ("double", "0.1", "0.1", "float64"),
    ("double", "1.7976931348623157e308", "1.7976931348623157e+308", "float64"),
    ("double", "5e-324", "5e-324", "float64"),
    ("year", "2026", "2026", "uint16"),
    ("year", "'0000'", "0", "uint16"),
    ("bit(1)", "b'1'", "1", "uint8"),
    ("bit(64)", "18446744073709551615", "18446744073709551615", "uint64"),
    ("text", "'Zoë \"q\" \\\\ \\n\\t\\0 🙂'", '"Zoë \\"q\\" \\\\ \\n\\t\\u0000 🙂"', "text"),
    ("varchar(9)", "'ab '", '"ab "', "text"),
    ("varchar(9) CHARACTER SET latin1", "'é€'", '"é€"', "text"),
    ("varchar(9) CHARACTER SET gbk", "'中文'", '"中文"', "text"),
    ("varchar(9) CHARACTER SET utf16", "'é🙂'", '"é🙂"', "text"),
    ("char(4)", "'ab'", '"ab"', "text"),
    ("longtext", "'{}'", '"{}"', "text"),
    ("enum('fine','a''b')", "'a''b'", '"a\'b"', "text"),
    ("set('a','b','c')", "'c,a'", '"a,c"', "text"),
    pytest.param("uuid", "'5F0C2E9A51C84F4F9B1F6B0A3A1B2C3D'", f'"{UUID}"', "text", marks=ONLY_MARIADB),
    pytest.param("inet4", "'10.0.0.1'", '"10.0.0.1"', "text", marks=ONLY_MARIADB),
    pytest.param("inet6", "'2001:db8::1'", '"2001:db8::1"', "text", marks=ONLY_MARIADB),
    ("varbinary(9)", "x'00ff'", '"AP8="', "bytes"),
    ("binary(3)", "x'61'", '"YQAA"', "bytes"),
    ("longblob", "repeat(x'00', 100)", f'"{"A" * 134}=="', "bytes"),
    ("date", "'2026-01-02'", '"2026-01-02"', "date"),
    ("time(6)", "'13:45:10.250001'", '"13:45:10.250001"', "time(us)"),
    ("datetime(6)", "'2026-01-02 03:04:05.000006'", '"2026-01-02T03:04:05.000006"', "datetime(us)"),
    ("datetime", "'2026-01-02 03:04:05'", '"2026-01-02T03:04:05"', "datetime(s)"),
    ("timestamp(3) NULL", "'2026-01-02 03:04:05.25'", '"2026-01-02T03:04:05.250+00:00"', "timestamp(ms)"),
    pytest.param("json", "'{\"a\":\\n 1.50}'", '{"a":  1.50}', {"a": "decimal(5,2)"}, marks=ONLY_MARIADB),
    ("json", "'[1, null]'", "[1, null]", ["int64"]),
    ("int AS (id + 1) STORED", "DEFAULT", "2", "int32"),
]
NO_NUMBERS: list[tuple[str, str, str, str]] = [
    # what a column may hold and a field of its kind does not: a text, which such a field refuses
    ("date", "'0000-00-00'", '"0000-00-00"', "date"),
    ("date", "'2026-00-10'", '"2026-00-10"', "date"),
    ("datetime", "'0000-00-00'", '"0000-00-00T00:00:00"', "datetime(s)"),
    ("timestamp NULL", "'0000-00-00'", '"0000-00-00T00:00:00+00:00"', "timestamp(s)"),
    ("time", "'-838:59:59'", '"-838:59:59"', "time(s)"),
    ("time", "'24:00:00'", '"24:00:00"', "time(s)"),
]


@pytest.fixture(scope="module")
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


def source(database: Database, **more: Any) -> MysqlSource:
    return MysqlSource(MysqlSourceOptions.model_validate({**database.options, "table": "t", **more}))


def insert(database: Database, *statements: str) -> None:
    with database.connected() as session, session.cursor() as writing:
        writing.execute("SET sql_mode = '', time_zone = '+00:00'")
        for statement in ("DROP TABLE IF EXISTS t", *statements):
            writing.execute(statement)


def value_of(database: Database, column: str, value: str) -> bytes:
    counted = "" if "AS (" in column else "AUTO_INCREMENT"
    insert(
        database,
        f"CREATE TABLE t (id int {counted} PRIMARY KEY, v {column})",
        f"INSERT INTO t (id, v) VALUES (1, {value})",
    )
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
        ("id int AUTO_INCREMENT PRIMARY KEY, v text", "(1, 'a')", "1"),
        ("id int AUTO_INCREMENT UNIQUE, v varchar(9) PRIMARY KEY", "(1, 'a \"b\"')", 'a "b"'),
        ("id int AUTO_INCREMENT UNIQUE, v varbinary(9) PRIMARY KEY", "(1, x'00ff')", "AP8="),
        ("id int AUTO_INCREMENT UNIQUE, v datetime PRIMARY KEY", "(1, '2026-01-02 03:04:05')", "2026-01-02T03:04:05"),
        ("id int AUTO_INCREMENT UNIQUE, v varchar(9), PRIMARY KEY (v, id)", "(1, 'a')", '{"v":"a","id":1}'),
        ("id int NOT NULL UNIQUE, v text", "(1, 'a')", None),
    ],
)
def test_the_key_is_the_primary_key(database: Database, columns: str, values: str, key: str | None) -> None:
    insert(database, f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {values}")
    made, table = source(database, incrementing="id"), Partition(f"{database.name}.t")
    [batch] = made.read(range_of(table, made.available_offsets({table: None})[table]), limit())
    assert batch.records.column("key").to_pylist() == [key]


def test_names_are_kept(database: Database) -> None:
    insert(database, 'CREATE TABLE t (`a ``b"` int PRIMARY KEY, `select` text)', "INSERT INTO t VALUES (1, 'x')")
    [read] = Follower(source(database)).run()
    assert json.loads(read or b"") == {'a `b"': 1, "select": "x"}


def test_each_line_of_the_page_is_one_of_these() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "mysql.md").read_text()
    lines = page.partition("| column | in JSON")[2].partition("\n\n")[0].splitlines()[2:]
    assert lines
    cases = [getattr(one, "values", one) for one in KEPT]
    tested = {column.partition("(")[0].partition(" ")[0] for column, *_ in cases}
    for line in lines:
        columns = re.findall(r"`([^`]+)`", line.split("|")[1])
        assert {one.partition("(")[0].partition(" ")[0] for one in columns} <= tested, line
