"""Payloads of Avro that become rows, are changed, and become Avro again; or another format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_core.errors import Unreachable
from connect_core.pipeline.digest import has_rows, pipeline_digest
from connect_core.pipeline.shaping import Pipeline
from connect_core.replication.worker.rejects import shape
from connect_core.rows.avro_frames import fingerprint
from connect_core.sdk.testing.driving import records
from tests.unit.pipeline.test_reshaping import GOOD, PARSE, bodies, shaped

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {
            "name": "who",
            "type": ["null", {"type": "record", "name": "Who", "fields": [{"name": "name", "type": "string"}]}],
        },
    ],
}
VALUE = b"\2\4\x00\xfa\2\x08Z\xc3\xb6e"
JSON_VALUE = '{"id":1,"price":2.50,"who":{"name":"Zöe"}}'.encode()


@pytest.mark.parametrize(
    ("framing", "before"),
    [
        ({}, b""),
        ({"framing": "single-object"}, b"\xc3\x01" + fingerprint(ORDER)),
        ({"framing": "registry", "schema_id": 258}, b"\0\0\0\1\2"),
    ],
)
def test_json_becomes_avro_and_avro_json(framing: dict[str, Any], before: bytes) -> None:
    written = {"format": "avro", "avro_schema": ORDER, **framing}
    made = shaped({"parse": PARSE, "encode": written}, GOOD, b'{"id":null,"price":1,"who":null}')
    assert bodies(made) == [before + VALUE]
    [reject] = made.rejected
    assert (reject.stage, reject.offset) == ("encode", 1)
    assert reject.message.endswith("id: missing, and the schema does not let it be")
    back = shaped({"parse": written, "encode": {"format": "json"}}, before + VALUE, b"\xff", GOOD)
    assert bodies(back) == [JSON_VALUE]
    assert [(one.stage, one.kind, one.original) for one in back.rejected] == [
        ("parse", "NotParsed", b"\xff"),
        ("parse", "NotParsed", GOOD),
    ]


def test_avro_that_nothing_changes_is_delivered_as_it_came_and_rules_name_what_is_in_it() -> None:
    rules = [{"name": "all", "keys": "{$.id}-{$.who.name}", "when": "$.price > 2"}]
    document = {"parse": {"format": "avro", "avro_schema": ORDER}, "rules": rules}
    made = shaped(document, VALUE, VALUE[:-1])
    assert (bodies(made), made.kept.column("key").to_pylist()) == ([VALUE], ["1-Zöe"])
    assert made.rejected[0].message == "Not of format avro: not Avro of its schema: it ends too early"
    encode = {"encode": {"format": "avro"}, "transforms": [{"drop": ["price"]}]}
    changed = shaped({"parse": document["parse"], **encode}, VALUE)
    assert bodies(changed) == [b"\2\2\2\2\x08Z\xc3\xb6e"], "each field may be missing in a schema that is made"


def test_texts_become_avro_of_a_schema_that_is_made() -> None:
    document = {
        "parse": {"format": "csv", "columns": ["site", "temp"]},
        "transforms": [{"cast": {"temp": "int32"}}],
        "encode": {"format": "avro"},
    }
    assert bodies(shaped(document, b"north,21", b"south,")) == [b"\2\x0anorth\2\x2a", b"\2\x0asouth\0"]


def test_the_schema_and_the_framing_are_a_part_of_the_pipeline() -> None:
    parse = {"format": "avro", "avro_schema": ORDER}
    assert has_rows({"parse": parse})
    others = [
        {"parse": parse, "encode": {"format": "avro", **more}}
        for more in (
            {},
            {"framing": "registry", "schema_id": 1},
            {"framing": "registry", "schema_id": 2},
            {"record": "A"},
        )
    ]
    assert len({pipeline_digest(one) for one in others}) == len(others)


def test_a_registry_that_is_away_stops_the_run_and_rejects_nothing() -> None:
    def lookup(number: int) -> object:
        raise Unreachable("The registry does not answer", where="here")

    parse = {"format": "avro", "framing": "registry", "registry": {"url": "http://x"}, "fields": {"id": "int64"}}
    pipeline = Pipeline({"parse": parse}, None, lookup)
    with pytest.raises(Unreachable):
        shape(pipeline, records([b"\0\0\0\0\1\2"]))
    known = Pipeline({"parse": parse}, None, lambda number: {**ORDER, "fields": ORDER["fields"][:1]})
    assert len(shape(known, records([b"\0\0\0\0\1\2"])).kept) == 1


def test_numbers_that_json_has_not_pass_in_avro() -> None:
    import struct

    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "double"}]}
    some = [struct.pack("<d", float(one)) for one in ("nan", "inf", "-inf", "-0.0")]
    part = {"format": "avro", "avro_schema": schema}
    assert bodies(shaped({"parse": part, "encode": part}, *some)) == some
    made = shaped({"parse": part, "encode": {"format": "json"}}, *some)
    assert [json.loads(one) for one in bodies(made)] == [{"x": -0.0}]
    assert [one.stage for one in made.rejected] == ["encode"] * 3


FAR: dict[str, Any] = {
    "type": "record",
    "name": "shop.Far",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "f", "type": "double"},
    ],
}


@pytest.mark.parametrize(
    ("rule", "bad", "keys"),
    [
        ({"keys": "{$.id}"}, [], ["1", "2", "3"]),
        ({"keys": "{$.day}"}, [1], ["1970-01-01", "1970-01-01"]),
        ({"keys": "{$.id}", "when": "$.f >= 0 OR $.id > 0"}, [2], ["1", "2"]),
        ({"keys": "{payload:text}"}, [], None),
    ],
)
def test_rules_reject_what_has_no_text_where_they_name_it_and_nothing_else(
    rule: dict[str, str], bad: list[int], keys: list[str] | None
) -> None:
    """They do not take the whole row to be missing."""
    sent = [(1, 0, 0.5), (2, 2_932_897, 0.5), (3, 0, float("nan"))]
    made = shaped(
        {"parse": {"format": "avro", "avro_schema": FAR}, "rules": [{"name": "all", **rule}]}, *map(_far, sent)
    )
    assert [(one.offset, one.stage) for one in made.rejected] == [(offset, "encode") for offset in bad]
    assert all("rules: " in one.message for one in made.rejected)
    assert made.filtered == ()
    assert len(made.kept) == 3 - len(bad)
    if keys is not None:
        assert made.kept.column("key").to_pylist() == keys


def _far(one: tuple[int, int, float]) -> bytes:
    from io import BytesIO

    from fastavro import parse_schema, schemaless_writer

    stream = BytesIO()
    number, day, fraction = one
    plain = {
        **FAR,
        "fields": [{"name": name, "type": of} for name, of in (("id", "long"), ("day", "int"), ("f", "double"))],
    }
    schemaless_writer(stream, parse_schema(plain), {"id": number, "day": day, "f": fraction})
    return stream.getvalue()
