"""Keys in a format: their fields become fields of the row, and keys are made of fields."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.keyed_rows import key_writer, row_reader
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.rows.types import Type, as_written
from connect_core.sdk.batches import ROW
from connect_core.sdk.testing.driving import records
from tests.unit.rows.strategies import rows

KEYED = {"format": "json", "fields": {"name": "text"}, "key_format": "json", "key_fields": {"id": "int64"}}
ANN, BOB = b'{"name":"Ann"}', b'{"name":"Bob"}'


def shaped(document: dict[str, Any], *given: tuple[str | None, bytes | None], **more: Any) -> Shaped:
    batch = records([value for _, value in given], key=[key for key, _ in given])
    return Pipeline(document, **more).shape(batch)


def envelope(payload: object, kind: str = "int64") -> str:
    schema = {"type": "struct", "fields": [{"type": kind, "optional": False, "field": "id"}], "optional": False}
    return json.dumps({"schema": schema, "payload": payload})


def column(made: Shaped, name: str = "value") -> list[Any]:
    return [one.decode() if isinstance(one, bytes) else one for one in made.kept.column(name).to_pylist()]


def reasons(made: Shaped) -> list[tuple[int, str, str]]:
    return [(one.offset, one.stage, one.message) for one in made.rejected]


def test_the_fields_of_a_key_come_before_those_of_the_payload() -> None:
    made = shaped({"parse": KEYED, "encode": {"format": "json"}}, ('{"id": 7}', ANN), ('{"id":8}', BOB))
    assert column(made) == ['{"id":7,"name":"Ann"}', '{"id":8,"name":"Bob"}']
    assert column(made, "key") == ['{"id": 7}', '{"id":8}'], "the key itself stays"
    prefixed = {"parse": KEYED | {"key_prefix": "key_"}, "encode": {"format": "json"}}
    assert column(shaped(prefixed, ('{"id":7}', ANN))) == ['{"key_id":7,"name":"Ann"}']


def test_a_sink_of_rows_is_given_them() -> None:
    made = shaped({"parse": KEYED}, ('{"id":7}', ANN), shows_rows=True)
    assert made.kept.column(ROW).to_pylist() == [{"id": 7, "name": "Ann"}]


def test_a_key_that_does_not_fit_rejects_its_record_with_all_that_it_had() -> None:
    made = shaped(
        {"parse": KEYED, "encode": {"format": "json"}},
        *(('{"id":1}', ANN), ("7", ANN), (None, ANN), ('{"id":"7"}', ANN), ('{"id":2,"x":1}', ANN)),
        *(('{"id":3}', b"no JSON"), ("neither", b"no JSON"), ('{"id":4}', BOB)),
    )
    assert column(made) == ['{"id":1,"name":"Ann"}', '{"id":4,"name":"Bob"}']
    words = "Its key is not of format json: "
    assert [(offset, stage) for offset, stage, _ in reasons(made)] == [(place, "parse") for place in range(1, 7)]
    assert [message.startswith(words) for _, _, message in reasons(made)] == [True] * 4 + [False] * 2
    assert reasons(made)[0] == (1, "parse", f"{words}not one JSON object")
    assert reasons(made)[1] == (2, "parse", f"{words}no value")
    assert reasons(made)[4] == (5, "parse", "Not of format json: not one JSON object")
    first = made.rejected[0]
    assert (first.original, first.attributes) == (ANN, {"key": "7"}), "a replay reads both again"


def test_a_record_without_a_payload_is_no_deletion() -> None:
    made = shaped({"parse": KEYED}, ('{"id":7}', None), ('{"id":7}', b""))
    assert reasons(made) == [(0, "parse", "Not of format json: no value"), (1, "parse", "Not of format json: empty")]


def test_what_is_unknown_in_a_key_is_left_out_as_in_a_payload() -> None:
    parse = KEYED | {"unknown": "drop"}
    assert column(shaped({"parse": parse, "encode": {"format": "json"}}, ('{"x":1,"id":7}', b'{"y":1}'))) == [
        '{"id":7,"name":null}'
    ]


def test_a_key_in_an_envelope() -> None:
    parse = KEYED | {"key_format": "json-schema"}
    given = (envelope({"id": 7}), ANN), (envelope({"id": "7"}, "string"), ANN), ('{"id":7}', ANN)
    made = shaped({"parse": parse, "encode": {"format": "json"}}, *given)
    assert column(made) == ['{"id":7,"name":"Ann"}']
    words = "Its key is not of format json-schema: "
    assert reasons(made)[0] == (1, "parse", f"{words}id: the schema says string, the document int64")
    assert reasons(made)[1][2].startswith(f'{words}not one JSON object of "schema" and "payload" alone')


def test_rules_and_conditions_name_the_fields_of_a_key_where_the_payload_stays_as_it_is() -> None:
    rules = [{"name": "all", "when": "$.id > 7", "tags": "{$.name}-{$.id}"}]
    made = shaped({"parse": KEYED, "rules": rules}, ('{"id":7}', ANN), ('{"id":8}', BOB))
    assert (column(made), column(made, "tags")) == ([BOB.decode()], ["Bob-8"])
    made = shaped({"parse": KEYED, "filter": {"when": "$.id = 7"}}, ('{"id":7}', ANN), ('{"id":8}', BOB))
    assert column(made) == [ANN.decode()]


def test_a_key_is_made_of_fields_and_the_payload_stays_as_it_is() -> None:
    parse = {"format": "json", "fields": {"id": "int64", "site": "text", "n": "float64"}}
    document = {"parse": parse, "encode": {"key_format": "json", "key_fields": ["site", "id"]}}
    value = b'{"n": 1, "id": 7, "site": "a\\u0001 b"}'
    made = shaped(document, ("old", value), (None, b'{"id": 8}'))
    assert column(made, "key") == ['{"site":"a\\u0001 b","id":7}', '{"site":null,"id":8}']
    assert column(made) == [value.decode(), '{"id": 8}']


AT, FINER = "2026-01-31T10:00:00Z", "2026-01-31T10:00:00.000001Z"
"""The second has no form in an envelope."""


def times(id_: str, v: str) -> tuple[None, bytes]:
    return None, json.dumps({"id": id_, "v": v}).encode()


def test_a_record_of_which_key_or_payload_cannot_be_written_is_rejected() -> None:
    document = {
        "parse": {"format": "json", "fields": {"id": "timestamp", "v": "timestamp"}},
        "transforms": [{"rename": {"id": "at"}}],
        "encode": {"format": "json-schema", "flavor": "kafka", "key_format": "json-schema", "key_fields": ["at"]},
    }
    made = shaped(document, times(AT, AT), times(FINER, AT), times(AT, FINER), times(FINER, FINER), times(AT, AT))
    assert made.kept.column("offset").to_pylist() == [0, 4]
    assert [json.loads(one)["payload"] for one in column(made, "key")] == [{"at": 1769853600000}] * 2
    assert "org.apache.kafka.connect.data.Timestamp" in column(made, "key")[0]
    assert [json.loads(one)["payload"].keys() for one in column(made)] == [{"at", "v"}] * 2
    assert [(offset, stage) for offset, stage, _ in reasons(made)] == [(1, "encode"), (2, "encode"), (3, "encode")]
    starts = [message.split(": ")[:2] for _, _, message in reasons(made)]
    assert starts[0] == starts[2] == ["key", "at"]
    assert starts[1][0] == "v"


def test_change_events_get_the_key_of_their_row() -> None:
    event = {"before": {"id": 7, "v": "a"}, "after": None, "op": "d"}
    document = {
        "parse": {"format": "debezium", "fields": {"id": "int64", "v": "text"}},
        "transforms": [{"mask": {"v": "redact"}}],
        "encode": {"format": "debezium", "key_format": "json", "key_fields": ["id"]},
    }
    made = shaped(document, (None, json.dumps(event).encode()), (None, b"{}"))
    assert column(made, "key") == ['{"id":7}']
    assert json.loads(column(made)[0])["before"] == {"id": 7, "v": "***"}


@given(rows(), st.sampled_from(["json", "json-schema"]), st.sampled_from(["", "key_", "ключ."]))
def test_a_key_that_is_written_is_read_as_it_was(made: tuple[Type, pa.StructArray], form: str, prefix: str) -> None:
    of, some = made
    names = [name for name, _ in of.fields]
    written = key_writer({"key_format": form, "key_fields": names}, of)(some, records([b"x"] * len(some)))
    unfit = [row for row, _ in written.unfit]
    assert all("millisecond" in why for _, why in written.unfit)
    parse = {"format": "text", "key_format": form, "key_fields": as_written(of), "key_prefix": prefix}
    read = row_reader(parse, None)(written.records)
    assert read.unfit == []
    kept = some.take(pa.array(sorted(set(range(len(some))) - set(unfit)), pa.int64()))
    assert [field.name for field in read.rows.type] == [*(prefix + name for name in names), "text"]
    for place, field in enumerate(some.type):
        assert read.rows.field(place).equals(kept.field(place))
        assert read.rows.type.field(place).equals(field.with_name(prefix + field.name), check_metadata=True)


@given(st.lists(st.tuples(st.none() | st.text() | st.just('{"id":1}'), st.binary() | st.just(ANN)), max_size=6))
def test_whatever_comes_is_a_row_or_has_a_reason(given: list[tuple[str | None, bytes]]) -> None:
    made = shaped({"parse": KEYED, "encode": {"format": "json"}}, *given)
    fits = [place for place, (key, value) in enumerate(given) if (key, value) == ('{"id":1}', ANN)]
    passed = made.kept.column("offset").to_pylist()
    assert set(fits) <= set(passed)
    assert sorted([*passed, *(one.offset for one in made.rejected)]) == list(range(len(given)))


@pytest.mark.parametrize("form", ["json", "json-schema"])
def test_many_records_are_read_as_each_alone(form: str) -> None:
    some = [(envelope({"id": n}) if form == "json-schema" else f'{{"id":{n}}}', ANN) for n in range(1000)]
    some[500] = ("broken", ANN)
    made = shaped({"parse": KEYED | {"key_format": form}, "encode": {"format": "json"}}, *some)
    assert [json.loads(one)["id"] for one in column(made)] == [n for n in range(1000) if n != 500]
