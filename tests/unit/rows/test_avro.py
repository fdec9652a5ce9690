"""Avro: what is written is read as it was, and whatever is read is a row or has a reason."""

from __future__ import annotations

import re
import struct
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.avro_frames import fingerprint, frame, split_frame
from connect_core.rows.avro_parts import Framing, node_of_rows, rows_schema, writing_part
from connect_core.rows.avro_reading import AvroReader
from connect_core.rows.avro_schemas import fields_of, schema_node
from connect_core.rows.avro_writing import AvroWriter
from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.json_reading import Read
from connect_core.rows.json_writing import WrittenRows
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type, struct_of, type_of
from tests.unit.rows.strategies import LEAVES, rows
from tests.unit.rows.test_json_round_trip import WIDE, whole

Unknown = Literal["reject", "drop"]
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,3}", fullmatch=True)


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": of} for name, of in fields]}


def logical(kind: object, name: str, **more: int) -> dict[str, Any]:
    return {**(kind if isinstance(kind, dict) else {"type": kind}), "logicalType": name, **more}


FIXED4: dict[str, Any] = {"type": "fixed", "name": "F", "size": 4}
ENUM: dict[str, Any] = {"type": "enum", "name": "E", "symbols": ["open", "paid"]}
UUID = "6f2c2b54-9f0c-4d5c-8f0e-0a1b2c3d4e5f"


def read(fields: Any, schema: Any, *bodies: bytes | None, unknown: Unknown = "reject") -> Read:
    declared = fields if isinstance(fields, Type) else struct_of(fields)
    reader = AvroReader(declared, "plain", {None: schema}, unknown=unknown)
    found = reader.read(pa.array(bodies, pa.binary()))
    whole(found, len(bodies))
    return found


def value_of(schema: Any, value: Any) -> bytes:
    """As another program writes it: of logical types the numbers and bytes are given."""
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(_without_logical(record(("x", schema)))), {"x": value})
    return stream.getvalue()


def _without_logical(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_logical(one) for name, one in schema.items() if name != "logicalType"}
    return [_without_logical(one) for one in schema] if isinstance(schema, list) else schema


def written(schema: Any, some: pa.StructArray, of: Type, before: bytes = b"") -> WrittenRows:
    node = node_of_rows(of, "Row") if schema is None else schema_node(schema)
    return AvroWriter(writing_part(node, of), before).written(some)


def named(of: Type) -> Type:
    """The same with names that Avro has."""
    if of.item is not None:
        return Type("list", item=named(of.item))
    if of.kind == "time" and of.unit == "ns":
        return Type("time", unit="us")
    return (
        Type("struct", fields=tuple((f"f{at}", named(one)) for at, (_, one) in enumerate(of.fields)))
        if (of.kind == "struct")
        else of
    )


