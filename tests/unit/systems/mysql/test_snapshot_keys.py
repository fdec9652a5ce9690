"""SQL that reads a table by its key."""

from __future__ import annotations

import pytest

from connect_core.errors import DataError
from connect_core.systems.mysql.binlog.snapshot_keys import (
    between,
    copy_of,
    key_of,
    key_texts,
    unfit_for_chunks,
    until_of,
)
from connect_core.systems.mysql.catalog import MysqlColumn, MysqlTable


def column(name: str, kind: str, collation: str = "") -> MysqlColumn:
    return MysqlColumn(name, kind, kind.split("(")[0].split()[0], True, False, False, False, 0, 0, 0, 0, collation)


def table(*columns: MysqlColumn, key: tuple[str, ...] = ()) -> MysqlTable:
    return MysqlTable("shop", "orders", "InnoDB", columns, key or tuple(one.name for one in columns), {})


PAIRS = table(column("a", "bigint(20) unsigned"), column("b", "varchar(9)", "latin1_german2_ci"))


HIGHEST = "18446744073709551615"
LAST = [HIGHEST, "FF"]


def compared(sign: str, last: str, text: str) -> str:
    b = f"`b` {last} _latin1 X'{text}' COLLATE latin1_german2_ci"
    return f"`a` {sign}= {HIGHEST} AND (`a` {sign} {HIGHEST} OR ({b}))"


def test_rows_behind_a_key_are_compared_column_by_column() -> None:
    after = key_of(PAIRS, [HIGHEST, "E4"], LAST)
    assert until_of(PAIRS, after) == LAST
    assert between(PAIRS, after, LAST) == f"({compared('>', '>', 'E4')}) AND ({compared('<', '<=', 'FF')})"


def test_without_a_key_all_rows_are_behind() -> None:
    assert between(PAIRS, None, LAST) == compared("<", "<=", "FF")
    assert (between(PAIRS, None, None), until_of(PAIRS, None)) == ("TRUE", None)


def test_a_key_of_another_form_is_none() -> None:
    was = table(column("a", "int(11)"), column("b", "varchar(9)", "latin1_german2_ci"))
    after = key_of(was, ["1", "E4"], ["2", "E4"])
    assert until_of(PAIRS, after) is None
    assert between(PAIRS, after, LAST) == between(PAIRS, None, LAST)


def test_a_key_is_asked_for_as_texts() -> None:
    of = table(column("a", "enum('x')", "utf8mb4_bin"), column("b", "float"), column("c", "binary(4)"))
    assert key_texts(of) == [
        "CAST(CAST(`a` AS UNSIGNED) AS CHAR)",
        "CAST(CAST(`b` AS DOUBLE) AS CHAR)",
        "HEX(`c`)",
    ]


@pytest.mark.parametrize(
    ("kind", "text"), [("int(11)", "1 OR 1"), ("varchar(9)", "zz"), ("datetime", "' OR '"), ("binary(4)", "0")]
)
def test_a_key_that_the_server_has_not_made_is_refused(kind: str, text: str) -> None:
    of = table(column("a", kind, "utf8mb4_bin" if kind.startswith("varchar") else ""))
    with pytest.raises(DataError, match="is damaged"):
        between(of, key_of(of, [text], []), None)


def test_a_copy_has_the_columns_of_the_table() -> None:
    of = table(column("a`", "int(11)"), column("b", "text", "utf8mb4_bin"), key=("a`",))
    assert copy_of(of, "copies") == (
        "CREATE TABLE copies (`a``` int(11) NOT NULL, `b` text COLLATE utf8mb4_bin NULL, PRIMARY KEY (`a```))"
        " ENGINE=InnoDB"
    )


@pytest.mark.parametrize(("key", "why"), [((), "no primary key"), (("",), "a part of a column"), (("b",), "type text")])
def test_a_key_by_which_rows_cannot_be_read_is_named(key: tuple[str, ...], why: str) -> None:
    of = MysqlTable(
        "shop", "orders", "InnoDB", (column("a", "int"), column("b", "text", "utf8mb4_bin")), key, {}, kind="BASE TABLE"
    )
    assert why in unfit_for_chunks(of)
