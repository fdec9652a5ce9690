"""Envelopes of Kafka Connect and RocketMQ Connect: what is written is read as it was, and whatever is read is a row or
has a reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.envelope_schemas import NAMES, Flavor
from connect_core.rows.envelope_writing import written_envelopes
from connect_core.rows.json_envelopes import EnvelopeReader
from connect_core.rows.json_reading import Read
from connect_core.rows.types import Type, struct_of
from tests.unit.rows.strategies import rows
from tests.unit.rows.test_json_round_trip import JSON, PIECES, WIDE, whole

FLAVORS: list[Flavor] = ["rocketmq", "kafka"]
KAFKA = NAMES["kafka"]


def read(fields: dict[str, Any], *bodies: bytes | None, unknown: Literal["reject", "drop"] = "reject") -> Read:
    return EnvelopeReader(struct_of(fields), unknown=unknown).read(pa.array(bodies, pa.binary()))


def envelope(fields: list[dict[str, Any]], payload: object, **more: Any) -> bytes:
    schema = {"type": "struct", "fields": fields, "optional": False}
    return json.dumps({"schema": schema, "payload": payload, **more}).encode()


def one(said: object, value: object, **more: Any) -> bytes:
    field = said if isinstance(said, dict) else {"type": said}
    return envelope([{"field": "x", "optional": True, **field, **more}], {"x": value})


def logical(name: str, kind: str, **parameters: str) -> dict[str, Any]:
    return {"type": kind, "name": f"{KAFKA}{name}", "version": 1, "parameters": parameters}


@given(rows(), st.sampled_from(FLAVORS))
def test_rows_that_are_written_are_read_as_they_were(made: tuple[Type, pa.StructArray], flavor: Flavor) -> None:
    of, some = made
    texts, unfit = written_envelopes(some, flavor)
    assert len(texts) + len(unfit) == len(some)
    assert all("millisecond" in reason for _, reason in unfit)
    kept = some.take(pa.array(sorted(set(range(len(some))) - {row for row, _ in unfit}), pa.int64()))
    found = EnvelopeReader(of).read(texts)
    found.rows.validate(full=True)
    assert found.unfit == []
    assert found.rows.type.equals(some.type, check_metadata=True)
    assert found.rows.equals(kept)
    assert written_envelopes(found.rows, flavor).values.equals(texts), "Arrow takes -0.0 for 0.0"


@st.composite
def _mutated(draw: st.DrawFn, valid: st.SearchStrategy[bytes]) -> bytes:
    text = bytearray(draw(valid))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3) | st.sampled_from(PIECES))
    return bytes(text)


SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["int8", "int64", "string", "bytes", "float", "map", "struct", "what"])},
        optional={"optional": st.booleans(), "name": st.just(f"{KAFKA}Decimal"), "field": st.sampled_from("ndtsl")},
    ),
    lambda of: (
        st.fixed_dictionaries({"type": st.just("struct"), "fields": st.lists(of), "field": st.just("s")})
        | st.fixed_dictionaries({"type": st.just("array"), "items": of, "field": st.just("l")})
    ),
)


def _bodies() -> st.SearchStrategy[bytes | None]:
    valid = rows(st.just(WIDE)).map(lambda made: (written_envelopes(made[1], "kafka").values.to_pylist() or [b"{}"])[0])
    pair = st.tuples(SCHEMAS | JSON, JSON, st.booleans()).map(_pair)
    return st.one_of(
        st.none(), st.binary(max_size=40), JSON.map(lambda one: json.dumps(one).encode()), _mutated(pair | valid)
    )


def _pair(made: tuple[object, object, bool]) -> bytes:
    schema, payload, first = made
    members = {"schema": schema, "payload": payload}
    return json.dumps(members if first else dict(reversed(members.items()))).encode()


@given(st.lists(_bodies(), max_size=8), st.sampled_from(["reject", "drop"]))
def test_whatever_comes_is_a_row_or_has_a_reason(some: list[bytes | None], unknown: Literal["reject", "drop"]) -> None:
    values = pa.array(some, pa.binary())
    reader = EnvelopeReader(WIDE, unknown=unknown)
    found = reader.read(values)
    whole(found, len(values))
    alone = [EnvelopeReader(WIDE, unknown=unknown).read(values.slice(row, 1)) for row in range(len(values))]
    assert [row for row, made in enumerate(alone) if made.unfit] == [row for row, _ in found.unfit]
    assert [made.unfit[0][1] for made in alone if made.unfit] == [reason for _, reason in found.unfit]
    assert found.rows.equals(pa.concat_arrays([made.rows for made in alone] or [found.rows]))


FITS = [
    # what the schema says, a value of it, the declared type, what it becomes
    ("boolean", True, "bool", True),
    ("int8", -128, "int8", -128),
    ("int16", 255, "uint8", 255),
    ("int32", 7, "int64", 7),
    ("int64", 9007199254740993, "int64", 9007199254740993),
    ("float", 1.5, "float64", 1.5),
    ("double", 0.1, "float64", 0.1),
    ("string", "Zoë", "text", "Zoë"),
    ("bytes", "AP8=", "bytes", b"\0\xff"),
    ("int64", 5, "epoch(s)", "1970-01-01 00:00:05Z"),
    ("string", "2026-01-31T10:00:00", "datetime(s)", "2026-01-31 10:00:00"),
    (logical("Decimal", "bytes", scale="2"), "APo=", "decimal(6,2)", "2.50"),
    (logical("Decimal", "bytes", scale="2"), "gA==", "decimal(6,3)", "-1.280"),
    (logical("Decimal", "bytes", scale="0"), "AP//////////", "uint64", 2**64 - 1),
    (logical("Date", "int32"), 20484, "date", "2026-01-31"),
    (logical("Time", "int32"), 49510250, "time(ms)", "13:45:10.250"),
    (logical("Timestamp", "int64"), 1769867110250, "timestamp(us)", "2026-01-31 13:45:10.250000Z"),
    ({"type": "array", "items": {"type": "int32", "optional": True}}, [1, None], ["int64"], [1, None]),
    ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}}, {"a": 1}, {"a": "int32"}, {"a": 1}),
    ({"type": "struct", "fields": [{"type": "int32", "field": "a"}]}, {"a": 1}, {"a": "int32"}, {"a": 1}),
]


@pytest.mark.parametrize(("said", "value", "declared", "becomes"), FITS)
def test_what_a_schema_says_becomes_the_declared_type(said: Any, value: Any, declared: Any, becomes: Any) -> None:
    body = one(said, value)
    for flavor in FLAVORS:
        found = read({"x": declared}, body.replace(KAFKA.encode(), NAMES[flavor].encode()))
        assert found.unfit == []
        column = found.rows.field("x")
        as_text = isinstance(becomes, str) and not pa.types.is_string(column.type)
        assert (column.cast(pa.string()) if as_text else column).to_pylist() == [becomes]
    assert read({"x": declared}, one(said, None)).rows.field("x").to_pylist() == [None]
    [(_, why)] = read({"x": declared}, one(said, None, optional=False)).unfit
    assert why == "x: missing, though the schema says that it is not optional"


def test_each_line_of_the_page_is_one_of_these() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "transforms.md").read_text()
    lines = page.partition("| the schema says |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(lines) == 15
    for line in lines:
        says, _, example = [re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:4]]
        fits = [value for said, value, _, _ in FITS if _name(said) in says]
        assert json.loads(example[0]) in fits, line


def _name(said: Any) -> str:
    name = said if isinstance(said, str) else said.get("name", said["type"])
    return str(name).rpartition(".")[2]


@pytest.mark.parametrize(
    ("said", "value", "declared", "reason"),
    [
        ("int64", 1, "int32", "x: the schema says int64, the document int32"),
        ("double", 1.0, "float32", "x: the schema says double, the document float32"),
        ("int32", 1, "float64", "x: the schema says int32, the document float64"),
        ("string", "1", "int32", "x: the schema says string, the document int32"),
        ("what", "1", "text", "x: the schema says a type that is not known, the document text"),
        (
            logical("Decimal", "bytes", scale="3"),
            "APo=",
            "decimal(6,2)",
            "x: the schema says Decimal of scale 3, the docu",
        ),
        (logical("Date", "int32"), 1, "int32", "x: the schema says Date, the document int32"),
        ("int32", 2**31, "int64", "x: not a whole number that int32 holds"),
        ("int16", -1, "uint8", "x: not a whole number that uint8 holds"),
        (logical("Decimal", "bytes", scale="2"), "D0JA", "decimal(5,2)", "x: not a number that decimal(5,2) holds"),
        (logical("Decimal", "bytes", scale="2"), "", "decimal(5,2)", "x: not a number that decimal(5,2) holds"),
        (logical("Decimal", "bytes", scale="2"), 2.5, "decimal(5,2)", "x: not bytes as base64 text"),
        (logical("Time", "int32"), 86_400_000, "time(ms)", "x: not a time that time(ms) holds"),
        (logical("Timestamp", "int64"), 1, "timestamp(s)", "x: not a moment with its zone that timestamp(s) holds"),
        (logical("Timestamp", "int64"), 2**62, "timestamp(ns)", "x: not a moment with its zone that timestamp(ns)"),
        (
            {"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}},
            [[1, 2]],
            {"a": "int32"},
            "x: the sch",
        ),
        (
            {"type": "array", "items": {"type": "int64"}},
            [1],
            ["int32"],
            "x[]: the schema says int64, the document int32",
        ),
    ],
)
def test_what_does_not_fit_has_one_reason(said: Any, value: Any, declared: Any, reason: str) -> None:
    [(_, why)] = read({"x": declared}, one(said, value)).unfit
    assert why.startswith(reason)


X = [{"type": "int32", "optional": True, "field": "x"}]
Y = {"type": "string", "optional": True, "field": "y"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "no value"),
        (b"", 'not one JSON object of "schema" and "payload" alone'),
        (b"\xff", "not UTF-8"),
        (b'{"x":1}', 'not one JSON object of "schema" and "payload" alone'),
        (envelope(X, {"x": 1}, more=1), 'not one JSON object of "schema" and "payload" alone'),
        (envelope(X, {"x": 1}) + b"{}", 'not one JSON object of "schema" and "payload" alone'),
        (envelope(X, None), "payload: not one JSON object"),
        (b'{"schema":null,"payload":null}', "payload: not one JSON object"),
        (b'{"schema":{"type":"int32"},"payload":1}', "the schema says int32, the document fields"),
        (envelope([*X, Y], {"x": 1, "y": "a"}), "y: in the schema, but not declared (unknown: drop leaves such out)"),
    ],
)
def test_what_is_no_envelope_says_so(body: bytes | None, reason: str) -> None:
    assert read({"x": "int64"}, body).unfit == [(0, reason)]


def test_envelopes_of_many_schemas_keep_their_order() -> None:
    """Those without a schema are plain JSON, and those whose payload comes first are envelopes as well."""
    turned = b'{"payload": {"x": 2}, "schema": ' + json.dumps({"type": "struct", "fields": X}).encode() + b"}"
    plain = b' { "schema" : null , "payload" : {"x": 3} } \n'
    spaced = [envelope(X, {"x": row}).replace(b'{"schema"', b"{" + b" " * row + b'"schema"') for row in range(4, 12)]
    found = read({"x": "int64"}, envelope(X, {"x": 1}), turned, b"no", plain, *spaced, envelope(X, {"x": 12}))
    assert found.rows.field("x").to_pylist() == list(range(1, 13))
    assert [row for row, _ in found.unfit] == [2]


def test_fields_that_are_not_declared_are_dropped_and_those_that_a_schema_lacks_are_missing() -> None:
    found = read({"x": "int64", "z": "text"}, envelope([*X, Y], {"x": 1, "y": "a"}), unknown="drop")
    assert found.rows.to_pylist() == [{"x": 1, "z": None}]


def test_a_schema_of_any_depth_has_a_reason() -> None:
    bodies = [b'{"schema":' + b"[" * depth + b"]" * depth + b',"payload":{"x":1}}' for depth in range(800, 1100)]
    bodies.append(b'{"payload":{},"schema":' + b'{"items":' * 100_000)
    assert len(read({"x": "int64"}, *bodies).unfit) == len(bodies)
