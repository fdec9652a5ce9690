"""What a table of MySQL keeps of each type of field, as its own driver reads it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.mariadb import Database, MariaDB
from tests.mysql import MySQL
from tests.site import Site
from tests.system.mysql.test_table_sink import ODD
from tests.table_connectors import apply, run, write

pytestmark = pytest.mark.server

LONG, DAY = "1234567890123456789012345678.0123456789", "2026-01-31"
DENORMAL, LARGEST = 5e-324, 1.7976931348623157e308

TYPES: list[tuple[Any, str, str, list[Any]]] = [
    # field, column, what a query makes of it, values as JSON has them and as the query gives them
    ("bool", "tinyint(1)", "{}", [(True, 1), (False, 0), (None, None)]),
    ("bool", "bit(1)", "{} + 0", [(True, 1), (False, 0)]),
    ("int8", "tinyint", "{}", [(-128, -128)]),
    ("int16", "smallint", "{}", [(-32768, -32768)]),
    ("int16", "mediumint", "{}", [(-32768, -32768)]),
    ("int32", "int(11)", "{}", [(2147483647, 2147483647)]),
    ("int64", "bigint", "{}", [(-(2**63), -(2**63)), (9007199254740993, 9007199254740993)]),
    ("int64", "bigint unsigned", "{}", [(2**63 - 1, 2**63 - 1)]),
    ("uint64", "bigint unsigned", "{}", [(2**64 - 1, 2**64 - 1)]),
    ("uint64", "decimal(20,0)", "{}", [(2**64 - 1, Decimal(2**64 - 1))]),
    (
        "float32",
        "float",
        "{} + 0e0",
        [(1.5, 1.5), (0.1, 0.10000000149011612), (3.4028234663852886e38, 3.4028234663852886e38)],
    ),
    ("float32", "double", "{}", [(0.1, 0.10000000149011612)]),
    ("float64", "double", "{}", [(0.1, 0.1), (LARGEST, LARGEST), (DENORMAL, DENORMAL), (1e-35, 1e-35)]),
    ("decimal(38,10)", "decimal(38,10)", "{}", [(LONG, Decimal(LONG)), (f"-{LONG}", Decimal(f"-{LONG}"))]),
    ("decimal(38,30)", "decimal(65,30)", "{}", [("0.000000000000000000000000000001", Decimal("1e-30"))]),
    ("text", "varchar(40)", "{}", [("ab  ", "ab  "), (ODD, ODD)]),
    ("text", "char(4)", "{}", [("ab", "ab"), ("", "")]),
    ("text", "text CHARACTER SET latin1", "{}", [("Zoë €", "Zoë €")]),
    ("text", "longtext", "{}", [(ODD, ODD)]),
    ("text", "enum('1','10','a''b')", "{}", [("10", "10"), ("a'b", "a'b")]),
    ("text", "json", "{}", [('{"a": [1.5, null]}', '{"a": [1.5, null]}')]),
    ("text", "uuid", "{}", [("5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d", "5f0c2e9a-51c8-4f4f-9b1f-6b0a3a1b2c3d")]),
    ("text", "inet6", "{}", [("2001:db8::1", "2001:db8::1")]),
    ("bytes", "varbinary(9)", "hex({})", [("AP8=", "00FF"), ("", ""), ("ICA=", "2020")]),
    ("bytes", "binary(2)", "hex({})", [("AP8=", "00FF")]),
    ("bytes", "longblob", "hex({})", [("AP8nXA==", "00FF275C")]),
    ("date", "date", "{} || ''", [(one, one) for one in ("1582-10-15", "9999-12-31", "0001-01-01")]),
    ("time(us)", "time(6)", "{} || ''", [("13:45:10.250001", "13:45:10.250001")]),
    (
        "timestamp(us)",
        "timestamp(6) NULL",
        "{} || ''",
        [
            (f"{DAY}T10:00:00.000001+01:00", f"{DAY} 09:00:00.000001"),
            ("2026-03-29T01:30:00Z", "2026-03-29 01:30:00.000000"),
        ],
    ),
    ("timestamp(ms)", "timestamp(3) NULL", "{} || ''", [(f"{DAY}T10:00:00.250Z", f"{DAY} 10:00:00.250")]),
    (
        "datetime(us)",
        "datetime(6)",
        "{} || ''",
        [
            ("2026-03-29T02:30:00.5", "2026-03-29 02:30:00.500000"),
            ("0001-01-01T00:00:00", "0001-01-01 00:00:00.000000"),
        ],
    ),
    ("epoch(s)", "timestamp NULL", "{} || ''", [(5, "1970-01-01 00:00:05")]),
    (["int64"], "json", "REPLACE({}, ' ', '')", [([1, None], "[1,null]"), ([], "[]")]),
    ([{"a": "decimal(4,2)"}], "longtext", "{}", [([{"a": "1.50"}], '[{"a":1.50}]')]),
    (
        {"a": "int64", "b": ["text"]},
        "json",
        "REPLACE({}, ' ', '')",
        [({"a": 1, "b": ["x'\\", None]}, '{"a":1,"b":["x\'\\\\",null]}')],
    ),
]


def test_types_are_kept_exactly(bare_site: Site, mariadb: MariaDB) -> None:
    database = Database(mariadb)
    lacks = ("uuid", "inet6") if isinstance(mariadb, MySQL) else ()
    types = [one for one in TYPES if one[1] not in lacks]
    columns = ", ".join(f"c{number} {column}" for number, (_, column, _, _) in enumerate(types))
    database.run(f"CREATE TABLE kinds (number int, {columns})")
    fields = {"number": "int32", **{f"c{number}": field for number, (field, _, _, _) in enumerate(types)}}
    longest = max(len(values) for *_, values in types)
    rows = [
        {
            "number": row,
            **{f"c{n}": values[row][0] if row < len(values) else None for n, (*_, values) in enumerate(types)},
        }
        for row in range(longest)
    ]
    write(bare_site, *rows)
    apply(bare_site, database.sink("kinds"), fields)
    run(bare_site)
    asked = ", ".join(query.format(f"c{number}") for number, (_, _, query, _) in enumerate(types))
    with database.connected() as session, session.cursor() as asking:
        asking.execute("SET time_zone = '+00:00', sql_mode = 'PIPES_AS_CONCAT'")
        asking.execute(f"SELECT {asked} FROM kinds ORDER BY number")
        found = asking.fetchall()
    for number, (field, column, _, values) in enumerate(types):
        there = [row[number] for row in found]
        assert there == [value for _, value in values] + [None] * (longest - len(values)), f"{field} in {column}"


def test_each_line_of_the_page_is_one_of_these() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "mysql.md").read_text()
    lines = page.partition("| field | column")[2].partition("\n\n")[0].splitlines()[2:]
    assert lines
    tested = {column.partition("(")[0].partition(" ")[0] for _, column, _, _ in TYPES}
    for line in lines:
        columns = re.findall(r"`([^`]+)`", line.split("|")[2])
        assert {one.partition("(")[0].partition(" ")[0] for one in columns} & tested, line
