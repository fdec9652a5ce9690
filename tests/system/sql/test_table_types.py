"""Each row of the tables of types in docs/sql-tables.md: what a field becomes in a column."""

from __future__ import annotations

import copy
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.site import Site
from tests.table_connectors import apply, run, write

TYPES: list[tuple[str, Any, Any, Any]] = [
    # field, columns, value in the record, value of the last column
    ("bool", ["INTEGER", "BOOLEAN"], True, 1),
    ("int8", ["INTEGER", "TINYINT"], -128, -128),
    ("int64", ["INTEGER", "BIGINT"], -(2**63), -(2**63)),
    ("uint32", ["INT", "SMALLINT"], 2**32 - 1, 2**32 - 1),
    ("float64", ["REAL", "FLOAT", "DOUBLE", "DOUBLE PRECISION"], 0.1, 0.1),
    ("float32", ["REAL"], 0.5, 0.5),
    ("decimal(15,2)", ["NUMERIC", "DECIMAL(15,2)"], "1234567890123.45", 1234567890123.45),
    ("decimal(38,2)", ["TEXT", "VARCHAR(9)"], "123456789012345678901234567890.10", "123456789012345678901234567890.10"),
    ("text", ["TEXT", "CHAR(2)", "CLOB", "VARCHAR(2)"], "00012 ", "00012 "),
    ("bytes", ["BLOB"], "AP8=", b"\x00\xff"),
    ("date", ["DATE"], "2026-01-02", "2026-01-02"),
    ("time(us)", ["TIME"], "13:45:10.250001", "13:45:10.250001"),
    ("datetime(ms)", ["TIMESTAMP", "DATETIME"], "2026-01-02T03:04:05.006", "2026-01-02 03:04:05.006000"),
    ("timestamp(us)", ["TIMESTAMP"], "2026-01-02T03:04:05.000006+01:00", "2026-01-02 02:04:05.000006"),
    ("epoch(ms)", ["TIMESTAMP"], 1, "1970-01-01 00:00:00.001000"),
    (["int64"], ["TEXT", "JSON"], [1, None], "[1,null]"),
    ({"a": "text"}, ["JSON"], {"a": "ü"}, '{"a":"ü"}'),
]


@pytest.mark.parametrize(("field", "columns", "given", "kept"), TYPES, ids=[str(row[0]) for row in TYPES])
def test_what_a_field_becomes(bare_site: Site, field: Any, columns: list[str], given: Any, kept: Any) -> None:
    """In each column, and as the last of them has it; what is missing is NULL."""
    names = [f"c{place}" for place in range(len(columns))]
    made = ", ".join(f"{name} {column}" for name, column in zip(names, columns, strict=True))
    with closing(sqlite3.connect(bare_site.folder / "shop.db")) as database:
        database.execute(f"CREATE TABLE t ({made})")
        write(bare_site, dict.fromkeys(names, given), dict.fromkeys(names))
        apply(
            bare_site,
            {"sql": {"url": "sqlite:///shop.db", "table": "t"}},
            {name: copy.deepcopy(field) for name in names},
        )
        run(bare_site)
        first, second = database.execute("SELECT * FROM t ORDER BY rowid").fetchall()
    assert first[-1] == kept
    assert len(set(first)) == 1
    assert set(second) == {None}
