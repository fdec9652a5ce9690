"""The column that is made for a field keeps each of its values."""

from __future__ import annotations

import re

import pytest

from connect_core.errors import ConfigError
from connect_core.rows.types import PLAIN, UNITS, WITH_UNIT, Type, struct_of
from connect_core.systems.mysql.catalog import MysqlColumn, MysqlTable
from connect_core.systems.mysql.making import add_columns, create_table
from connect_core.systems.mysql.types import column_for, holds

FIELDS = {
    **{name: name for name in PLAIN},
    **{f"{name}_{unit}": f"{name}({unit})" for name in WITH_UNIT for unit in UNITS if unit != "ns"},
    "decimal_38_0": "decimal(38,0)",
    "decimal_38_30": "decimal(38,30)",
    "list": ["int64"],
    "lists": [["text"]],
    "struct": {"a": "text"},
    "structs": [{"a": "decimal(4,2)"}],
}
ROWS = struct_of(FIELDS)
PLACE = ("shop", "t")


def column_of(name: str, kind: str) -> MysqlColumn:
    """As the catalog tells of it."""
    word = kind.partition("(")[0].partition(" ")[0]
    sizes = [int(size) for size in re.findall(r"\d+", kind)] + [0, 0]
    kind, word = ("tinyint(1)", "tinyint") if kind == "boolean" else (kind, word)
    return MysqlColumn(name, kind, word, False, False, False, False, sizes[0], sizes[1], sizes[0], sizes[0], "")


def table_of(**columns: str) -> MysqlTable:
    made = tuple(column_of(name, kind) for name, kind in columns.items())
    return MysqlTable(*PLACE, "InnoDB", made, (), {})


@pytest.mark.parametrize(("name", "one"), ROWS.fields, ids=FIELDS)
def test_a_made_column_keeps_its_field(name: str, one: Type) -> None:
    made = column_for(one, in_key=False)
    assert made is not None
    assert holds(column_of(name, made), one)


@pytest.mark.parametrize("one", ["text", "bytes", "int64", "date", "timestamp(ms)"])
def test_a_made_key_keeps_its_field(one: str) -> None:
    [(name, kind)] = struct_of({"a": one}).fields
    made = column_for(kind, in_key=True)
    assert made is not None
    assert holds(column_of(name, made), kind)


@pytest.mark.parametrize("one", [*(f"{kind}(ns)" for kind in WITH_UNIT), "decimal(38,31)"])
def test_what_no_column_keeps_is_refused(one: str) -> None:
    with pytest.raises(ConfigError, match="of field at exactly"):
        create_table(PLACE, struct_of({"at": one}), ())


def test_json_of_mysql_keeps_no_decimals() -> None:
    json = column_of("a", "json")
    [(_, exact), (_, rounded)] = struct_of({"a": ["int64"], "b": [{"c": "decimal(4,2)"}]}).fields
    assert holds(json, exact)
    assert not holds(json, rounded)


def test_names_are_quoted_and_none_is_cut() -> None:
    made = create_table(("shop", "x`"), struct_of({"a`b": "text", "select": "int8"}), ("select",))
    assert made == (
        "CREATE TABLE `shop`.`x``` (`a``b` longtext NULL, `select` tinyint NOT NULL, PRIMARY KEY (`select`))"
        " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    )
    for name in ("x" * 65, "blank ", "x\0", "🙂"):
        with pytest.raises(ConfigError, match="has no name for a column"):
            create_table(PLACE, struct_of({"id": "int64", name: "text"}), ())


def test_what_a_table_has_is_not_added() -> None:
    there = table_of(id="bigint")
    rows = struct_of({"id": "int8", "late": "bool", "at": "epoch(ms)"})
    added = "ALTER TABLE `shop`.`t` ADD COLUMN `late` boolean NULL, ADD COLUMN `at` timestamp(3) NULL"
    assert add_columns(there, rows) == added
    assert add_columns(there, struct_of({"id": "int64"})) == ""
