"""Payloads that become rows, are changed, and become JSON again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.rejecting import as_read, reject_row
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.sdk.batches import ROW, own_field
from connect_core.sdk.testing.driving import records

FIELDS = {"id": "int64", "price": "decimal(6,2)", "who": {"name": "text"}}
PARSE = {"format": "json", "fields": FIELDS}
GOOD = b'{"id": 1, "price": 2.50, "who": {"name": "Z\xc3\xb6e"}}'


def shaped(document: dict[str, Any], *bodies: bytes, path: str | None = None) -> Shaped:
    return Pipeline(document, path).shape(records(list(bodies)))


def bodies(made: Shaped) -> list[bytes]:
    found: list[bytes] = made.kept.column("value").to_pylist()
    return found


def test_fields_alone_check_a_record_and_leave_it_as_it_came() -> None:
    made = shaped({"parse": PARSE}, GOOD, b'{"id": "1"}', b'{"id": 1, "color": "red"}', b"no JSON", GOOD)
    assert bodies(made) == [GOOD, GOOD]
    assert [(one.offset, one.stage, one.kind) for one in made.rejected] == [
        (offset, "parse", "NotParsed") for offset in (1, 2, 3)
    ]
    assert made.rejected[0].original == b'{"id": "1"}'
    assert made.filtered == ()


def test_steps_change_what_is_delivered() -> None:
    steps = [{"filter": "$.price > 2"}, {"flatten": "_"}, {"rename": {"who_name": "name"}}, {"cast": {"id": "text"}}]
    made = shaped({"parse": PARSE, "transforms": steps}, GOOD, b'{"id":2,"price":1}', b'{"id":3,"price":9}')
    assert bodies(made) == ['{"id":"1","price":2.50,"name":"Zöe"}'.encode(), b'{"id":"3","price":9.00,"name":null}']
    assert made.filtered == (1,)
    assert made.rows == 3


def test_rules_name_what_the_last_step_made() -> None:
    rules = [{"name": "all", "keys": "{$.name}"}, {"name": "dear", "when": "$.price >= 5", "to": "dear"}]
    document = {"parse": PARSE, "transforms": [{"flatten": "."}, {"rename": {'"who.name"': "name"}}], "rules": rules}
    made = shaped(document, GOOD, b'{"id":3,"price":9,"who":{"name":"Ann"}}')
    assert made.kept.column("key").to_pylist() == ["Zöe", "Ann", None]
    assert made.kept.column("to").to_pylist() == [None, None, "dear"]
    assert made.kept.column("ordinal").to_pylist() == [0, 0, 1]


def test_a_value_that_a_step_cannot_take_rejects_its_record_alone() -> None:
    document = {"parse": {"format": "csv", "columns": ["site", "temp"]}, "transforms": [{"cast": {"temp": "int32"}}]}
    made = shaped(document, b"north,12", b"south,warm", b"east", b"west,-3")
    assert bodies(made) == [b'{"site":"north","temp":12}', b'{"site":"west","temp":-3}']
    assert [(one.offset, one.stage) for one in made.rejected] == [(1, "transform"), (2, "parse")]
    assert "temp" in made.rejected[0].message
    assert "warm" not in made.rejected[0].message
    assert made.rejected[0].original == b"south,warm"


def test_what_json_cannot_have_is_rejected() -> None:
    document = {
        "parse": {"format": "csv", "columns": ["n"]},
        "transforms": [{"cast": {"n": "float64"}}, {"set": {"m": 1}}],
    }
    made = shaped(document, b"1.5", b"nan", b"inf")
    assert bodies(made) == [b'{"n":1.5,"m":1}']
    assert {one.offset for one in made.rejected} == {1, 2}


def test_encode_writes_without_any_step() -> None:
    document = {"parse": {"format": "csv", "columns": ["a", "b"]}, "encode": {"format": "json"}}
    assert bodies(shaped(document, b'1,"x ""y"""', b"2,")) == [b'{"a":"1","b":"x \\"y\\""}', b'{"a":"2","b":null}']


