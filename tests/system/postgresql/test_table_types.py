"""What a table keeps of each type of field, as its own driver reads it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import apply, run, write

pytestmark = pytest.mark.server

LONG, DAY = "1234567890123456789012345678.0123456789", "2026-01-31"

TYPES: list[tuple[Any, str, str, list[Any]]] = [
    # field, column, what a query makes of it, values as JSON has them and as the query gives them
    ("bool", "boolean", "{}", [(True, True), (None, None)]),
    ("int16", "smallint", "{}", [(-32768, -32768)]),
    ("int32", "integer", "{}", [(2147483647, 2147483647)]),
    ("int64", "bigint", "{}", [(-(2**63), -(2**63)), (9007199254740993, 9007199254740993)]),
    ("uint64", "numeric(20,0)", "{}", [(2**64 - 1, Decimal(2**64 - 1))]),
    ("uint64", "numeric", "{}", [(2**64 - 1, Decimal(2**64 - 1))]),
    ("float32", "real", "{}", [(1.5, 1.5)]),
    ("float64", "double precision", "{}", [(0.1, 0.1), (1.7976931348623157e308, 1.7976931348623157e308)]),
    (
        "decimal(38,10)",
        "numeric(38,10)",
        "{}",
        [(LONG, Decimal(LONG))],
    ),
    ("decimal(12,2)", "numeric", "{}", [("0.10", Decimal("0.10"))]),
    ("text", "character varying(4)", "{}", [("ab  ", "ab  ")]),
    ("text", "uuid", "{}::text", [("5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d", "5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d")]),
    ("text", "jsonb", "{}::text", [('{"a": [1, null]}', '{"a": [1, null]}')]),
    ("text", "mood", "{}::text", [("fine", "fine")]),
    ("text", "inet", "{}::text", [("10.0.0.0/8", "10.0.0.0/8")]),
    ("bytes", "bytea", "encode({}, 'hex')", [("AP8=", "00ff"), ("", "")]),
    (
        "date",
        "date",
        "{}::text",
        [(one, one) for one in ("1582-10-15", "9999-12-31", "0001-01-01")],
    ),
    ("time(us)", "time without time zone", "{}::text", [("13:45:10.250001", "13:45:10.250001")]),
    (
        "timestamp(us)",
        "timestamp with time zone",
        "{}::text",
        [(f"{DAY}T10:00:00.000001+01:00", f"{DAY} 09:00:00.000001+00")],
    ),
    (
        "timestamp(ms)",
        "timestamp(3) with time zone",
        "{}::text",
        [(f"{DAY}T10:00:00.250Z", f"{DAY} 10:00:00.25+00")],
    ),
    ("datetime(us)", "timestamp without time zone", "{}::text", [("2026-03-29T02:30:00.5", "2026-03-29 02:30:00.5")]),
    ("epoch(s)", "timestamp with time zone", "{}::text", [(5, "1970-01-01 00:00:05+00")]),
    (["int64"], "bigint[]", "{}", [([1, None], [1, None]), ([], [])]),
    (["text"], "text[]", "{}", [(['a"b\\', "NULL", None, "{,}"], ['a"b\\', "NULL", None, "{,}"])]),
    (["decimal(5,2)"], "numeric[]", "{}", [(["1.50"], [Decimal("1.50")])]),
    (
        {"a": "int64", "b": ["text"]},
        "jsonb",
        "{}",
        [({"a": 1, "b": ["x", None]}, {"a": 1, "b": ["x", None]}), (None, None)],
    ),
    ([{"a": "decimal(4,2)"}], "json", "{}::text", [([{"a": "1.50"}], '[{"a":1.50}]')]),
]


def test_types_are_kept_exactly(bare_site: Site, postgres_url: str) -> None:
    database = Database(postgres_url)
    columns = ", ".join(f'"c{number}" {column}' for number, (_, column, _, _) in enumerate(TYPES))
    database.run("CREATE TYPE mood AS ENUM ('fine', 'bad')", f"CREATE TABLE kinds (number integer, {columns})")
    fields = {"number": "int32", **{f"c{number}": field for number, (field, _, _, _) in enumerate(TYPES)}}
    longest = max(len(values) for *_, values in TYPES)
    rows = [
        {
            "number": row,
            **{f"c{n}": values[row][0] if row < len(values) else None for n, (*_, values) in enumerate(TYPES)},
        }
        for row in range(longest)
    ]
    write(bare_site, *rows)
    apply(bare_site, database.sink("kinds"), fields)
    run(bare_site)
    asked = ", ".join(query.format(f'"c{number}"') for number, (_, _, query, _) in enumerate(TYPES))
    found = database.run("SET timezone = 'UTC'", f"SELECT {asked} FROM kinds ORDER BY number")
    for number, (field, column, _, values) in enumerate(TYPES):
        there = [row[number] for row in found]
        assert there == [value for _, value in values] + [None] * (longest - len(values)), f"{field} in {column}"


def test_each_line_of_the_page_is_one_of_these() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "tables.md").read_text()
    lines = page.partition("| field | column")[2].partition("\n\n")[0].splitlines()[2:]
    tested = {column.partition("(")[0].partition(" ")[0] for _, column, _, _ in TYPES}
    for line in lines:
        columns = re.findall(r"`([^`]+)`", line.split("|")[2])
        assert {one.partition("(")[0].partition(" ")[0] for one in columns} & tested, line
