"""Change events of Debezium: what is written is read as it was, and whatever is read is a change or has a reason."""

from __future__ import annotations

import json
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.debezium_reading import DebeziumReader
from connect_core.rows.debezium_writing import EventWriter
from connect_core.rows.json_reading import Read
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.records import OPERATION_CREATE, OPERATION_DELETE, OPERATION_NONE, OPERATIONS
from tests.unit.rows.strategies import rows
from tests.unit.rows.test_json_round_trip import JSON, WIDE, whole

SOURCE = {"name": "shop"}
NO_EVENT = "not one JSON object with op, before and after"
ROW = {"id": 1, "name": "Zoë"}
FIELDS = {"id": "int64", "name": "text"}


def read(fields: dict[str, Any], *bodies: bytes | None, unknown: Literal["reject", "drop"] = "reject") -> Read:
    return DebeziumReader(struct_of(fields), unknown=unknown).read(pa.array(bodies, pa.binary()))


def event(op: str | None = "c", before: object = None, after: object = None, **more: object) -> bytes:
    said = {} if op is None else {"op": op}
    return json.dumps({"before": before, "after": after, "source": {"lsn": 7, "db": "a{b"}, **said, **more}).encode()


def column(field: dict[str, Any], value: object) -> bytes:
    """An event of one column, with its schema as Debezium writes it."""
    image = {"type": "struct", "fields": [{"field": "x", "optional": True, **field}], "optional": True}
    fields = [{**image, "field": name} for name in ("before", "after")]
    schema = {"type": "struct", "fields": [*fields, {"type": "string", "field": "op"}], "name": "shop.Envelope"}
    return json.dumps({"schema": schema, "payload": {"before": None, "after": {"x": value}, "op": "c"}}).encode()


def test_a_value_that_the_event_does_not_have_is_none_of_the_row() -> None:
    gone, of_bytes = "__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
    some = [
        event("u", ROW, {"id": 1, "name": gone}),
        event("u", {"id": 2, "name": gone}, ROW),
        event("d", {"id": 3, "name": gone}),
        event("u", None, {"id": 4, "name": f"about {gone}"}),
    ]
    got = read(FIELDS, *some)
    assert [row for row, _ in got.unfit] == [0, 2]
    assert "name: the event does not have this value" in got.unfit[0][1]
    assert got.rows.to_pylist() == [ROW, {"id": 4, "name": f"about {gone}"}]
    assert got.before is not None
    assert got.before.to_pylist() == [None, None]
    kept = read({"b": "bytes"}, event("c", None, {"b": of_bytes}), event("c", None, {"b": "AP8="}))
    assert ([row for row, _ in kept.unfit], kept.rows.to_pylist()) == ([0], [{"b": b"\x00\xff"}])
    within = [{"x": [gone]}, {"x": ["a", gone, gone]}, {"x": ["a", None]}, {"x": None}]
    lists = read({"x": ["text"]}, *(event("c", None, one) for one in within))
    assert ([row for row, _ in lists.unfit], lists.rows.to_pylist()) == ([0, 1], within[2:])
    nested = read({"o": {"a": ["bytes"], "b": "int64"}}, event("c", None, {"o": {"a": [of_bytes], "b": 1}}))
    assert [row for row, _ in nested.unfit] == [0]
    texts = read({"x": "text"}, *(event("c", None, {"x": one}) for one in (of_bytes, gone.encode().hex(), "a")))
    assert [row for row, _ in texts.unfit] == [0, 1]
    left_out = read({"id": "int64"}, some[0], unknown="drop")
    assert (left_out.unfit, left_out.rows.to_pylist()) == ([], [{"id": 1}])


@given(rows(), st.booleans(), st.data())
def test_changes_that_are_written_are_read_as_they_were(
    made: tuple[Type, pa.StructArray], schemas: bool, data: st.DataObject
) -> None:
    of, some = made
    each = st.lists(st.integers(OPERATION_NONE, len(OPERATIONS) - 1), min_size=len(some), max_size=len(some))
    known = data.draw(st.lists(st.booleans(), min_size=len(some), max_size=len(some)))
    operations = pa.array(data.draw(each), pa.int8())
    places = pa.array([row if known[row] else None for row in reversed(range(len(some)))], pa.int64())
    before = some.take(places)
    events = EventWriter(SOURCE, schemas=schemas).written(
        some, before, operations, pa.nulls(len(some), pa.timestamp("ms"))
    )
    assert len(events.values) + len(events.unfit) == len(some)
    kept = pa.array(sorted(set(range(len(some))) - {row for row, _ in events.unfit}), pa.int64())
    found = DebeziumReader(of).read(events.values)
    assert found.unfit == []
    assert found.operations is not None
    assert found.before is not None
    found.rows.validate(full=True)
    found.before.validate(full=True)
    assert found.rows.type.equals(some.type, check_metadata=True)
    assert found.rows.equals(some.take(kept))
    assert found.operations.to_pylist() == [one or OPERATION_CREATE for one in operations.take(kept).to_pylist()]
    deleted = pc.equal(found.operations, OPERATION_DELETE)
    assert found.before.equals(pc.if_else(deleted, found.rows, before.take(kept)))


BODIES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    JSON.map(lambda one: json.dumps(one).encode()),
    st.builds(event, st.sampled_from(["c", "u", "d", "r", "t", "m", "x", None]), JSON, JSON),
    st.builds(lambda one, two: json.dumps({"schema": one, "payload": two}).encode(), JSON, JSON),
)


