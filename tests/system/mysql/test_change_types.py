"""What an event has of each type of column, and what a table gets of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from connect_core.systems.mysql.binlog.charsets import decoder
from tests.mariadb import Database, MariaDB
from tests.mysql import MySQL
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

Kind = tuple[str, Any, list[tuple[str, Any]]]
KINDS: list[Kind] = [
    # column, the field that is declared (None: the page says what there is), values as SQL and the event have them
    ("tinyint", "int16", [("-128", -128)]),
    ("boolean", "int16", [("true", 1)]),
    ("smallint unsigned", "int32", [("65535", 65535)]),
    ("mediumint", None, [("-8388608", -8388608)]),
    ("int", "int32", [("-2147483648", -(2**31))]),
    ("int unsigned", "int64", [("4294967295", 2**32 - 1)]),
    ("bigint", "int64", [("-9223372036854775808", -(2**63)), ("9007199254740993", 9007199254740993)]),
    ("bigint unsigned", "int64", [("9223372036854775807", 2**63 - 1)]),
    ("float", "float32", [("1.5", 1.5), ("1.1", 1.1)]),
    ("double", "float64", [("0.1", 0.1), ("-2.5e300", -2.5e300)]),
    ("decimal(38,10)", "decimal(38,10)", [("-1.28", "/QUPgAA="), ("0", "AA=="), ("0.0000000128", "AIA=")]),
    ("decimal(5,0)", "decimal(5,0)", [("-128", "gA=="), ("99999", "AYaf")]),
    ("decimal(65,30)", None, [("-0.000000000000000000000000000001", "/w=="), ("1e-30", "AQ==")]),
    ("char(4)", "text", [("'ab'", "ab")]),
    ("varchar(300) CHARACTER SET latin1", "text", [("'Zoë €'", "Zoë €")]),
    ("text", "text", [("'a\\n\"\\\\ß😀'", 'a\n"\\ß😀'), ("''", "")]),
    ("char(5) CHARACTER SET ucs2", "text", [("'é'", "é")]),
    ("enum('fine','schön')", "text", [("'schön'", "schön")]),
    ("enum('fine','schön') CHARACTER SET latin1", "text", [("'schön'", "schön")]),
    ("set('a','b','c')", None, [("'c,a'", "a,c"), ("''", "")]),
    ("binary(3)", "bytes", [("x'01'", "AQAA")]),
    ("varbinary(300)", "bytes", [("x'00ff00'", "AP8A")]),
    ("blob", "bytes", [("x'00ff'", "AP8="), ("''", "")]),
    ("uuid", None, [("'123e4567-e89b-12d3-a456-426655440000'", "Ej5FZ+ibEtOkVkJmVUQAAA==")]),
    ("inet6", None, [("'::1'", "AAAAAAAAAAAAAAAAAAAAAQ==")]),
    ("bit(1)", "bool", [("1", True), ("0", False)]),
    ("bit(12)", None, [("2561", "AQo=")]),
    ("date", "date", [("'2026-01-31'", 20484), ("'1500-02-28'", -171606)]),
    ("time", None, [("'-838:59:59'", -3020399000000), ("'13:45:10'", 49510000000)]),
    ("time(2)", None, [("'-01:02:03.45'", -3723450000), ("'-00:00:00.01'", -10000)]),
    ("time(6)", "time(us)", [("'13:45:10.250001'", 49510250001)]),
    ("time(5)", None, [("'-00:00:00.00001'", -10)]),
    ("datetime", None, [("'2026-01-31 10:00:00'", 1769853600000)]),
    ("datetime(3)", "datetime(ms)", [("'1969-12-31 23:59:59.999'", -1)]),
    ("datetime(6)", "datetime(us)", [("'2026-01-31 10:00:00.25'", 1769853600250000)]),
    ("timestamp(6) NULL", "timestamp(us)", [("'2026-01-31 10:00:00.25'", "2026-01-31T10:00:00.25Z")]),
    ("timestamp(2) NULL", None, [("'2026-01-31 10:00:00.25'", "2026-01-31T10:00:00.25Z")]),
    ("year", None, [("2026", 2026), ("1901", 1901)]),
    ("json", "text", [("'{\"a\": 1.0}'", '{"a": 1.0}')]),
    ("point", None, [("ST_GeomFromText('POINT(1 2)')", {"wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None})]),
]


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


def test_each_type_in_an_event(bare_site: Site, database: Database) -> None:
    kinds = of_server(database, KINDS)
    made(database, kinds)
    bare_site.apply("a", {"source": database.changes("kinds"), "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    filled(database, kinds)
    run(bare_site)
    rows = [json.loads(line)["after"] for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    for number, (column, _, values) in enumerate(kinds):
        there = [row[f"c{number}"] for row in rows]
        assert there == [value for _, value in values] + [None] * (len(rows) - len(values)), column


@pytest.mark.parametrize("schemas", [True, False])
def test_each_type_from_table_to_table(bare_site: Site, database: Database, schemas: bool) -> None:
    kinds = [one for one in of_server(database, KINDS) if one[1] is not None]
    made(database, kinds)
    made(database, [(_WIDER.get(column, column), field, values) for column, field, values in kinds], "copies")
    fields = {"number": "int32", **{f"c{number}": field for number, (_, field, _) in enumerate(kinds)}}
    bare_site.apply(
        "a",
        {
            "source": database.changes("kinds", schemas=schemas),
            "sink": database.sink("copies", mode="upsert"),
            "parse": {"format": "debezium", "fields": fields},
        },
    )
    run(bare_site)
    filled(database, kinds)
    run(bare_site)
    for number, (column, _, _) in enumerate(kinds):
        asked = f"SELECT number, c{number} FROM {{}} ORDER BY number"
        assert database.run(asked.format("copies")) == database.run(asked.format("kinds")), column


REJECTED = [
    ("date", "'0000-00-00'"),
    ("datetime", "'2026-02-00 00:00:00'"),
    ("bigint unsigned", "18446744073709551615"),
]


@pytest.mark.parametrize(("column", "value"), REJECTED)
def test_what_an_event_cannot_have_is_rejected(bare_site: Site, database: Database, column: str, value: str) -> None:
    made(database, [(column, None, [])])
    bare_site.apply("a", {"source": database.changes("kinds"), "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    database.run("SET sql_mode = ''", f"INSERT INTO kinds VALUES (1, {value})")
    assert "c0" in run(bare_site, code=5)


@pytest.mark.parametrize("charset", ["latin1", "latin2", "latin5", "ascii", "cp1250", "cp1251", "koi8r"])
def test_characters_are_those_of_the_server(database: Database, charset: str) -> None:
    decoded = decoder(charset)
    assert decoded
    codes = range(128 if charset == "ascii" else 256)
    asked = ", ".join(f"CONVERT(CONVERT(x'{one:02x}' USING {charset}) USING utf8mb4)" for one in codes)
    [found] = database.run(f"SELECT {asked}")
    for one, theirs in zip(codes, found, strict=True):
        try:
            ours = decoded(bytes((one,)))
        except ValueError:
            continue
        assert ours == theirs, f"{charset} {one:02x}"


def test_each_line_of_the_page_is_one_of_these() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "mysql-changes.md").read_text()
    lines = page.partition("| column |")[2].partition("\n\n")[0].splitlines()[2:]
    tested = {_plain(column) for column, _, _ in KINDS}
    assert len(lines) > 10
    for line in lines:
        columns = re.findall(r"`([^`]+)`", line.split("|")[1])
        assert {_plain(one) for one in columns} & tested, line


_WIDER = {
    **dict.fromkeys(("tinyint", "boolean"), "smallint"),
    "smallint unsigned": "int",
    **dict.fromkeys(("int unsigned", "bigint unsigned"), "bigint"),
}
"""Columns that keep the numbers of an event."""


def _plain(column: str) -> str:
    return column.partition("(")[0].partition(" ")[0]


def of_server(database: Database, kinds: list[Kind]) -> list[Kind]:
    """Those that the server has."""
    lacks = ("uuid", "inet6") if isinstance(database.server, MySQL) else ()
    return [one for one in kinds if one[0] not in lacks]


def made(database: Database, kinds: list[Kind], table: str = "kinds") -> None:
    columns = ", ".join(f"c{number} {column}" for number, (column, _, _) in enumerate(kinds))
    database.run(f"CREATE TABLE {table} (number int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")


def filled(database: Database, kinds: list[Kind], columns: str = "") -> None:
    into = f"kinds ({columns})" if columns else "kinds"
    for row in range(max(len(values) for *_, values in kinds)):
        written = [values[row][0] if row < len(values) else "NULL" for *_, values in kinds]
        database.run("SET time_zone = '+00:00'", f"INSERT INTO {into} VALUES ({row}, {', '.join(written)})")