def _structs(of: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    some = st.lists(of, min_size=1, max_size=4)
    return some.map(lambda types: Type("struct", fields=tuple((f"f{at}", one) for at, one in enumerate(types))))


AVRO_TYPES = _structs(
    st.recursive(LEAVES.map(named), lambda of: _structs(of) | of.map(lambda one: Type("list", item=one)), max_leaves=6)
)


@given(rows(AVRO_TYPES), st.sampled_from(["plain", "single-object", "registry"]))
def test_rows_that_are_written_are_read_as_they_were(made: tuple[Type, pa.StructArray], framing: Framing) -> None:
    of, some = made
    schema = rows_schema(of, "Row")
    key = {"plain": None, "single-object": fingerprint(schema), "registry": 7}[framing]
    values, unfit = written(None, some, of, frame(framing, key))
    assert all("too early or too late" in reason for _, reason in unfit), "seconds that milliseconds do not hold"
    kept = some.take(pa.array(sorted(set(range(len(some))) - {row for row, _ in unfit}), pa.int64()))
    found = AvroReader(of, framing, {key: schema}).read(values)
    found.rows.validate(full=True)
    assert found.unfit == []
    assert found.rows.type.equals(some.type, check_metadata=True)
    assert found.rows.equals(kept)
    assert written(None, found.rows, of, frame(framing, key)).values.equals(values), "Arrow takes -0.0 for 0.0"


FITS = [
    # what the schema says, its value there, the declared type, what it becomes
    ("boolean", True, "bool", True),
    ("int", -7, "int8", -7),
    ("int", 65535, "uint16", 65535),
    ("int", 2**31 - 1, "int32", 2**31 - 1),
    ("int", -(2**31), "int64", -(2**31)),
    ("long", -(2**63), "int64", -(2**63)),
    ("long", 2**32 - 1, "uint32", 2**32 - 1),
    ("long", 5, "epoch(s)", "1970-01-01 00:00:05Z"),
    ("float", 1.5, "float32", 1.5),
    ("float", float("inf"), "float64", float("inf")),
    ("double", 0.1, "float64", 0.1),
    ("double", float("-inf"), "float64", float("-inf")),
    ("string", "Zoë", "text", "Zoë"),
    (logical("string", "uuid"), UUID, "text", UUID),
    (ENUM, "paid", "text", "paid"),
    ("bytes", b"\0\xff", "bytes", b"\0\xff"),
    (FIXED4, b"\0\1\2\3", "bytes", b"\0\1\2\3"),
    (logical("bytes", "decimal", precision=6, scale=2), b"\x00\xfa", "decimal(6,2)", "2.50"),
    (logical(FIXED4, "decimal", precision=6, scale=2), b"\xff\xff\xff\x80", "decimal(7,3)", "-1.280"),
    (logical("bytes", "decimal", precision=20), b"\0" + b"\xff" * 8, "uint64", 2**64 - 1),
    (logical("int", "date"), 20484, "date", "2026-01-31"),
    (logical("int", "time-millis"), 49510250, "time(ms)", "13:45:10.250"),
    (logical("long", "time-micros"), 49510250001, "time(us)", "13:45:10.250001"),
    (logical("long", "timestamp-millis"), 1769867110250, "timestamp(us)", "2026-01-31 13:45:10.250000Z"),
    (logical("long", "timestamp-micros"), 1769867110250001, "timestamp(us)", "2026-01-31 13:45:10.250001Z"),
    (logical("long", "timestamp-nanos"), 1769867110250000001, "timestamp(ns)", "2026-01-31 13:45:10.250000001Z"),
    (logical("long", "timestamp-millis"), 5000, "epoch(s)", "1970-01-01 00:00:05Z"),
    (logical("long", "local-timestamp-millis"), 1769867110250, "datetime(ms)", "2026-01-31 13:45:10.250"),
    (logical("long", "local-timestamp-micros"), 1769867110250001, "datetime(us)", "2026-01-31 13:45:10.250001"),
    (logical("long", "local-timestamp-nanos"), 1, "datetime(ns)", "1970-01-01 00:00:00.000000001"),
    (["null", "long"], 7, "int64", 7),
    (["string", "null"], "a", "text", "a"),
    ({"type": "array", "items": ["null", "int"]}, [1, None], ["int32"], [1, None]),
    ({**record(("a", "int")), "name": "Inner"}, {"a": 1}, {"a": "int32"}, {"a": 1}),
]


@pytest.mark.parametrize(("said", "value", "declared", "becomes"), FITS)
def test_what_a_schema_says_becomes_the_declared_type_and_is_written_as_it_was(
    said: Any, value: Any, declared: Any, becomes: Any
) -> None:
    body = value_of(said, value)
    found = read({"x": declared}, record(("x", said)), body)
    assert found.unfit == []
    column = found.rows.field("x")
    as_text = isinstance(becomes, str) and not pa.types.is_string(column.type)
    assert (column.cast(pa.string()) if as_text else column).to_pylist() == [becomes]
    try:
        again = written(record(("x", said)), found.rows, struct_of({"x": declared}))
    except Misfit:
        assert str(type_of(declared)) in ("int64", "float64", "decimal(7,3)"), "wider than the schema"
    else:
        assert again.values.to_pylist() == [body]


def test_a_number_that_is_none_stays_so() -> None:
    schema = record(("x", "float"), ("y", "double"))
    bodies = [struct.pack("<fd", float("nan"), float("nan")), struct.pack("<fd", -0.0, -0.0)]
    found = read({"x": "float32", "y": "float64"}, schema, *bodies)
    assert written(schema, found.rows, struct_of({"x": "float32", "y": "float64"})).values.to_pylist() == bodies


UNFIT = [
    # what the schema says, the declared type, why it does not fit
    ("long", "int32", "x: the schema says long, the document int32"),
    ("int", "uint32", "x: the schema says int, the document uint32"),
    ("double", "float32", "x: the schema says double, the document float32"),
    ("int", "float64", "x: the schema says int, the document float64"),
    ("string", "bytes", "x: the schema says string, the document bytes"),
    ("null", "text", "x: the schema says null, the document text"),
    ({"type": "map", "values": "int"}, {"a": "int32"}, "x: the schema says map, the document an object"),
    (["int", "string"], "text", "x: the schema says a union of int, string, the document text"),
    (["null", "int", "string"], "text", "x: the schema says a union of null, int, string, the document text"),
    (
        logical("bytes", "decimal", precision=6, scale=3),
        "decimal(6,2)",
        "x: the schema says decimal(6,3), the document",
    ),
    (logical("int", "date"), "int32", "x: the schema says date, the document int32"),
    (logical("long", "timestamp-millis"), "datetime(ms)", "x: the schema says timestamp-millis, the document datetime"),
    (logical("long", "local-timestamp-millis"), "timestamp(ms)", "x: the schema says local-timestamp-millis, the doc"),
]


@pytest.mark.parametrize(("said", "declared", "reason"), UNFIT)
def test_a_schema_that_no_field_has_room_for_has_one_reason(said: Any, declared: Any, reason: str) -> None:
    [(_, why)] = read({"x": declared}, record(("x", said)), b"\0").unfit
    assert why.startswith(reason)


VALUES = [
    # what the schema says, bytes, the declared type, why it does not fit
    ("int", b"\x80\x80\x80\x80\x10", "int64", "x: not a whole number that int32 holds"),
    ("int", b"\x80\x02", "int8", "x: not a whole number that int8 holds"),
    ("long", b"\xff" * 9 + b"\x7f", "int64", "not Avro of its schema: a number of more than 64 bits at byte 1"),
    ("long", b"\xff" * 30, "int64", "not Avro of its schema: a number of more than 10 bytes at byte 1"),
    ("long", b"\xff", "int64", "not Avro of its schema: it ends too early"),
    ("long", b"\0\0", "int64", "not Avro of its schema: it continues after its end, from byte 2 on"),
    ("boolean", b"\2", "bool", "not Avro of its schema: no boolean at byte 1"),
    ("string", b"\2\xff", "text", "not Avro of its schema: a text in it is not UTF-8"),
    ("bytes", b"\x80\x80\x80\x80\x80\x40abc", "bytes", "not Avro of its schema: a number at byte 1 that cannot"),
    ("bytes", b"\1", "bytes", "not Avro of its schema: a number at byte 1 that cannot stand there"),
    (["null", "string"], b"\1\2a", "text", "not Avro of its schema: a number at byte 1 that cannot stand there"),
    (ENUM, b"\1", "text", "not Avro of its schema: a number at byte 1 that cannot stand there"),
    (
        {"type": "array", "items": "int"},
        b"\x80\x80\x80\x80\x80\x40\2",
        ["int32"],
        "not Avro of its schema: it ends too",
    ),
    (logical("int", "time-millis"), b"\xff\xff\xff\xff\x0f", "time(ms)", "x: not a time that time(ms) holds"),
    (logical("long", "timestamp-millis"), b"\2", "timestamp(s)", "x: not a moment with its zone that timestamp(s)"),
    (logical("bytes", "decimal", precision=6), b"\0", "decimal(6,0)", "x: not a number that decimal(6,0) holds"),
    (logical("bytes", "decimal", precision=9), b"\6\x7f\xff\xff", "decimal(6,0)", "x: not a number that decimal(6,0)"),
]


@pytest.mark.parametrize(("said", "body", "declared", "reason"), VALUES)
def test_a_value_that_does_not_fit_has_one_reason(said: Any, body: bytes, declared: Any, reason: str) -> None:
    [(_, why)] = read({"x": declared}, record(("x", said)), body).unfit
    assert why.startswith(reason)


def test_blocks_of_an_array_are_read_as_well() -> None:
    """As Java writes them where a value is large: the number below zero, then the bytes."""
    schema = record(("x", {"type": "array", "items": "int"}))
    found = read({"x": ["int32"]}, schema, b"\2\2" + b"\3\4\4\6" + b"\0")
    assert found.rows.to_pylist() == [{"x": [1, 2, 3]}]
    [(_, why)] = read({"x": ["int32"]}, schema, b"\3\6\4\6\0").unfit
    assert why == "not Avro of its schema: a block that ends elsewhere than it says, at byte 5"


def nested(depth: int) -> Any:
    return "int" if not depth else {"type": "array", "items": nested(depth - 1)}


def bomb(levels: int) -> Any:
    """Each record holds the one before twice."""
    fields: list[Any] = [("a", {**record(("x", "int")), "name": "R0"})]
    for level in range(1, levels):
        inner = {**record(("x", f"R{level - 1}"), ("y", f"R{level - 1}")), "name": f"R{level}"}
        fields.append((f"a{level}", inner))
    return {**record(*fields), "name": "Top"}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(("x", ["null", "R"])), "x: the schema holds itself, which no row can (a recursive type)"),
        (record(("x", "What")), "x: the schema names a type that it does not define"),
        (record(("x", {"type": "array", "items": "null"})), "x: the schema has an array whose items take no bytes"),
        (
            record(("x", {"type": "array", "items": {**record(), "name": "No"}})),
            "x: the schema has an array whose items",
        ),
        (record(("x", nested(60))), "x[][]"),
        (bomb(40), "the schema has more than 10,000 types"),
        (record(("x-y", "int")), "the schema does not name its fields, each once"),
        (record(("x", "int"), ("x", "int")), "the schema does not name its fields, each once"),
        (record(("x", [])), "x: the schema has a union of nothing, or of unions"),
        (record(("x", {"type": "enum", "name": "E", "symbols": []})), "x: the schema has an enum without symbols"),
        (record(("x", {"type": "fixed", "name": "F", "size": -1})), "x: the schema has a fixed without a size"),
        (record(("x", {"type": 7})), "x: the schema does not say its type"),
        ("int", "the schema says int, not a record"),
        (None, "the schema does not say its type"),
    ],
)
def test_a_schema_that_is_none_has_a_reason(schema: Any, reason: str) -> None:
    with pytest.raises(Misfit) as raised:
        schema_node(schema)
    assert str(raised.value).startswith(reason)