@given(st.lists(BODIES, max_size=8), st.sampled_from(["reject", "drop"]))
def test_whatever_comes_is_a_change_or_has_a_reason(
    some: list[bytes | None], unknown: Literal["reject", "drop"]
) -> None:
    found = DebeziumReader(WIDE, unknown=unknown).read(pa.array(some, pa.binary()))
    whole(Read(found.rows, found.unfit), len(some))
    assert found.operations is not None
    assert found.before is not None
    assert len(found.operations) == len(found.before) == len(found.rows)


@pytest.mark.parametrize(
    ("field", "value", "declared", "becomes"),
    [
        ({"type": "int32", "name": "io.debezium.time.Date"}, 20484, "date", "2026-01-31"),
        ({"type": "int32", "name": "io.debezium.time.Date"}, 20484, "int32", "20484"),
        ({"type": "int32", "name": "io.debezium.time.Time"}, 49510250, "time(ms)", "13:45:10.250"),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 49510250001, "time(us)", "13:45:10.250001"),
        ({"type": "int64", "name": "io.debezium.time.NanoTime"}, 49510250000001, "time(ns)", "13:45:10.250000001"),
        (
            {"type": "int64", "name": "io.debezium.time.Timestamp"},
            1769867110250,
            "datetime(ms)",
            "2026-01-31 13:45:10.250",
        ),
        ({"type": "int64", "name": "io.debezium.time.Timestamp"}, 5, "int64", "5"),
        (
            {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
            5,
            "epoch(ns)",
            "1970-01-01 00:00:00.000005000Z",
        ),
        (
            {"type": "int64", "name": "io.debezium.time.NanoTimestamp"},
            5,
            "datetime(ns)",
            "1970-01-01 00:00:00.000000005",
        ),
        (
            {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
            "2026-01-31T10:00:00.25+01:00",
            "timestamp(ms)",
            "2026-01-31 09:00:00.250Z",
        ),
        ({"type": "string", "name": "io.debezium.data.Json"}, '{"a": 1.0}', "text", '{"a": 1.0}'),
        ({"type": "string", "name": "io.debezium.data.Enum"}, "open", "text", "open"),
        ({"type": "int32", "name": "io.debezium.time.Year"}, 2026, "int32", "2026"),
        (
            {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
            "APo=",
            "decimal(6,2)",
            "2.50",
        ),
    ],
)
def test_what_the_schema_says_becomes_the_declared_type(
    field: dict[str, Any], value: object, declared: str, becomes: str
) -> None:
    found = read({"x": declared}, column(field, value))
    assert found.unfit == []
    [made] = found.rows.field("x").cast(pa.string()).to_pylist()
    assert made == becomes


@pytest.mark.parametrize(
    ("field", "declared"),
    [
        ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, "timestamp(us)"),
        ({"type": "int32", "name": "io.debezium.time.Date"}, "datetime(ms)"),
        ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, "datetime(ms)"),
        ({"type": "string"}, "int64"),
    ],
)
def test_a_type_that_the_schema_does_not_have_says_so(field: dict[str, Any], declared: str) -> None:
    [(_, why)] = read({"x": declared}, column(field, None)).unfit
    assert why.startswith("x: the schema says ")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (None, "empty: a tombstone has no row"),
        (b"", "empty: a tombstone has no row"),
        (b"\xff", "not UTF-8"),
        (b"[]", NO_EVENT),
        (b"{}", NO_EVENT),
        (b'{"op": "c"', "not JSON, from character 11 on"),
        (event(None, None, ROW), NO_EVENT),
        (event("t"), "a truncate, which says nothing of single rows"),
        (event("m"), "a message, which is of no row"),
        (event("x", None, ROW), "op is none that Debezium has"),
        (event("c", ROW, None), "no after"),
        (event("d", None, ROW), "no before of a delete"),
        (event("c", None, ROW | {"more": 1}), "a field that is not declared (unknown: drop leaves such out)"),
        (event("u", {"id": "x"}, ROW), "before: id: not a whole number that int64 holds"),
        (b'{"schema": {"fields": []}, "payload": {"op": "c", "after": {}}}', "the schema is not that of an event, "),
        (b'{"op": "c", "op": "d", "after": {}}', NO_EVENT),
    ],
)
def test_what_is_no_change_of_a_row_says_why(body: bytes | None, why: str) -> None:
    found = read(FIELDS, event("c", None, ROW), body)
    assert len(found.rows) == 1
    [(row, reason)] = found.unfit
    assert row == 1
    assert reason.startswith(why)


def test_the_source_may_hold_anything_and_fields_of_the_row_may_be_dropped() -> None:
    found = read(FIELDS, event("u", ROW | {"more": 1}, ROW, transaction={"id": "5"}), unknown="drop")
    assert found.unfit == []
    assert found.rows.to_pylist() == [ROW]
    assert found.before is not None
    assert found.before.to_pylist() == [ROW]


def test_an_event_is_what_debezium_writes() -> None:
    of = pa.array([{"id": 1}], pa.struct([("id", pa.int64())]))
    moments = pa.array([5], pa.timestamp("ms", "UTC"))
    written = EventWriter(SOURCE, schemas=False).written(of, pa.nulls(1, of.type), pa.array([1], pa.int8()), moments)
    source = {"name": "shop", "ts_ms": 5, "snapshot": "false"}
    assert json.loads(written.values[0].as_py()) == {
        "before": None,
        "after": {"id": 1},
        "source": source,
        "op": "c",
        "ts_ms": 5,
    }
