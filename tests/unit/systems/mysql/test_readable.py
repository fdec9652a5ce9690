"""Rows of a result as records: what the values are in JSON, and what is the key."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from connect_core.systems.mysql.readable import RowReader


class Column(NamedTuple):
    name: str
    word: str


ID, TEXT = Column("id", "bigint"), Column('100 %s "x"', "text")
AMOUNT, BYTES = Column("a", "decimal"), Column("b", "blob")


def read(columns: list[Column], key: list[str], *rows: tuple[Any, ...]) -> list[tuple[int, str | None, str]]:
    return RowReader(columns, key, frozenset()).read([(number, *row) for number, row in enumerate(rows)])


def test_each_row_is_an_object_with_a_member_for_each_column() -> None:
    rows = [(1, "it's 5 %", Decimal("1E+2"), b"\0"), (None, 'a "b"\n\\', None, None), (2, None, Decimal("0.10"), b"")]
    found = read([ID, TEXT, AMOUNT, BYTES], [], *rows)
    assert [number for number, _, _ in found] == [0, 1, 2]
    assert found[0][2] == '{"id":1,"100 %s \\"x\\"":"it\'s 5 %","a":100,"b":"AA=="}'
    assert [list(json.loads(value).values()) for _, _, value in found] == [
        [1, "it's 5 %", 100, "AA=="],
        [None, 'a "b"\n\\', None, None],
        [2, None, 0.10, ""],
    ]
    assert {key for _, key, _ in found} == {None}


@pytest.mark.parametrize("text", ["plain", 'with "marks"', "\\", "line\nfeed", "", "ü", "null"])
def test_a_key_of_one_column_is_its_text(text: str) -> None:
    [(_, key, _)] = read([ID, TEXT], [TEXT.name], (1, text))
    assert key == text


def test_a_number_as_the_key_has_its_digits() -> None:
    assert [key for _, key, _ in read([ID, TEXT], ["id"], (1, "a"), (22, "b"))] == ["1", "22"]


def test_a_key_of_several_columns_is_an_object() -> None:
    [(_, key, _)] = read([ID, TEXT, AMOUNT], [TEXT.name, "id"], (7, "a", None))
    assert key is not None
    assert json.loads(key) == {TEXT.name: "a", "id": 7}


def test_no_rows_are_no_records() -> None:
    assert read([ID], ["id"]) == []


def test_a_column_that_numbers_rows_is_asked_for_once() -> None:
    reader = RowReader([TEXT, ID], ["id"], frozenset())
    number = reader.place_of("id")
    assert number == 1
    assert reader.read([("a", 7)], number) == reader.read([(7, "a", 7)])


def test_a_number_that_is_no_column_of_the_rows_comes_before_them() -> None:
    assert RowReader([Column("y", "year")], [], frozenset()).place_of("z") is None