def test_names_are_looked_up_in_their_namespace() -> None:
    inner = {"type": "record", "name": "a.b.Inner", "fields": [{"name": "e", "type": ENUM}, {"name": "f", "type": "E"}]}
    schema = {**record(("x", inner), ("y", "a.b.Inner"), ("z", "a.b.E")), "namespace": "other"}
    assert str(fields_of(schema_node(schema))) == "{x: {e: text, f: text}, y: {e: text, f: text}, z: text}"


def test_the_fields_of_a_schema_are_those_that_a_document_would_declare() -> None:
    said = [one for one, _, declared, _ in FITS]
    schema = record(
        *(
            (f"x{at}", one if at != 19 else logical("bytes", "decimal", precision=20))
            for at, one in enumerate(said)
            if one not in (ENUM, FIXED4) and not (isinstance(one, dict) and "size" in one)
        )
    )
    text = str(fields_of(schema_node(schema)))
    assert "decimal(6,2)" in text
    assert "timestamp(ns)" in text
    assert "datetime(us)" in text
    for wrong in ({"type": "map", "values": "int"}, ["int", "string"]):
        with pytest.raises(Misfit, match=r"x: the schema says .*, which no field can be"):
            fields_of(schema_node(record(("x", wrong))))
    with pytest.raises(Misfit, match="a decimal of 39 digits"):
        fields_of(schema_node(record(("x", logical("bytes", "decimal", precision=39)))))


