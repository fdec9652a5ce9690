"""Debezium's transforms in flat documents, as its documentation configures them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from connect_core.sdk.records import header_pairs
from tests.unit.config.test_peer_transforms import KAFKA, PREDICATES, SINK, SOURCE, Read, chain, kafka, made, read

__all__ = ["read"]

UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
EVENTS = {
    **SINK,
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "waybill.fields": {"pk": "int32", "cola": "text"},
}
ROW = {
    "type": "struct",
    "fields": [
        {"type": "int32", "optional": False, "field": "pk"},
        {"type": "string", "optional": True, "field": "cola"},
    ],
    "optional": True,
    "name": "server1.inventory.t.Value",
}
ENVELOPE = {
    "type": "struct",
    "fields": [
        {**ROW, "field": "before"},
        {**ROW, "field": "after"},
        {"type": "struct", "fields": [{"type": "string", "optional": False, "field": "table"}], "field": "source"},
        {"type": "string", "optional": False, "field": "op"},
    ],
    "name": "server1.inventory.t.Envelope",
}


def event(op: str, before: object, after: object) -> bytes:
    payload = {"before": before, "after": after, "source": {"table": "t"}, "op": op, "ts_ms": 1}
    return json.dumps({"schema": ENVELOPE, "payload": payload}).encode()


OLD, NEW = {"pk": 2, "cola": None}, {"pk": 2, "cola": "new"}
CHANGES = [event("c", None, OLD), event("r", None, NEW), event("u", OLD, NEW), event("d", OLD, None)]


def unwrap(**options: str) -> dict[str, Any]:
    return {"type": UNWRAP, **{key.replace("_", "."): value for key, value in options.items()}}


def values(read: Read, *transforms: dict[str, Any]) -> list[dict[str, Any]]:
    checked = read({**EVENTS, **chain(*transforms)})
    return [json.loads(one["value"]) for one in made(checked, *CHANGES, topic=["foo"] * len(CHANGES))]


def test_the_configuration_that_has_nothing_but_its_class(read: Read) -> None:
    """transforms=unwrap,... transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState"""
    checked = read({**EVENTS, **chain(unwrap())})
    assert checked.data["parse"] == {"format": "debezium", "fields": {"pk": "int32", "cola": "text"}}
    assert checked.data["transforms"] == [{"filter": "change:operation <> 'delete'"}]
    assert values(read, unwrap()) == [OLD, NEW, NEW]


@pytest.mark.parametrize(
    "options",
    [
        {"delete_tombstone_handling_mode": "drop"},
        {"delete_tombstone_handling_mode": "tombstone"},
        {"delete_handling_mode": "drop", "drop_tombstones": "false"},
        {"drop_fields_keep_schema_compatible": "false", "replace_null_with_default": "false", "route_by_field": "cola"},
    ],
)
def test_modes_that_leave_deleted_rows_out(options: dict[str, str], read: Read) -> None:
    assert values(read, unwrap(**options)) == [OLD, NEW, NEW]


@pytest.mark.parametrize(
    "options",
    [
        {"drop_tombstones": "false", "delete_handling_mode": "rewrite"},
        {"delete_tombstone_handling_mode": "rewrite"},
        {"delete_tombstone_handling_mode": "rewrite-with-tombstone", "delete_handling_mode": "drop"},
    ],
)
def test_modes_that_mark_deleted_rows(options: dict[str, str], read: Read) -> None:
    """The documentation's own record: {"pk": 2, "cola": null, "__deleted": "true"}"""
    told = [one | {"__deleted": "false"} for one in (OLD, NEW, NEW)]
    assert values(read, unwrap(**options)) == [*told, {"pk": 2, "cola": None, "__deleted": "true"}]


def test_what_an_event_did_is_a_field_or_a_header(read: Read) -> None:
    rewrite = {"delete_tombstone_handling_mode": "rewrite"}
    found = values(read, unwrap(add_fields="op", **rewrite))
    assert [(one["__op"], one["__deleted"]) for one in found] == [
        ("c", "false"),
        ("r", "false"),
        ("u", "false"),
        ("d", "true"),
    ]
    assert list(found[0]) == ["pk", "cola", "__op", "__deleted"]
    assert values(read, unwrap(add_fields="op:OPERATION", add_fields_prefix="x."))[0] == OLD | {"x.OPERATION": "c"}
    for more in ({}, {"add_fields": "op"}):
        checked = read({**EVENTS, **chain(unwrap(add_headers="op,op:what", **more))})
        [first, *_] = made(checked, *CHANGES, topic=["foo"] * 4)
        assert sorted(header_pairs(first["headers"])) == [("__op", "c"), ("__what", "c")]
        assert json.loads(first["value"]) == (OLD | {"__op": "c"} if more else OLD)


