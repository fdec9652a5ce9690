"""The column that is made for a field keeps each of its values."""

from __future__ import annotations

import pytest

from connect_core.errors import ConfigError
from connect_core.rows.types import PLAIN, UNITS, WITH_UNIT, Type, struct_of
from connect_core.systems.postgresql.making import add_columns, create_table
from connect_core.systems.postgresql.types import column_for, holds
from tests.unit.systems.postgresql.tables import table_of

FIELDS = {
    **{name: name for name in PLAIN},
    **{f"{name}_{unit}": f"{name}({unit})" for name in WITH_UNIT for unit in UNITS if unit != "ns"},
    "decimal_38_0": "decimal(38,0)",
    "decimal_38_38": "decimal(38,38)",
    "list": ["int64"],
    "lists": [["text"]],
    "struct": {"a": "text"},
    "structs": [{"a": "text"}],
}
ROWS = struct_of(FIELDS)


@pytest.mark.parametrize(("name", "one"), ROWS.fields, ids=FIELDS)
def test_a_made_column_keeps_its_field(name: str, one: Type) -> None:
    made = column_for(one)
    assert made is not None
    assert holds(made, one)


@pytest.mark.parametrize("kind", [*WITH_UNIT])
def test_no_column_keeps_nanoseconds(kind: str) -> None:
    for one in (f"{kind}(ns)", [f"{kind}(ns)"]):
        with pytest.raises(ConfigError, match="of field at exactly"):
            create_table("t", struct_of({"at": one}), ())


def test_names_are_quoted_and_none_is_cut() -> None:
    made = create_table('shop."x', struct_of({'a"b': "text", "select": "int8"}), ("select",))
    assert made == 'CREATE TABLE "shop"."""x" ("a""b" text, "select" smallint, PRIMARY KEY ("select"))'
    for name in ("x" * 64, "é" * 32, "x\0"):
        with pytest.raises(ConfigError, match="has no name for a column"):
            create_table("t", struct_of({"id": "int64", name: "text"}), ())


@pytest.mark.parametrize("name", ["ctid", "xmin", "tableoid"])
def test_what_each_table_has_is_no_column_of_records(name: str) -> None:
    rows = struct_of({"id": "int64", name: "text"})
    with pytest.raises(ConfigError, match=f"No column can be called {name}"):
        create_table("t", rows, ())
    with pytest.raises(ConfigError, match=f"No column can be called {name}"):
        add_columns("t", table_of(id="bigint"), rows)
    create_table("t", struct_of({name.upper(): "text", "oid": "int64"}), ())


def test_what_a_table_has_is_not_added() -> None:
    there = table_of(id="bigint")
    rows = struct_of({"id": "int8", "late": "bool", "at": "epoch(ms)"})
    added = 'ALTER TABLE "public"."t" ADD COLUMN "late" boolean, ADD COLUMN "at" timestamp(3) with time zone'
    assert add_columns("t", there, rows) == added
    assert add_columns("t", there, struct_of({"id": "int64"})) == ""
