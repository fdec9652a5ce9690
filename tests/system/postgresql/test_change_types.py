"""What an event has of each type of column, and what a table gets of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

KINDS: list[tuple[str, Any, list[tuple[str, Any]]]] = [
    # column, the field that is declared (None: the page says that it is a text alone), values as SQL and the event have
    ("boolean", "bool", [("true", True), ("NULL", None)]),
    ("smallint", "int16", [("-32768", -32768)]),
    ("integer", "int32", [("2147483647", 2147483647)]),
    ("bigint", "int64", [("-9223372036854775808", -(2**63)), ("9007199254740993", 9007199254740993)]),
    ("real", "float32", [("1.5", 1.5), ("1e20", 1e20), ("'NaN'", "NaN")]),
    ("double precision", "float64", [("0.1", 0.1), ("'-Infinity'", "-Infinity"), ("-0.0::float8", 0.0)]),
    ("numeric(38,10)", "decimal(38,10)", [("-1.28", "/QUPgAA="), ("0", "AA=="), ("0.0000000128", "AIA=")]),
    ("numeric(5,0)", "decimal(5,0)", [("-128", "gA=="), ("99999", "AYaf")]),
    ("numeric", None, [("'123456789012345678901234567890.10'", "123456789012345678901234567890.10")]),
    ("text", "text", [("E'a\\n\"\\\\ß'", 'a\n"\\ß'), ("''", "")]),
    ("character varying(4)", "text", [("'ab  '", "ab  ")]),
    ("character(4)", None, [("'ab'", "ab  ")]),
    ("uuid", "text", [("'5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d'", "5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d")]),
    ("json", "text", [("'{\"a\" : 1.0}'", '{"a" : 1.0}')]),
    ("jsonb", "text", [("'{\"a\": [1, null]}'", '{"a": [1, null]}')]),
    ("mood", "text", [("'fine'", "fine")]),
    ("inet", "text", [("'10.0.0.1/8'", "10.0.0.1/8")]),
    ("interval", None, [("'1 mon -2 days 30:00:00.5'", "1 mon -2 days +30:00:00.5")]),
    ("bit(3)", None, [("B'101'", "101")]),
    ("money", None, [("'1.50'", "$1.50")]),
    ("int4range", None, [("'[1,5)'", "[1,5)")]),
    ("point", None, [("'(1,2)'", "(1,2)")]),
    ("pair", None, [("ROW(1, 'a b')", '(1,"a b")')]),
    ("bytea", "bytes", [(r"'\x00ff'", "AP8="), ("''", "")]),
    ("date", "date", [("'2026-01-31'", 20484), ("'1500-02-28'", -171606), ("'0001-01-01'", -719162)]),
    ("time", "time(us)", [("'13:45:10.250001'", 49510250001), ("'00:00'", 0)]),
    ("time(3)", "time(ms)", [("'13:45:10.25'", 49510250)]),
    (
        "timestamp",
        "datetime(us)",
        [("'2026-01-31 10:00:00.25'", 1769853600250000), ("'1969-12-31 23:59:59'", -1000000)],
    ),
    ("timestamp(3)", "datetime(ms)", [("'2026-01-31 10:00:00.25'", 1769853600250)]),
    ("timestamptz", "timestamp(us)", [("'2026-01-31 10:00:00.25+01'", "2026-01-31T09:00:00.25Z")]),
    ("timetz", None, [("'01:30:00.5+02'", "23:30:00.5Z")]),
    ("price", None, [("12.50", "12.50")]),
    ("small", "int32", [("7", 7)]),
    ("bigint[]", ["int64"], [("'{1,NULL}'", [1, None]), ("'{}'", [])]),
    ("text[]", ["text"], [("ARRAY['a\"b\\', 'NULL', NULL, '{,}', '']", ['a"b\\', "NULL", None, "{,}", ""])]),
    ("mood[]", None, [("'{fine,bad}'", ["fine", "bad"])]),
    ("integer[][]", None, [("'{{1,2},{3,NULL}}'", [[1, 2], [3, None]])]),
    ("date[]", ["date"], [("'{2026-01-31}'", [20484])]),
    ("boolean[]", ["bool"], [("'{t,f}'", [True, False])]),
]


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    made.run(
        "CREATE TYPE mood AS ENUM ('fine', 'bad')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN price AS numeric(10,2)",
        "CREATE DOMAIN small AS integer CHECK (value < 10)",
    )
    yield made
    made.drop_slots()


def test_each_type_in_an_event(bare_site: Site, database: Database) -> None:
    made(database, KINDS)
    bare_site.apply("a", {"source": database.changes("kinds"), "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    filled(database, KINDS)
    run(bare_site)
    rows = [json.loads(line)["after"] for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    for number, (column, _, values) in enumerate(KINDS):
        there = [row[f"c{number}"] for row in rows]
        assert there == [value for _, value in values] + [None] * (len(rows) - len(values)), column


@pytest.mark.parametrize("schemas", [True, False])
def test_each_type_from_table_to_table(bare_site: Site, database: Database, schemas: bool) -> None:
    """Numbers that JSON does not have are texts in events, which no reader takes."""
    kinds = [
        (column, field, [(sql, value) for sql, value in values if value not in ("NaN", "-Infinity")])
        for column, field, values in KINDS
        if field is not None
    ]
    made(database, kinds)
    database.run("CREATE TABLE copies (LIKE kinds INCLUDING INDEXES)")
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
        asked = f"SELECT number, c{number}::text FROM {{}} ORDER BY number"
        assert database.run(asked.format("copies")) == database.run(asked.format("kinds")), column


def test_each_line_of_the_page_is_one_of_these() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "change-streams.md").read_text()
    lines = page.partition("| column |")[2].partition("\n\n")[0].splitlines()[2:]
    tested = {_plain(column) for column, _, _ in KINDS}
    assert len(lines) > 10
    for line in lines:
        columns = re.findall(r"`([^`]+)`", line.split("|")[1])
        assert not columns or {_plain(one) for one in columns} & tested, line


def _plain(column: str) -> str:
    return column.partition("(")[0].partition(" ")[0]


def made(database: Database, kinds: list[tuple[str, Any, list[tuple[str, Any]]]]) -> None:
    columns = ", ".join(f"c{number} {column}" for number, (column, _, _) in enumerate(kinds))
    database.run(f"CREATE TABLE kinds (number integer PRIMARY KEY, {columns})")


def filled(database: Database, kinds: list[tuple[str, Any, list[tuple[str, Any]]]]) -> None:
    for row in range(max(len(values) for *_, values in kinds)):
        written = [values[row][0] if row < len(values) else "NULL" for *_, values in kinds]
        database.run(f"INSERT INTO kinds VALUES ({row}, {', '.join(written)})")