def test_fields_that_are_not_declared_are_dropped_and_those_that_a_schema_lacks_are_missing() -> None:
    schema = record(("x", "int"), ("m", {"type": "map", "values": ["long", "string"]}), ("e", "null"))
    body = b"\2" + b"\4\2a\0\2\2b\2\2c\0"
    assert read({"x": "int64", "z": "text"}, schema, body, unknown="drop").rows.to_pylist() == [{"x": 1, "z": None}]
    assert read({"x": "int64"}, schema, body).unfit == [
        (0, "m: in the schema, but not declared (unknown: drop leaves such out)")
    ]


CANNOT = [
    ({"x": "int64"}, ("x", "int"), "x: int64, and the schema says int"),
    ({"x": "float64"}, ("x", "float"), "x: float64, and the schema says float"),
    (
        {"x": "decimal(6,3)"},
        ("x", logical("bytes", "decimal", precision=6, scale=2)),
        "x: decimal(6,3), and the schema",
    ),
    (
        {"x": "decimal(6,0)"},
        ("x", logical("bytes", "decimal", precision=6, scale=2)),
        "x: decimal(6,0), and the schema",
    ),
    ({"x": "uint64"}, ("x", "long"), "x: uint64, and the schema says long"),
    ({"x": "text"}, ("x", {"type": "map", "values": "string"}), "x: text, and the schema says map"),
    ({"x": "text"}, ("x", ["int", "string"]), "x: text, and the schema says a union of int, string"),
    ({"x": "text", "y": "text"}, ("x", "string"), "y: the schema has no such field (drop it, or rename it)"),
    ({"y": "text"}, ("x", "string"), "y: the schema has no such field"),
]


