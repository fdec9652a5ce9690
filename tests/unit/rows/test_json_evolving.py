"""What a JSON record needs that does not fit the declared fields."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.json_evolving import EvolvingReader
from connect_core.rows.json_reading import JsonReader
from connect_core.rows.types import Type, as_written, struct_of
from connect_core.rows.widening import joined

DECLARED = {"id": "int32", "name": "text"}


def needs(payload: str, fields: dict[str, Any] = DECLARED) -> Any:
    read = EvolvingReader(struct_of(fields)).read(pa.array([payload.encode()], pa.binary()))
    return as_written(read.needs[0]) if read.needs else [why for _, why in read.unfit] or read.rows.to_pylist()


@pytest.mark.parametrize(
    ("payload", "lacks"),
    [
        ('{"id":1,"late":true}', {"late": "bool"}),
        ('{"id":1,"n":7,"price":1.5,"at":"now"}', {"n": "int64", "price": "float64", "at": "text"}),
        ('{"id":3000000000}', {"id": "int64"}),
        ('{"id":9223372036854775808}', {"id": "decimal(19,0)"}),
        ('{"id":123456789012345678901}', {"id": "decimal(21,0)"}),
        ('{"id":1.25}', {"id": "decimal(21,2)"}),
        ('{"id":1e3}', {"id": "decimal(19,0)"}),
        ('{"n":18446744073709551615}', {"n": "decimal(20,0)"}),
        ('{"o":{"a":1,"b":{"c":"x"}},"l":[[1,2]]}', {"o": {"a": "int64", "b": {"c": "text"}}, "l": [["int64"]]}),
        ('{"l":[1,2.5,3]}', {"l": ["float64"]}),
        ('{"l":[{"a":1},{"b":"x"}]}', {"l": [{"a": "int64", "b": "text"}]}),
        ('{"id":1,"late":true,"nothing":null}', {"late": "bool"}),
    ],
)
def test_members_that_are_not_declared_and_wider_numbers(payload: str, lacks: Any) -> None:
    assert needs(payload) == lacks


def test_fields_within_fields_and_lists() -> None:
    fields = {"o": {"a": "int8"}, "l": [{"b": "float32"}], "p": "decimal(4,2)"}
    assert needs('{"o":{"a":500,"c":true}}', fields) == {"o": {"a": "int64", "c": "bool"}}
    assert needs('{"l":[{"b":1e39},{"d":"x"}]}', fields) == {"l": [{"b": "float64", "d": "text"}]}
    assert needs('{"p":12.345}', fields) == {"p": "decimal(5,3)"}
    assert needs('{"p":123.4}', fields) == {"p": "decimal(5,2)"}


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ('{"name":1}', "name: not a text"),
        ('{"id":"1"}', "id: not a whole number that int32 holds"),
        ('{"id":true,"new":1}', "id: not a whole number that int32 holds"),
        ('{"new":[1,"x"]}', "new[]: not a whole number that int64 holds"),
        ('{"id":[1]}', "id: not a whole number that int32 holds"),
        ('{"name":{"a":1}}', "name: not a text"),
        ('{"a":1,"a":1}', "a: given more than once"),
        ('{"":1}', "a field without a name"),
        ('{"o":{"":1}}', "o: a field without a name"),
        (f'{{"id":1{"0" * 38}}}', "id: a number of more than 38 digits"),
        ('{"id":0.' + "1" * 40 + "}", "id: a number of more than 38 digits"),
        ('{"id":1e-99999999999999999999}', "id: a number of more than 38 digits"),
        ('{"id":1e-9999999}', "id: not a whole number that int32 holds"),
        ("[1]", "not one JSON object"),
        ('{"a":', "not one JSON object"),
        ('{"a":1e999}', "a number beyond float64"),
        ('{"a":"\\ud800"}', "not JSON: half of a surrogate pair"),
        ('{"a":' + "[" * 25 + "1" + "]" * 25 + "}", "a" + "[]" * 20 + ": more than 20 lists and objects in each other"),
    ],
)
def test_what_no_fields_make_fit_is_refused_with_its_reason(payload: str, why: str) -> None:
    assert needs(payload) == [why]


@pytest.mark.parametrize("silent", ["null", "{}", "[]", "[null]", '{"a":null,"b":[{}]}'])
def test_what_says_nothing_of_its_type_is_left_out(silent: str) -> None:
    assert needs(f'{{"id":1,"new":{silent},"name":"x"}}') == [{"id": 1, "name": "x"}]


def test_records_keep_their_order() -> None:
    payloads = ['{"id":1}', '{"id":2,"a":null}', '{"b":1}', '{"id":3}', '{"id":4,"c":[]}', "no", '{"id":5}']
    read = EvolvingReader(struct_of(DECLARED)).read(pa.array([one.encode() for one in payloads], pa.binary()))
    assert [row["id"] for row in read.rows.to_pylist()] == [1, 2, 3, 4, 5]
    assert [row for row, _ in read.unfit] == [2, 5]
    assert {row: as_written(more) for row, more in read.needs.items()} == {2: {"b": "int64"}}


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(10**25), 10**25), st.floats(allow_nan=False, allow_infinity=False)
    )
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.dictionaries(st.sampled_from(["id", "name", "x", "y"]), VALUES, max_size=4)


@given(RECORDS)
def test_with_what_it_needs_a_record_fits(record: dict[str, Any]) -> None:
    payload = pa.array([json.dumps(record).encode()], pa.binary())
    rows = struct_of(DECLARED)
    read = EvolvingReader(rows).read(payload)
    for more in read.needs.values():
        wider = joined(rows, more)
        assert wider is not None
        assert _fits(payload, wider)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,80})(\.[0-9]{1,80})?([eE][+-]?[0-9]{1,30})?", fullmatch=True))
@pytest.mark.parametrize("declared", ["int32", "uint64", "float32", "decimal(5,2)", "decimal(38,38)", "text"])
def test_whatever_number_comes_is_read_or_needs_something_or_has_a_reason(declared: str, number: str) -> None:
    payloads = pa.array([f'{{"id":{number}}}'.encode(), f'{{"new":[{number}]}}'.encode()], pa.binary())
    read = EvolvingReader(struct_of({"id": declared})).read(payloads)
    assert len(read.rows) + len(read.unfit) == len(payloads)


def _fits(payload: pa.Array, rows: Type) -> bool:
    read = JsonReader(rows, unknown="drop").read(payload)
    return not read.unfit and not EvolvingReader(rows).read(payload).needs