def test_transforms_behind_it_work_on_the_row(read: Read) -> None:
    found = values(
        read, unwrap(), kafka("ReplaceField$Value", renames="cola:name"), kafka("Cast$Value", spec="pk:string")
    )
    assert found[0] == {"pk": "2", "name": None}


def test_events_of_some_topics_are_left_out_before(read: Read) -> None:
    predicate = {"predicates": "p", "predicates.p.type": f"{PREDICATES}TopicNameMatches", "predicates.p.pattern": "foo"}
    checked = read({**EVENTS, **chain(kafka("Filter", predicate="p", negate="true"), unwrap()), **predicate})
    assert [json.loads(one["value"]) for one in made(checked, *CHANGES[:2], topic=["foo", "bar"])] == [OLD]


@pytest.mark.parametrize(
    ("flat", "fault"),
    [
        ({**SOURCE, **chain(unwrap())}, "transforms.a.type: line 1: is for change events in a topic"),
        ({**SINK, **chain(unwrap())}, "transforms.a.type: line 1: is for change events in a topic"),
        (
            {**EVENTS, "value.converter.schemas.enable": "false", **chain(unwrap())},
            "value.converter: line 1: Debezium's transform leaves events without a schema as they are",
        ),
        (
            {
                **EVENTS,
                **chain(unwrap(drop_tombstones="false", delete_handling_mode="rewrite", add_fields="table,lsn")),
            },
            "transforms.a.add.fields: line 1: table: what an event says beside its row and op is not read",
        ),
        (
            {**EVENTS, **chain(unwrap(add_headers="source.ts_ms"))},
            "transforms.a.add.headers: line 1: source.ts_ms: what",
        ),
        (
            {**EVENTS, **chain(unwrap(delete_handling_mode="none"))},
            "transforms.a.delete.handling.mode: line 1: nothing here is a tombstone: rewrite keeps a deleted row",
        ),
        (
            {**EVENTS, **chain(unwrap(delete_tombstone_handling_mode="delete-to-tombstone"))},
            "transforms.a.delete.tombstone.handling.mode: line 1: nothing here is a tombstone",
        ),
        (
            {**EVENTS, **chain(unwrap(delete_tombstone_handling_mode="keep"))},
            "'keep' is none of rewrite, rewrite-with-tombstone, drop, tombstone",
        ),
        (
            {**EVENTS, **chain(unwrap(drop_tombstones="maybe"))},
            "transforms.a.drop.tombstones: line 1: 'maybe' is none of true, false",
        ),
        (
            {**EVENTS, **chain(unwrap(drop_fields_header_name="h"))},
            "transforms.a.drop.fields.header.name: line 1: which",
        ),
        (
            {**EVENTS, **chain(unwrap(replace_null_with_default="true"))},
            "transforms.a.replace.null.with.default: line 1",
        ),
        (
            {**EVENTS, **chain(unwrap(operation_header="true"))},
            "transforms.a.operation.header: line 1: unknown key of io.",
        ),
        (
            {**EVENTS, **chain(kafka("Cast$Value", spec="pk:string"), unwrap())},
            "transforms.b.type: line 1: has to come f",
        ),
        ({**EVENTS, **chain(unwrap(), unwrap())}, "transforms.b.type: line 1: has to come first"),
        (
            {**EVENTS, "waybill.fields": {"__deleted": "text"}, **chain(unwrap(delete_handling_mode="rewrite"))},
            "there is a field '__deleted' already",
        ),
        (
            {**EVENTS, **chain({"type": "io.debezium.transforms.Filter"})},
            "is not kept: it runs a script: write filter.wh",
        ),
        (
            {**EVENTS, **chain({"type": "io.debezium.transforms.outbox.EventRouter"})},
            "is not kept: write rules in a nat",
        ),
        ({**EVENTS, **chain({"type": f"{UNWRAP}s"})}, f"did you mean {UNWRAP}?"),
        ({**SINK, **chain({"type": f"{KAFKA}Flatten"})}, "did you mean"),
    ],
)
def test_what_cannot_be_kept_is_a_fault(flat: dict[str, Any], fault: str, faults: Callable[..., list[str]]) -> None:
    told = faults(json.dumps(flat), suffix=".json")
    assert any(fault in one for one in told), told