@pytest.mark.parametrize(("fields", "field", "reason"), CANNOT)
def test_rows_that_a_schema_does_not_take_are_known_before_a_run(fields: Any, field: Any, reason: str) -> None:
    with pytest.raises(Misfit) as raised:
        writing_part(schema_node(record(field)), struct_of(fields))
    assert str(raised.value).startswith(reason)


def test_a_field_of_the_schema_that_rows_lack_is_missing_where_it_may_be() -> None:
    of = struct_of({"x": "int32"})
    some = pa.array([{"x": 1}], arrow_type(of))
    assert written(record(("x", "int"), ("y", ["null", "int"])), some, of).values.to_pylist() == [b"\2\0"]
    with pytest.raises(Misfit, match="y: the schema has this field, and it may not be missing"):
        written(record(("x", "int"), ("y", "int")), some, of)


@pytest.mark.parametrize(
    ("said", "declared", "value", "reason"),
    [
        ("int", "int32", None, "x: missing, and the schema does not let it be"),
        (ENUM, "text", "lost", "x: no symbol of the schema's enum"),
        (FIXED4, "bytes", b"abc", "x: not 4 bytes long, as the schema says"),
        (logical("string", "uuid"), "text", "no", "x: not a UUID, as the schema says"),
        (
            logical("long", "timestamp-millis"),
            "timestamp(us)",
            1001,
            "x: finer than the timestamp-millis of the schema",
        ),
        (logical("long", "timestamp-nanos"), "timestamp(s)", 2**40, "x: too early or too late for the timestamp-nanos"),
        ({"type": "array", "items": "int"}, ["int32"], [1, None], "x[]: missing, and the schema does not let it be"),
    ],
)
def test_a_value_that_the_schema_does_not_take_is_named(said: Any, declared: Any, value: Any, reason: str) -> None:
    of = struct_of({"x": declared})
    values, [(row, why)] = written(record(("x", said)), pa.array([{"x": value}], arrow_type(of)), of)
    assert (len(values), row) == (0, 0)
    assert why.startswith(reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"a b": "text"}, "a b: no name that Avro has (letters, digits and _): rename it"),
        ({"s": {"1": "text"}}, "s.1: no name that Avro has"),
        ({"x": "time(ns)"}, "x: Avro has no time(ns): cast it to time(us)"),
    ],
)
def test_rows_that_have_no_schema_are_known_before_a_run(fields: Any, reason: str) -> None:
    with pytest.raises(Misfit) as raised:
        rows_schema(struct_of(fields), "Row")
    assert str(raised.value).startswith(reason)


# ------------------------------------------------------------------------------------------------------ whatever comes

SCHEMA = rows_schema(WIDE, "Row")
STRICT = {
    "type": "record",
    "name": "S",
    "fields": [{"name": n, "type": t["type"][1]} for n, t in ((one["name"], one) for one in SCHEMA["fields"])],
}
DROPPED = record(
    ("n", "int"), ("m", {"type": "map", "values": ["null", "double"]}), ("u", ["int", "string", ENUM, FIXED4])
)