@pytest.mark.parametrize(
    ("parse", "line", "row"),
    [
        ({"format": "csv", "columns": ["a", "b"]}, b"1,x", {"a": "1", "b": "x"}),
        ({"format": "regex", "pattern": "(?P<a>[0-9]+)"}, b"n 1", {"a": "1"}),
        ({"format": "grok", "pattern": "%{INT:a}"}, b"n 1", {"a": "1"}),
        ({"format": "text"}, b"n 1", {"text": "n 1"}),
    ],
    ids=["csv", "regex", "grok", "text"],
)
def test_a_sink_of_rows_finds_those_of_a_format_that_names_its_fields(
    parse: dict[str, Any], line: bytes, row: dict[str, str]
) -> None:
    """Also where the document does nothing with them; records that are not of the format are rejected as ever."""
    pipeline = Pipeline({"parse": parse}, shows_rows=True)
    assert pipeline.changes
    made = pipeline.shape(records([line, b"\xff"]))
    assert made.kept.column(ROW).to_pylist() == [row]
    assert bodies(made) == [line]
    assert [(one.offset, one.kind) for one in made.rejected] == [(1, "NotParsed")]


def test_filter_when_is_the_first_step() -> None:
    document = {"filter": {"when": "$.id = 1 AND payload:text CONTAINS 'price'"}, "parse": PARSE}
    made = shaped(document, GOOD, b'{"id": 2, "price": 1}', b'{"id": 1}')
    assert (bodies(made), made.filtered) == ([GOOD], (1, 2))


def test_a_template_names_the_file_of_a_line() -> None:
    document = {"parse": PARSE, "transforms": [{"keep": ["id"]}, {"set": {"from": "{file:name}"}}]}
    assert bodies(shaped(document, GOOD, path="/logs/a.log")) == [b'{"id":1,"from":"a.log"}']


def test_the_order_of_fields_and_steps_is_a_part_of_the_pipeline() -> None:
    def digest(fields: dict[str, str], *steps: dict[str, Any]) -> str:
        return pipeline_digest({"transforms": list(steps), "parse": {"format": "json", "fields": fields}})

    digests = {
        digest({"a": "text", "b": "text"}),
        digest({"b": "text", "a": "text"}),
        digest({"a": "text", "b": "text"}, {"drop": ["a"]}),
        digest({"a": "text", "b": "text"}, {"keep": ["b"]}),
    }
    assert len(digests) == 4
    plain = {"transforms": [], "filter": {"tags": ["a"], "headers": {"x": "y"}}}
    assert pipeline_digest(plain) == pipeline_digest(dict(reversed(plain.items())))


def test_what_a_target_cannot_take_keeps_the_payload_that_it_came_with() -> None:
    given = records([b"a", b"b", b"c"])
    changed = given.slice(1).set_column(0, given.schema.field(0), given.column(0).slice(1))
    value = changed.schema.get_field_index("value")
    changed = changed.set_column(value, changed.schema.field("value"), pa.array([b"B", b"C"], pa.binary()))
    [reject] = as_read([reject_row(changed, 1, "encode", "TooLarge", "too large")], given)
    assert (reject.offset, reject.original) == (2, b"c")


def test_a_payload_that_came_compressed_is_not_sent_as_it_came() -> None:
    """A target that takes the compressed form would take it for the payload."""
    given = records([GOOD, GOOD])
    zipped = own_field("mars", "zipped", pa.binary(), of_value=True)
    packed = given.append_column(zipped, pa.array([b"zip", None])).append_column("mars.flag", pa.array([1, 2]))
    kept = Pipeline({"parse": PARSE, "transforms": [{"keep": ["id"]}]}).shape(packed).kept
    assert kept.column("value").to_pylist() == [b'{"id":1}'] * 2
    assert (kept.column("mars.zipped").null_count, kept.column("mars.flag").to_pylist()) == (2, [1, 2])
    checked = Pipeline({"parse": PARSE}).shape(packed).kept
    assert checked.column("mars.zipped").to_pylist() == [b"zip", None]


ANY = st.lists(
    st.binary(max_size=40)
    | st.dictionaries(st.sampled_from(["id", "price"]), st.integers()).map(lambda value: json.dumps(value).encode()),
    max_size=8,
)


@given(ANY)
def test_any_bytes_are_delivered_filtered_or_rejected_each_once(given_bodies: list[bytes]) -> None:
    steps = [{"filter": "$.id > 0"}, {"cast": {"id": "int8"}}, {"drop": ["price"]}]
    made = shaped({"parse": PARSE, "transforms": steps}, *given_bodies)
    offsets = [*made.kept.column("offset").to_pylist(), *made.filtered, *(one.offset for one in made.rejected)]
    assert sorted(offsets) == list(range(len(given_bodies)))
    assert [one.original for one in made.rejected] == [given_bodies[one.offset] for one in made.rejected]


