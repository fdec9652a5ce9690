"""Rows as lines of CSV: what Python's own reader, and ours, make of them."""

from __future__ import annotations

import csv
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.formats.csv_writing import CsvWriter
from connect_core.pipeline.formats.known import FORMATS
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type, as_written, struct_of
from tests.unit.pipeline.test_reshaping import PARSE, bodies, shaped
from tests.unit.rows.strategies import LEAVES, TEXTS, rows, structs

ENCODE = {"format": "csv"}
CSV = FORMATS["csv"]


def written(fields: dict[str, Any], *some: dict[str, Any], columns: tuple[str, ...] = (), delimiter: str = ",") -> Any:
    return CsvWriter(columns, delimiter).written(pa.array(some, arrow_type(struct_of(fields))))


def test_json_becomes_csv() -> None:
    steps = [{"flatten": "_"}]
    made = shaped(
        {"parse": PARSE, "transforms": steps, "encode": ENCODE},
        b'{"id":9007199254740993,"price":2.5,"who":{"name":"Z\xc3\xb6e, \\"the cat\\""}}',
        b'{"id":-1,"price":null,"who":{"name":""}}',
        b'{"id":null,"price":0,"who":null}',
    )
    assert bodies(made) == ['9007199254740993,2.50,"Zöe, ""the cat"""'.encode(), b'-1,,""', b",0.00,"]


def test_columns_say_which_and_in_which_order() -> None:
    row = {"a": 1, "b": True, "c": "x;y"}
    made = written({"a": "int8", "b": "bool", "c": "text"}, row, columns=("c", "a"), delimiter=";")
    assert made.values.to_pylist() == [b'"x;y";1']


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a,b", b'"a,b"'),
        ('"', b'""""'),
        ("a\nb", b'"a\nb"'),
        ("a\r", b'"a\r"'),
        (" a ", b" a "),
        ("", b'""'),
        (None, b""),
    ],
)
def test_quotation_marks_are_where_they_are_needed(text: str | None, cell: bytes) -> None:
    made = written({"a": "text", "b": "int8"}, {"a": text, "b": 1})
    assert made.values.to_pylist() == [cell + b",1"]


def test_a_record_of_one_missing_cell_is_no_empty_line() -> None:
    assert written({"a": "text"}, {"a": None}, {"a": "x"}).values.to_pylist() == [b'""', b"x"]


def test_what_has_no_text_is_unfit() -> None:
    made = written({"a": "float64", "b": "int8"}, {"a": float("nan"), "b": 1}, {"a": 0.1, "b": 2})
    assert made.values.to_pylist() == [b"0.1,2"]
    assert made.unfit == [(0, "a: JSON has neither NaN nor infinity")]


@pytest.mark.parametrize(
    ("more", "fields", "reason"),
    [
        ({"columns": ["b"]}, {"a": "text"}, "columns: there is no field b"),
        ({}, {"a": ["text"]}, "a is a list: explode it"),
        ({}, {"a": {"b": "text"}}, "a is an object: flatten it"),
    ],
)
def test_rows_that_are_no_line(more: dict[str, Any], fields: dict[str, Any], reason: str) -> None:
    encode = {"columns": [], "delimiter": ",", **more}
    with pytest.raises(ValueError, match=reason):
        CSV.check_rows(encode, struct_of(fields))


def test_a_column_that_is_not_written_may_be_of_any_type() -> None:
    CSV.check_rows({"columns": ["a"], "delimiter": ","}, struct_of({"a": "text", "b": ["text"]}))


@given(rows(structs(LEAVES)), st.sampled_from([",", ";", "\t", "|", " ", "é"]))
def test_a_line_that_is_written_is_read_as_the_same(some: tuple[Type, pa.StructArray], delimiter: str) -> None:
    """As texts, which casts make typed again; empty is not there."""
    one, given_rows = some
    made = CsvWriter((), delimiter).written(given_rows)
    assert made.unfit == []
    names = [name for name, _ in one.fields]
    parse = {"format": "csv", "columns": names, "delimiter": delimiter}
    back = shaped({"parse": parse, "encode": {"format": "json"}}, *made.values.to_pylist())
    assert back.rejected == ()
    as_json = shaped({"parse": {"format": "json", "fields": as_written(one)}}, *json_of(given_rows))
    assert len(as_json.rejected) == 0
    for line, text, found in zip(made.values.to_pylist(), json_of(given_rows), bodies(back), strict=True):
        cells = json.loads(text, parse_int=str, parse_float=str)
        texts = [{True: "true", False: "false"}.get(cells[name], cells[name]) for name in names]
        [read] = csv.reader([line.decode()], delimiter=delimiter, strict=True)
        assert numbers(one, read) == numbers(one, [cell or "" for cell in texts])
        ours = [cell or "" for cell in json.loads(found).values()]
        assert ours == read


def numbers(one: Type, cells: list[str]) -> list[str | float]:
    """A float has several texts: `1e16` and `1e+16`."""
    kinds = [of.kind for _, of in one.fields]
    return [float(cell) if cell and "float" in kind else cell for kind, cell in zip(kinds, cells, strict=True)]


def json_of(given_rows: pa.StructArray) -> list[bytes]:
    from connect_core.rows.json_writing import written as json_written

    found: list[bytes] = json_written(given_rows).values.to_pylist()
    return found


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from([",", ";", "\\", "'"]))
def test_any_texts_are_read_by_python_as_they_were(texts: list[str], delimiter: str) -> None:
    fields = {f"c{place}": "text" for place in range(len(texts))}
    [line] = written(fields, dict(zip(fields, texts, strict=True)), delimiter=delimiter).values.to_pylist()
    assert next(csv.reader([line.decode()], delimiter=delimiter, strict=True)) == texts