@st.composite
def _bodies(draw: st.DrawFn) -> bytes | None:
    made = draw(rows(st.just(WIDE)))[1]
    valid = written(SCHEMA, made, WIDE).values.to_pylist() or [b""]
    text = bytearray(valid[0])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3) | st.sampled_from([b"\xff" * 9, b"\x80"]))
    return draw(st.one_of(st.none(), st.binary(max_size=60), st.just(bytes(text))))


@given(st.lists(_bodies(), max_size=8), st.sampled_from([SCHEMA, STRICT, DROPPED]))
def test_whatever_comes_is_a_row_or_has_a_reason(some: list[bytes | None], schema: Any) -> None:
    values = pa.array(some, pa.binary())
    reader = AvroReader(WIDE, "plain", {None: schema}, unknown="drop")
    found = reader.read(values)
    whole(found, len(values))
    alone = [reader.read(values.slice(row, 1)) for row in range(len(values))]
    assert [row for row, made in enumerate(alone) if made.unfit] == [row for row, _ in found.unfit]
    assert [made.unfit[0][1] for made in alone if made.unfit] == [reason for _, reason in found.unfit]
    assert found.rows.equals(pa.concat_arrays([made.rows for made in alone] or [found.rows]))


def test_a_few_bytes_take_little_memory() -> None:
    """Lengths of 2^40, of whatever holds others."""
    import tracemalloc

    some: list[tuple[Any, Any]] = [
        ({"type": "array", "items": "long"}, ["int64"]),
        ({"type": "array", "items": {"type": "map", "values": "null"}}, None),
        ("bytes", "bytes"),
        ("string", "text"),
    ]
    tracemalloc.start()
    for said, declared in some:
        fields = {"x": declared} if declared else {"y": "text"}
        read(fields, record(("x", said)), b"\x80\x80\x80\x80\x80\x40\2\2\2", unknown="drop")
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_a_value_that_holds_too_much_is_not_read() -> None:
    """Items of one byte, of each of which a thousand fields would be made."""
    item = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    item["fields"] += [{"name": f"n{at}", "type": "null"} for at in range(999)]
    body = b"\xd0\x0f" + b"\2" * 1000 + b"\0"
    schema = record(("x", "int"), ("l", {"type": "array", "items": item}))
    [(_, why)] = read({"x": "int32"}, schema, b"\2" + body, unknown="drop").unfit
    assert why == "not Avro of its schema: it holds more than 1,000,000 values"
    assert read({"x": "int32"}, schema, b"\2\x02\2\0", unknown="drop").rows.to_pylist() == [{"x": 1}]


@pytest.mark.parametrize("limit", ["PART", "VALUES"])
def test_what_is_decoded_at_once_has_a_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"connect_core.rows.reading_by_schema.{limit}", 3)
    bodies = [b"\2", b"", b"\4", b"\6\6", b"\x08", b"\x0a", b"\x0c"]
    found = read({"x": "int32"}, record(("x", "int")), *bodies)
    assert found.rows.field("x").to_pylist() == [1, 2, 4, 5, 6]
    assert [row for row, _ in found.unfit] == [1, 3]


def test_a_value_that_is_too_long_is_not_read() -> None:
    [(_, why)] = read({"x": "bytes"}, record(("x", "bytes")), b"\0" * (4 << 20) + b"\0").unfit
    assert why == "longer than 4 MiB"


# --------------------------------------------------------------------------------------------------------------- frames


def test_the_fingerprint_is_that_of_the_specification() -> None:
    """CRC-64-AVRO of `"int"` and `"string"`, in the order of bytes that a single object has."""
    assert fingerprint("int") == (0x7275D51A3F395C8F).to_bytes(8, "little")
    assert fingerprint("string") == (0x8F014872634503C7).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("framing", "value", "reason"),
    [
        ("single-object", b"\xc3\x01" + b"\0" * 7, "it does not begin as a single object of Avro does"),
        ("single-object", b"\xc3\x02" + b"\0" * 9, "it does not begin as a single object of Avro does"),
        ("registry", b"\0\0\0\0", "it does not begin with a zero byte and the number of a schema"),
        ("registry", b"\1\0\0\0\1", "it does not begin with a zero byte and the number of a schema"),
        ("registry", b'{"a":1}', "it does not begin with a zero byte and the number of a schema"),
        ("plain", None, "no value"),
    ],
)
def test_another_beginning_has_a_reason(framing: Framing, value: bytes | None, reason: str) -> None:
    found = split_frame(framing, value)
    assert isinstance(found, str)
    assert found.startswith(reason)


