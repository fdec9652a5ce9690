"""Payloads of Protobuf that become rows, are changed, and become Protobuf again; or another format."""

from __future__ import annotations

from typing import Any

import pytest

from connect_core.errors import Unreachable
from connect_core.pipeline.digest import has_rows, pipeline_digest
from connect_core.pipeline.shaping import Pipeline
from connect_core.replication.worker.rejects import shape
from connect_core.sdk.testing.driving import records
from tests.protobuf import descriptor_set, descriptors
from tests.unit.pipeline.test_reshaping import bodies, shaped

TEXT = """syntax = "proto3"; package shop;
message Customer { string name = 1; }
message Order { int64 id = 1; optional double price = 2; Customer who = 3; State state = 4; }
enum State { open = 0; paid = 1; }
"""
PART: dict[str, Any] = {"message": "shop.Order", "descriptors": descriptors(TEXT)}
FIELDS = {"id": "int64", "price": "float64", "who": {"name": "text"}, "state": "text"}
PARSE = {"format": "json", "fields": FIELDS}
GOOD = '{"id":1,"price":2.5,"who":{"name":"Zöe"},"state":"paid"}'.encode()
VALUE = b"\x08\1\x11\0\0\0\0\0\0\x04\x40\x1a\6\x0a\4Z\xc3\xb6e\x20\1"


@pytest.mark.parametrize(
    ("framing", "before"), [({}, b""), ({"framing": "registry", "schema_id": 258}, b"\0\0\0\1\2\2\2")]
)
def test_json_becomes_protobuf_and_protobuf_json(framing: dict[str, Any], before: bytes) -> None:
    written = {"format": "protobuf", **PART, **framing}
    made = shaped({"parse": PARSE, "encode": written}, GOOD, b'{"id":null,"price":1,"who":null,"state":"open"}')
    assert bodies(made) == [before + VALUE]
    [reject] = made.rejected
    assert (reject.stage, reject.offset) == ("encode", 1)
    assert reject.message.endswith("id: missing, and the schema does not tell that from its default")
    back = shaped({"parse": written, "encode": {"format": "json"}}, before + VALUE, b"\xff", GOOD)
    assert bodies(back) == [GOOD]
    assert [(one.stage, one.kind, one.original) for one in back.rejected] == [
        ("parse", "NotParsed", b"\xff"),
        ("parse", "NotParsed", GOOD),
    ]


def test_protobuf_that_nothing_changes_is_delivered_as_it_came_and_rules_name_what_is_in_it() -> None:
    rules = [{"name": "all", "keys": "{$.id}-{$.who.name}", "when": "$.price > 2"}]
    made = shaped({"parse": {"format": "protobuf", **PART}, "rules": rules}, VALUE, VALUE[:-1])
    assert (bodies(made), made.kept.column("key").to_pylist()) == ([VALUE], ["1-Zöe"])
    assert made.rejected[0].message == "Not of format protobuf: not Protobuf of its schema: it ends too early"
    known = {"parse": {"format": "protobuf", "unknown": "drop", **PART}}
    more = VALUE + b"\x28\1"
    assert bodies(shaped(known, more)) == [more]
    assert (
        "field 5, which the schema does not have"
        in shaped({"parse": {**known["parse"], "unknown": "reject"}}, more).rejected[0].message
    )


def test_the_message_and_the_framing_are_a_part_of_the_pipeline() -> None:
    assert has_rows({"parse": {"format": "protobuf", **PART}})
    others = [
        {"parse": PARSE, "encode": {"format": "protobuf", **PART, **more}}
        for more in ({}, {"framing": "registry", "schema_id": 1}, {"framing": "registry", "schema_id": 2})
    ]
    assert len({pipeline_digest(one) for one in others}) == len(others)


def test_a_registry_that_is_away_stops_the_run_and_rejects_nothing() -> None:
    def lookup(number: int) -> object:
        raise Unreachable("The registry does not answer", where="here")

    parse = {"format": "protobuf", "framing": "registry", "registry": {"url": "http://x"}, "fields": FIELDS}
    value = b"\0\0\0\0\1\2\2" + VALUE
    with pytest.raises(Unreachable):
        shape(Pipeline({"parse": parse}, None, lookup), records([value]))
    known = Pipeline({"parse": parse}, None, lambda number: descriptor_set(TEXT))
    assert len(shape(known, records([value])).kept) == 1