@pytest.mark.parametrize("count", [0, 1])
def test_small_batches(count: int) -> None:
    assert len(shaped({"parse": PARSE, "transforms": [{"drop": ["id"]}]}, *[GOOD] * count).kept) == count


ORDERS = {"id": "int64", "price": "decimal(6,2)", "day": "date"}
ENVELOPED = {"parse": {"format": "json", "fields": ORDERS}, "encode": {"format": "json-schema", "flavor": "kafka"}}


def test_envelopes_are_written_and_read_and_rules_name_what_is_in_them() -> None:
    plain = b'{"id":1,"price":2.50,"day":"2026-01-31"}'
    rules = [{"name": "all", "keys": "{$.id}", "when": "$.price > 2"}]
    made = shaped(ENVELOPED | {"rules": rules}, plain, b'{"id":2,"price":1,"day":null}')
    [body] = bodies(made)
    assert made.kept.column("key").to_pylist() == ["1"]
    assert json.loads(body)["payload"] == {"id": 1, "price": "APo=", "day": 20484}
    read = {"format": "json-schema", "fields": ORDERS}
    assert bodies(shaped({"parse": read, "encode": {"format": "json"}}, body)) == [plain]
    passed = shaped({"parse": read, "rules": rules}, body, plain)
    assert (bodies(passed), passed.kept.column("key").to_pylist()) == ([body], ["1"])
    [reject] = passed.rejected
    assert (reject.stage, reject.original) == ("parse", plain)
    assert "schema" in reject.message


def test_a_moment_finer_than_a_millisecond_is_not_rounded_in_an_envelope() -> None:
    document = {"parse": {"format": "json", "fields": {"at": "timestamp"}}, "encode": {"format": "json-schema"}}
    made = shaped(document, b'{"at":"2026-01-02T03:04:05.000001Z"}', b'{"at":"2026-01-02T03:04:05.001Z"}')
    assert [json.loads(one)["payload"] for one in bodies(made)] == [{"at": 1767323045001}]
    [reject] = made.rejected
    assert (reject.stage, reject.offset) == ("encode", 0)
    assert "finer than a millisecond" in reject.message


def test_rules_name_long_numbers_of_envelopes_with_all_digits() -> None:
    fields = {"n": "decimal(38,0)"}
    document = {
        "parse": {"format": "json", "fields": fields},
        "encode": {"format": "json-schema"},
        "rules": [{"name": "all", "keys": "{$.n}"}],
    }
    made = shaped(document, b'{"n":12345678901234567890123456789012345678}')
    assert made.kept.column("key").to_pylist() == ["12345678901234567890123456789012345678"]


def test_a_payload_that_is_one_text_is_a_field_and_may_be_delivered_as_one() -> None:
    given = (b"first", b"", "Z\u00f6e".encode(), b"\xff")
    steps = [{"filter": "$.text <> 'first'"}, {"record": {"headers": {"from": "desk"}}}]
    made = shaped({"parse": {"format": "text"}, "transforms": steps, "encode": {"format": "text"}}, *given)
    assert bodies(made) == [b"", "Z\u00f6e".encode()]
    assert made.kept.column("headers").to_pylist() == [b"from\x01desk\x02"] * 2
    assert [(one.offset, one.stage, one.message) for one in made.rejected] == [
        (3, "parse", "Not of format text: It is no UTF-8")
    ]
    hoisted = [{"rename": {"text": "line"}}, {"set": {"data_source": "test-file-source"}}]
    assert bodies(shaped({"parse": {"format": "text"}, "transforms": hoisted}, b"foo")) == [
        b'{"line":"foo","data_source":"test-file-source"}'
    ]
    rules = [{"name": "one", "when": "$.text = 'first'"}]
    assert bodies(shaped({"parse": {"format": "text"}, "rules": rules}, *given)) == [b"first"]


def test_one_field_is_written_as_its_text_alone_and_a_missing_one_is_rejected() -> None:
    document = {"parse": PARSE, "transforms": [{"keep": ["price"]}], "encode": {"format": "text"}}
    rules = [{"name": "all", "tags": "{$.price}"}]
    made = shaped(document | {"rules": rules}, GOOD, b'{"id": 1}')
    assert bodies(made) == [b"2.50"]
    assert made.kept.column("tags").to_pylist() == ["2.5"]
    assert [(one.offset, one.stage, one.message) for one in made.rejected] == [
        (1, "encode", "The field is missing, or has no text")
    ]