def test_values_of_other_schemas_are_not_read() -> None:
    of, schema = struct_of({"x": "int32"}), record(("x", "int"))
    single = AvroReader(of, "single-object", {fingerprint(schema): schema})
    found = single.read(pa.array([b"\xc3\x01" + fingerprint(schema) + b"\2", b"\xc3\x01" + b"\0" * 8 + b"\2"]))
    assert found.rows.to_pylist() == [{"x": 1}]
    assert found.unfit == [(1, "written with another schema than that of the document (another fingerprint)")]
    numbered = AvroReader(of, "registry", {7: schema})
    found = numbered.read(pa.array([b"\0\0\0\0\x07\2", b"\0\0\0\0\x08\2"]))
    assert found.unfit == [(1, "written with schema 8, and the document has none of that number")]


def test_schemas_of_a_registry_are_asked_once_and_rows_keep_their_order() -> None:
    asked: list[int] = []

    def schemas(number: int) -> object:
        asked.append(number)
        if number == 9:
            raise Misfit("the registry has none")
        return record(("x", "int" if number == 1 else ["null", "int"]))

    reader = AvroReader(struct_of({"x": "int64"}), "registry", {}, schemas=schemas)
    bodies = [b"\0\0\0\0\1\2", b"\0\0\0\0\2\2\4", b"\0\0\0\0\x09\2", b"\0\0\0\0\1\6", b"\0\0\0\0\2\0"]
    for _ in range(2):
        found = reader.read(pa.array(bodies))
        assert found.rows.to_pylist() == [{"x": 1}, {"x": 2}, {"x": 3}, {"x": None}]
        assert found.unfit == [(2, "schema 9: the registry has none")]
    assert asked == [1, 2, 9]


def test_each_line_of_the_page_is_one_of_these() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "avro.md").read_text()
    lines = page.partition("| the schema says |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(lines) == 17
    tested = {_word(said) for said, _, _, _ in FITS} | {"null"}
    for line in lines:
        says = re.findall(r"`([^`]+)`", line.split("|")[1])
        assert says
        assert set(says) <= tested, line


def _word(said: Any) -> str:
    return (
        said if isinstance(said, str) else "union" if isinstance(said, list) else said.get("logicalType", said["type"])
    )


_KINDS = st.sampled_from(["null", "int", "long", "double", "bytes", "string", "boolean", "R0", "E0", "what", ""])
_SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    _KINDS,
    lambda of: (
        st.lists(of, max_size=3)
        | st.fixed_dictionaries({"type": st.sampled_from(["array", "map"])}, optional={"items": of, "values": of})
        | st.fixed_dictionaries({"type": of}, optional={"logicalType": st.sampled_from(["decimal", "date", "uuid"])})
        | st.fixed_dictionaries(
            {
                "type": st.just("record"),
                "name": st.sampled_from(["R0", "R1", "a.R2", "7"]),
                "fields": st.lists(st.fixed_dictionaries({"name": st.sampled_from("abc"), "type": of}), max_size=3),
            },
            optional={"namespace": st.sampled_from(["a", ""])},
        )
        | st.fixed_dictionaries({"type": st.just("fixed"), "name": st.just("F0"), "size": st.integers(-1, 3)})
        | st.fixed_dictionaries({"type": st.just("enum"), "name": st.just("E0"), "symbols": st.just(["x", "y"])})
    ),
    max_leaves=12,
)


@given(_SCHEMAS, st.lists(st.binary(max_size=20), max_size=4))
def test_whatever_schema_comes_is_one_or_has_a_reason(schema: Any, bodies: list[bytes]) -> None:
    top = {"type": "record", "name": "Top", "fields": [{"name": "x", "type": schema}]}
    for one in (schema, top):
        reader = AvroReader(struct_of({"x": "int64", "y": "text"}), "plain", {None: one}, unknown="drop")
        whole(reader.read(pa.array(bodies, pa.binary())), len(bodies))
    try:
        of = fields_of(schema_node(top))
    except Misfit:
        return
    whole(AvroReader(of, "plain", {None: top}).read(pa.array(bodies, pa.binary())), len(bodies))
