"""Changes of rows in a pipeline: what steps make of a row, they make of how it was before, too."""

from __future__ import annotations

import json
from typing import Any

from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.testing.driving import records
from tests.unit.rows.test_debezium import event

PARSE = {"format": "debezium", "fields": {"id": "int64", "card": "text", "state": "text"}}
OPEN = {"id": 1, "card": "4000", "state": "open"}
PAID = OPEN | {"state": "paid"}


def shaped(document: dict[str, Any], *bodies: bytes) -> Shaped:
    return Pipeline({"parse": PARSE, **document}).shape(records(list(bodies)))


def payloads(made: Shaped) -> list[dict[str, Any]]:
    return [json.loads(one) for one in made.kept.column("value").to_pylist()]


def test_a_mask_hides_what_was_there_before_too() -> None:
    steps = [{"mask": {"card": "redact"}}, {"rename": {"id": "order"}}, {"drop": ["state"]}]
    made = shaped(
        {"transforms": steps, "encode": {"format": "debezium"}},
        event("c", None, OPEN),
        event("u", OPEN, PAID),
        event("d", PAID, None),
    )
    hidden = {"order": 1, "card": "***"}
    assert [(one["op"], one["before"], one["after"]) for one in payloads(made)] == [
        ("c", None, hidden),
        ("u", hidden, hidden),
        ("d", hidden, None),
    ]
    assert b"4000" not in b"".join(made.kept.column("value").to_pylist())
    assert made.kept.schema.equals(RECORD_SCHEMA)


def test_a_filter_is_about_the_row_as_it_is() -> None:
    document = {"transforms": [{"filter": "$.state = 'paid'"}], "encode": {"format": "debezium"}}
    made = shaped(document, event("c", None, OPEN), event("u", OPEN, PAID), event("u", PAID, OPEN))
    assert made.filtered == (0, 2)
    assert [one["before"] for one in payloads(made)] == [OPEN]


def test_what_cannot_be_done_with_the_row_before_rejects_the_change_once() -> None:
    document = {"transforms": [{"cast": {"card": "int32"}}], "encode": {"format": "debezium"}}
    bad = OPEN | {"card": "x"}
    made = shaped(document, event("u", OPEN, PAID), event("u", bad, PAID), event("u", bad, bad), event("u", PAID, OPEN))
    assert [one["before"]["state"] for one in payloads(made)] == ["open", "paid"]
    assert [(one.offset, one.stage, one.message) for one in made.rejected] == [
        (1, "transform", "before: cast of card: this text is no int32"),
        (2, "transform", "cast of card: this text is no int32"),
    ]


def test_what_happened_is_a_name_for_conditions_and_templates() -> None:
    steps = [{"filter": "change:operation <> 'snapshot'"}, {"keep": ["id"]}, {"set": {"op": "{change:operation}"}}]
    bodies = [event("c", None, OPEN), event("r", None, OPEN), event("u", None, OPEN), event("d", OPEN, None)]
    made = shaped({"transforms": steps}, *bodies)
    assert [one["op"] for one in payloads(made)] == ["create", "update", "delete"]
    assert made.filtered == (1,)


def of_table(table: Any, op: str = "c", **envelope: Any) -> bytes:
    bare = json.loads(event(op, OPEN, OPEN)) | {"source": {"table": table}}
    return json.dumps({**envelope, "payload": bare} if envelope else bare).encode()


def test_the_table_of_a_row_is_a_name_for_conditions_and_templates() -> None:
    """Whatever steps and `encode` make of the event."""
    bodies = [
        of_table("orders"),
        of_table("people", "d"),
        of_table("orders", schema=None),
        of_table(7),
        event("c", None, OPEN),
    ]
    rules = [
        {"name": "orders", "when": "change:table = 'orders' AND change:operation = 'create'", "tags": "{change:table}"},
        {"name": "none", "when": "change:table IS NULL"},
    ]
    for form in (
        {},
        {"encode": {"format": "debezium", "origin": {"table": "x"}}},
        {"transforms": [{"drop": ["card"]}]},
    ):
        made = shaped({"rules": rules, **form}, *bodies)
        assert made.kept.column("tags").to_pylist() == ["orders", "orders", None, None]
        assert made.filtered == (1,)
        assert made.kept.schema.equals(RECORD_SCHEMA)
    made = shaped({"transforms": [{"filter": "change:table <> 'orders'"}]}, *bodies)
    assert (made.filtered, made.kept.schema.equals(RECORD_SCHEMA)) == ((0, 2, 3, 4), True)
    made = shaped({"transforms": [{"set": {"state": "{change:table}"}}]}, *bodies)
    assert [one["state"] for one in payloads(made)] == ["orders", "people", "orders", "", ""]


def test_an_event_that_nothing_changes_is_delivered_as_it_came() -> None:
    rules = [{"name": "all", "keys": "{$.id}"}]
    made = shaped({"rules": rules}, event("u", OPEN, PAID, more=1), b"{}")
    assert made.kept.column("value").to_pylist() == [event("u", OPEN, PAID, more=1)]
    assert made.kept.column("key").to_pylist() == ["1"]
    assert [one.stage for one in made.rejected] == ["parse"]


def test_rows_that_are_no_changes_become_rows_that_are_new() -> None:
    parse = {"format": "json", "fields": {"id": "int64"}}
    document = {"parse": parse, "encode": {"format": "debezium", "origin": {"table": "orders"}}}
    [made] = payloads(Pipeline(document).shape(records([b'{"id": 1}'])))
    assert (made["op"], made["before"], made["after"], made["source"]["table"]) == ("c", None, {"id": 1}, "orders")
