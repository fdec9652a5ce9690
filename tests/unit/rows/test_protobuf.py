"""Protobuf: what is written is read as it was, and whatever is read is a row or has a reason."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.json_reading import Read
from connect_core.rows.json_writing import WrittenRows
from connect_core.rows.protobuf_frames import FramedMessage, frame, split_frame
from connect_core.rows.protobuf_parts import Framing, reading_fields, writing_fields
from connect_core.rows.protobuf_reading import ProtobufReader
from connect_core.rows.protobuf_schemas import check_descriptors, fields_of, message_at, message_of, place_of
from connect_core.rows.protobuf_writing import ProtobufWriter
from connect_core.rows.reading_by_schema import LONGEST, VALUES
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type, struct_of, type_of
from tests.protobuf import descriptor_set, descriptors
from tests.unit.rows.strategies import rows
from tests.unit.rows.test_json_round_trip import whole

Unknown = Literal["reject", "drop"]

IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto";\n' for name in ("timestamp", "duration", "wrappers", "struct", "any")
)


def proto3(fields: str, more: str = "") -> str:
    return f'syntax = "proto3";\npackage t;\n{IMPORTS}\nmessage M {{ {fields} }}\n{more}'


def proto2(fields: str, more: str = "") -> str:
    return f'syntax = "proto2";\npackage t;\nmessage M {{ {fields} }}\n{more}'


def message(text: str, name: str = "t.M") -> Any:
    return message_of(descriptors(text), name)


def value_of(text: str, **values: Any) -> bytes:
    """As another program writes it."""
    made: bytes = GetMessageClass(message(text))(**values).SerializePartialToString()
    return made


def read(fields: Any, text: str, *bodies: bytes | None, unknown: Unknown = "reject") -> Read:
    declared = fields if isinstance(fields, Type) else struct_of(fields)
    found = ProtobufReader(declared, "plain", {None: message(text)}, unknown=unknown).read(
        pa.array(bodies, pa.binary())
    )
    whole(found, len(bodies))
    return found


def written(text: str, some: pa.StructArray, of: Type, before: bytes = b"") -> WrittenRows:
    return ProtobufWriter(writing_fields(message(text), of), before).written(some)


ENUM = "enum E { open = 0; paid = 1; late = -1; }"
KV = [{"key": "text", "value": "int32"}]
FITS = [
    # the field, its value there, the declared type, what it becomes
    ("bool x = 1;", True, "bool", True),
    ("int32 x = 1;", -(2**31), "int32", -(2**31)),
    ("int32 x = 1;", -7, "int8", -7),
    ("sint32 x = 1;", -(2**31), "int64", -(2**31)),
    ("sfixed32 x = 1;", 2**31 - 1, "int32", 2**31 - 1),
    ("int32 x = 1;", 65535, "uint16", 65535),
    ("uint32 x = 1;", 2**32 - 1, "uint32", 2**32 - 1),
    ("fixed32 x = 1;", 2**32 - 1, "int64", 2**32 - 1),
    ("uint32 x = 1;", 255, "uint8", 255),
    ("int64 x = 1;", -(2**63), "int64", -(2**63)),
    ("sint64 x = 1;", -(2**63), "int64", -(2**63)),
    ("sfixed64 x = 1;", 5, "epoch(s)", "1970-01-01 00:00:05Z"),
    ("int64 x = 1;", 2**32 - 1, "uint32", 2**32 - 1),
    ("uint64 x = 1;", 2**64 - 1, "uint64", 2**64 - 1),
    ("fixed64 x = 1;", 2**64 - 1, "uint64", 2**64 - 1),
    ("float x = 1;", 1.5, "float32", 1.5),
    ("float x = 1;", float("inf"), "float64", float("inf")),
    ("double x = 1;", 0.1, "float64", 0.1),
    ("double x = 1;", float("-inf"), "float64", float("-inf")),
    ("string x = 1;", "Zoë", "text", "Zoë"),
    ("bytes x = 1;", b"\0\xff", "bytes", b"\0\xff"),
    (f"{ENUM} E x = 1;", "late", "text", "late"),
    (f"{ENUM} E x = 1;", 7, "int32", 7),
    (
        "google.protobuf.Timestamp x = 1;",
        {"seconds": -1, "nanos": 1},
        "timestamp(ns)",
        "1969-12-31 23:59:59.000000001Z",
    ),
    ("google.protobuf.Timestamp x = 1;", {"seconds": 253402300799}, "timestamp(us)", "9999-12-31 23:59:59.000000Z"),
    ("google.protobuf.Timestamp x = 1;", {"nanos": 5000000}, "epoch(ms)", "1970-01-01 00:00:00.005Z"),
    ("google.protobuf.Duration x = 1;", {"seconds": -1, "nanos": -500000000}, "decimal(21,9)", "-1.500000000"),
    ("google.protobuf.Int64Value x = 1;", {"value": 0}, "int64", 0),
    ("google.protobuf.UInt64Value x = 1;", {"value": 2**64 - 1}, "uint64", 2**64 - 1),
    ("google.protobuf.StringValue x = 1;", {"value": ""}, "text", ""),
    ("google.protobuf.StringValue x = 1;", None, "text", None),
    ("repeated int32 x = 1;", [1, -2], ["int32"], [1, -2]),
    ("repeated int32 x = 1 [packed = false];", [1, -2], ["int32"], [1, -2]),
    ("repeated string x = 1;", ["a", ""], ["text"], ["a", ""]),
    ("repeated int32 x = 1;", [], ["int32"], []),
    ("map<string, int32> x = 1;", {"b": 0}, KV, [{"key": "b", "value": 0}]),
    (
        "message I { int32 a = 1; optional int32 b = 2; } I x = 1;",
        {},
        {"a": "int32", "b": "int32"},
        {"a": 0, "b": None},
    ),
    ("message I { int32 a = 1; } I x = 1;", None, {"a": "int32"}, None),
    ("message I { int32 a = 1; } repeated I x = 1;", [{}, {"a": 1}], [{"a": "int32"}], [{"a": 0}, {"a": 1}]),
    ("optional int32 x = 1;", 0, "int32", 0),
    ("optional int32 x = 1;", None, "int32", None),
    ("int32 x = 1;", None, "int32", 0),
    ("double x = 1;", -0.0, "float64", -0.0),
    ("oneof o { int32 x = 1; string y = 2; }", 0, "int32", 0),
]
WIDER = ("int64", "float64")


@pytest.mark.parametrize(("said", "value", "declared", "becomes"), FITS)
def test_what_a_schema_says_becomes_the_declared_type_and_is_written_as_it_was(
    said: str, value: Any, declared: Any, becomes: Any
) -> None:
    text = proto3(said)
    body = value_of(text, x=value)
    found = read({"x": declared}, text, body, unknown="drop")
    assert found.unfit == []
    column = found.rows.field("x")
    as_text = isinstance(becomes, str) and not pa.types.is_string(column.type)
    assert (column.cast(pa.string()) if as_text else column).to_pylist() == [becomes]
    try:
        again = written(text, found.rows, struct_of({"x": declared}))
    except Misfit:
        assert str(type_of(declared)) in WIDER, "wider than the schema"
    else:
        assert again.values.to_pylist() == [body]


def test_the_fields_of_a_schema_are_those_that_a_document_would_declare() -> None:
    text = proto3(
        f"{ENUM} bool a=1; sint32 b=2; fixed32 c=3; sfixed64 d=4; uint64 e=5; float f=6; double g=7; string h=8;"
        "bytes i=9; E j=10; google.protobuf.Timestamp k=11; google.protobuf.Duration l=12;"
        "google.protobuf.BoolValue m=13; repeated string n=14; map<int32, I> o=15; I p=16;",
        "message I { int64 a = 1; }",
    )
    assert str(fields_of(message(text))) == (
        "{a: bool, b: int32, c: uint32, d: int64, e: uint64, f: float32, g: float64, h: text, i: bytes, j: text, "
        "k: timestamp(ns), l: decimal(21,9), m: bool, n: [text], o: [{key: int32, value: {a: int64}}], p: {a: int64}}"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (proto3("M x = 1;"), "x: the schema has t.M in itself; fields say how deep it is read"),
        (proto3("google.protobuf.Struct x = 1;"), "x: the schema says message google.protobuf.Struct, which no field"),
        (
            proto3("repeated google.protobuf.Any x = 1;"),
            "x[]: the schema says repeated message google.protobuf.Any, wh",
        ),
        (proto3("google.protobuf.Value x = 1;"), "x: the schema says message google.protobuf.Value, which no field"),
        (proto3("I x = 1;", "message I {}"), "x: a message without fields"),
        (proto2("optional group G = 1 { optional int32 a = 1; }"), "g: the schema says group, which no field can be"),
    ],
)
def test_what_no_field_can_be_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(Misfit) as raised:
        fields_of(message(text))
    assert str(raised.value).startswith(reason)


def test_a_schema_that_grows_without_end_is_refused_and_read_as_far_as_fields_say() -> None:
    """Each message holds the one before twice."""
    more = "message B0 { int32 x = 1; }" + "".join(
        f"message B{at} {{ B{at - 1} x = 1; B{at - 1} y = 2; }}" for at in range(1, 19)
    )
    text = proto3("B18 x = 1;", more)
    with pytest.raises(Misfit, match="the schema has more than 10,000 fields; fields say which of them are read"):
        fields_of(message(text))
    assert read({"x": {"y": {"x": {"z": "text"}}}}, text, b"\x0a\2\x12\0", unknown="drop").rows.to_pylist() == [
        {"x": {"y": {"x": None}}}
    ]


def test_a_message_that_holds_itself_is_read_as_deep_as_fields_say() -> None:
    text = proto3("int32 n = 1; repeated M x = 2;")
    body = value_of(text, n=1, x=[{"n": 2, "x": [{"n": 3}]}])
    found = read({"n": "int32", "x": [{"n": "int32"}]}, text, body, unknown="drop")
    assert found.rows.to_pylist() == [{"n": 1, "x": [{"n": 2}]}]


UNFIT = [
    # the field, the declared type, why it does not fit
    ("int64 x = 1;", "int32", "x: the schema says int64, the document int32"),
    ("uint64 x = 1;", "int64", "x: the schema says uint64, the document int64"),
    ("int32 x = 1;", "uint32", "x: the schema says int32, the document uint32"),
    ("double x = 1;", "float32", "x: the schema says double, the document float32"),
    ("string x = 1;", "bytes", "x: the schema says string, the document bytes"),
    ("repeated int32 x = 1;", "int32", "x: the schema says repeated int32, the document int32"),
    ("int32 x = 1;", ["int32"], "x: the schema says int32, the document a list"),
    ("map<string, int32> x = 1;", {"a": "int32"}, "x: the schema says map, the document an object"),
    ("google.protobuf.Timestamp x = 1;", "datetime(ns)", "x: the schema says message google.protobuf.Timestamp, the d"),
    ("google.protobuf.Timestamp x = 1;", {"seconds": "int64"}, "x: the schema says message google.protobuf.Timestamp"),
    ("google.protobuf.Duration x = 1;", "decimal(21,6)", "x: the schema says message google.protobuf.Duration, the d"),
    ("google.protobuf.Any x = 1;", {"value": "bytes"}, "x: the schema says message google.protobuf.Any, the document"),
    ("int32 x = 1; int32 y = 2;", "int32", "y: in the schema, but not declared (unknown: drop leaves such out)"),
]


@pytest.mark.parametrize(("said", "declared", "reason"), UNFIT)
def test_a_schema_that_no_field_has_room_for_has_one_reason(said: str, declared: Any, reason: str) -> None:
    [(_, why)] = read({"x": declared}, proto3(said), b"").unfit
    assert why.startswith(reason)


STRICT = "not Protobuf of its schema: "
VALUES_UNFIT = [
    # the field, bytes, the declared type, why it does not fit
    ("int32 x = 1;", b"\x08\x80\x80\x80\x80\x10", "int64", STRICT + "x: a number of more than 32 bits"),
    ("uint32 x = 1;", b"\x08\x80\x80\x80\x80\x10", "uint32", STRICT + "x: a number of more than 32 bits"),
    ("sint32 x = 1;", b"\x08\x80\x80\x80\x80\x10", "int32", STRICT + "x: a number of more than 32 bits"),
    ("repeated int32 x = 1;", b"\x0a\x05\xff\xff\xff\xff\x1f", ["int32"], STRICT + "x: a number of more than 32 bits"),
    ("int64 x = 1;", b"\x08" + b"\xff" * 9 + b"\x7f", "int64", STRICT + "a number of more than 64 bits at byte 2"),
    ("int64 x = 1;", b"\x08" + b"\xff" * 30, "int64", STRICT + "a number of more than 10 bytes at byte 2"),
    ("bool x = 1;", b"\x08\x02", "bool", STRICT + "x: neither true nor false"),
    ("int64 x = 1;", b"\x08", "int64", STRICT + "it ends too early"),
    ("string x = 1;", b"\x0a\x05abc", "text", STRICT + "it ends too early"),
    ("string x = 1;", b"\x0a\x01\xff", "text", STRICT + "x: a text that is not UTF-8"),
    ("int64 x = 1;", b"\x0a\x01a", "int64", STRICT + "x: another form than that of int64"),
    ("string x = 1;", b"\x08\x01", "text", STRICT + "x: another form than that of string"),
    ("repeated string x = 1;", b"\x08\x01", ["text"], STRICT + "x: another form than that of string"),
    ("int64 x = 1;", b"\x08\x01\x10\x01", "int64", STRICT + "field 2, which the schema does not have (unknown: drop"),
    ("I x = 1; message I {int32 a=1;}", b"\x0a\x02\x10\x01", {"a": "int32"}, STRICT + "x: field 2, which the schema "),
    ("int64 x = 1;", b"\0", "int64", STRICT + "no field begins at byte 1"),
    ("int64 x = 1;", b"\x0f", "int64", STRICT + "no field begins at byte 1"),
    ("int32 x = 1;", b"\x08\x80\x02", "int8", "x: not a whole number that int8 holds"),
    ("uint32 x = 1;", b"\x08\x80\x02", "uint8", "x: not a whole number that uint8 holds"),
    (f"{ENUM} E x = 1;", b"\x08\x07", "text", "x: a number that the schema's enum does not have"),
    ("map<string, int32> x = 1;", b"\x0a\3\x0a\1a" * 2, KV, "x: a key twice"),
    ("google.protobuf.Timestamp x = 1;", b"\x0a\2\x10\1", "timestamp(us)", "x: not a moment with its zone that"),
    ("google.protobuf.Timestamp x = 1;", b"\x0a\x06\x08\xff\xff\xff\xff\x3f", "timestamp(ns)", "x: not a moment with"),
    ("google.protobuf.Timestamp x = 1;", b"\x0a\x06\x10\x80\x94\xeb\xdc\x03", "timestamp(ns)", "x: not a moment with"),
    (
        "google.protobuf.Duration x = 1;",
        b"\x0a\x0d\x08\1\x10" + b"\xff" * 9 + b"\1",
        "decimal(21,9)",
        "x: not a number",
    ),
]


@pytest.mark.parametrize(("said", "body", "declared", "reason"), VALUES_UNFIT)
def test_a_value_that_does_not_fit_has_one_reason(said: str, body: bytes, declared: Any, reason: str) -> None:
    [(_, why)] = read({"x": declared}, proto3(said), body).unfit
    assert why.startswith(reason)


def test_other_bytes_of_the_same_message_are_read_as_well() -> None:
    """Fields in another order, defaults that are written, lists in the other form, one message in two parts."""
    text = proto3(
        "int32 a = 1; repeated int32 b = 2; I c = 3; string d = 4; oneof o { int32 e = 5; int32 f = 6; }"
        "message I { int32 a = 1; int32 b = 2; }"
    )
    body = b"\x22\1z" + b"\x10\5\x12\2\6\7\x10\x08" + b"\x1a\2\x08\1" + b"\x08\0" + b"\x1a\2\x10\2" + b"\x28\1\x30\2"
    fields = {"a": "int32", "b": ["int32"], "c": {"a": "int32", "b": "int32"}, "d": "text", "e": "int32", "f": "int32"}
    assert read(fields, text, body).rows.to_pylist() == [
        {"a": 0, "b": [5, 6, 7, 8], "c": {"a": 1, "b": 2}, "d": "z", "e": None, "f": 2}
    ]
    assert read({"d": "text"}, text, body, unknown="drop").rows.to_pylist() == [{"d": "z"}]


def test_what_the_schema_or_the_document_does_not_have_is_dropped_where_it_says_so() -> None:
    text = proto2("optional int32 x = 1; optional group G = 2 { optional int32 a = 1; } extensions 100 to 200;")
    body = b"\x08\1" + b"\x13\x08\5\x14" + b"\xa0\x06\x01" + b"\xfa\x3e\1z"
    assert read({"x": "int64", "z": "text"}, text, body, unknown="drop").rows.to_pylist() == [{"x": 1, "z": None}]
    [(_, why)] = read({"x": "int64"}, proto2("optional int32 x = 1; extensions 100 to 200;"), b"\x08\1\xa0\6\1").unfit
    assert why == STRICT + "field 100, which the schema does not have (unknown: drop leaves such out)"
    for wrong in (b"\x13\x08\5", b"\x13\x08\5\x1c", b"\x14", b"\x13" * 200 + b"\x14" * 200):
        [(_, why)] = read({"x": "int64"}, text, wrong, unknown="drop").unfit
        assert why.startswith(STRICT)


@pytest.mark.parametrize(
    ("said", "body"),
    [("int32 x = 1;", "0d07000000"), ("string x = 1;", "0805"), ("int64 x = 1;", "0a0139"), ("double x = 1;", "0807")],
)
def test_a_field_of_another_form_is_not_dropped(said: str, body: str) -> None:
    """For the library it is a field that it does not know."""
    declared = {"x": {"int32": "int32", "string": "text", "int64": "int64", "double": "float64"}[said.split()[0]]}
    got = read(declared, proto3(said), bytes.fromhex(body), unknown="drop")
    assert [row for row, _ in got.unfit] == [0]
    assert "x: another form than that of" in got.unfit[0][1]


def test_presence_of_proto2() -> None:
    text = proto2(
        "required int32 x = 1; optional int32 y = 2 [default = 7]; enum E { a = 1; b = 2; } optional E z = 3;"
    )
    fields = {"x": "int32", "y": "int32", "z": "text"}
    found = read(fields, text, b"\x08\0", b"\x10\0", b"\x08\1\x18\2", b"\x08\1\x18\3")
    assert found.rows.to_pylist() == [{"x": 0, "y": None, "z": None}, {"x": 1, "y": None, "z": "b"}]
    assert found.unfit == [
        (1, "x: missing, though the schema says that it is required"),
        (3, "z: a number that the schema's enum does not have"),
    ]
    of = struct_of(fields)
    some = pa.array([{"x": 0, "y": 7, "z": "a"}, {"x": None}, {"x": 1, "z": "c"}], arrow_type(of))
    again = written(text, some, of)
    assert again.values.to_pylist() == [b"\x08\0\x10\7\x18\1"]
    assert again.unfit == [
        (1, "x: missing, and the schema says that it is required"),
        (2, "z: nothing that the schema's enum has"),
    ]
    with pytest.raises(Misfit, match="x: the schema has this field, and it may not be missing"):
        writing_fields(message(text), struct_of({"y": "int32"}))
    by_number = struct_of({"x": "int32", "z": "int32"})
    some = pa.array([{"x": 1, "z": 2}, {"x": 1, "z": 3}], arrow_type(by_number))
    assert [row for row, _ in written(text, some, by_number).unfit] == [1], "an enum of proto2 has no other numbers"


CANNOT = [
    ({"x": "int64"}, "int32 x = 1;", "x: int64, and the schema says int32"),
    ({"x": "uint32"}, "int32 x = 1;", "x: uint32, and the schema says int32"),
    ({"x": "int32"}, "uint32 x = 1;", "x: int32, and the schema says uint32"),
    ({"x": "float64"}, "float x = 1;", "x: float64, and the schema says float"),
    ({"x": "decimal(22,10)"}, "google.protobuf.Duration x = 1;", "x: decimal(22,10), and the schema says message goo"),
    ({"x": "datetime(us)"}, "google.protobuf.Timestamp x = 1;", "x: datetime(us), and the schema says message google"),
    ({"x": "text"}, "google.protobuf.Struct x = 1;", "x: text, and the schema says message google.protobuf.Struct"),
    ({"x": "text"}, "repeated string x = 1;", "x: text, and the schema says repeated string"),
    ({"x": ["text"]}, "string x = 1;", "x: a list, and the schema says string"),
    ({"x": [{"key": "text"}]}, "map<string, int32> x = 1;", "x.value: an entry of a map has key and value"),
    ({"x": "text", "y": "text"}, "string x = 1;", "y: the schema has no such field (drop it, or rename it)"),
]


@pytest.mark.parametrize(("fields", "said", "reason"), CANNOT)
def test_rows_that_a_schema_does_not_take_are_known_before_a_run(fields: Any, said: str, reason: str) -> None:
    with pytest.raises(Misfit) as raised:
        writing_fields(message(proto3(said)), struct_of(fields))
    assert str(raised.value).startswith(reason)


@pytest.mark.parametrize(
    ("said", "declared", "value", "reason"),
    [
        ("int32 x = 1;", "int32", None, "x: missing, and the schema does not tell that from its default"),
        ("repeated int32 x = 1;", ["int32"], None, "x: missing, and the schema does not tell that from an empty list"),
        ("repeated int32 x = 1;", ["int32"], [1, None], "x[]: missing, and a list of the schema has a value at each"),
        ("map<string, int32> x = 1;", KV, [{"key": "a", "value": None}], "x[].value: missing, and an entry of a map"),
        ("map<string, int32> x = 1;", KV, [{"key": "a", "value": 1}] * 2, "x: a key twice"),
        (f"{ENUM} E x = 1;", "text", "lost", "x: nothing that the schema's enum has"),
        ("google.protobuf.Timestamp x = 1;", "timestamp(s)", 2**40, "x: too early or too late for a Timestamp"),
        ("google.protobuf.Duration x = 1;", "decimal(38,0)", 10**12, "x: too long for a Duration"),
        ("repeated google.protobuf.Timestamp x=1;", ["timestamp(s)"], [1, 2**40], "x[]: too early or too late"),
        ("I x = 1; message I { int32 a = 1; }", {"a": "int32"}, {"a": None}, "x.a: missing, and the schema does not"),
    ],
)
def test_a_value_that_the_schema_does_not_take_is_named(said: str, declared: Any, value: Any, reason: str) -> None:
    of = struct_of({"x": declared})
    values, [(row, why)] = written(proto3(said), pa.array([{"x": value}], arrow_type(of)), of)
    assert (len(values), row) == (0, 0)
    assert why.startswith(reason)


def test_one_member_of_a_oneof_at_most_is_written() -> None:
    text = proto3("oneof o { int32 x = 1; string y = 2; } optional int32 z = 3;")
    of = struct_of({"x": "int32", "y": "text", "z": "int32"})
    some = pa.array([{"x": 0, "z": 1}, {"x": 1, "y": ""}, {"y": ""}, {}], arrow_type(of))
    found = written(text, some, of)
    assert found.values.to_pylist() == [b"\x08\0\x18\1", b"\x12\0", b""]
    assert found.unfit == [(1, "o: more than one member of a oneof is given")]


def test_a_number_that_is_none_stays_so() -> None:
    text = proto3("float x = 1; double y = 2;")
    body = value_of(text, x=float("nan"), y=float("nan"))
    found = read({"x": "float32", "y": "float64"}, text, body)
    assert written(text, found.rows, struct_of({"x": "float32", "y": "float64"})).values.to_pylist() == [body]


# --------------------------------------------------------------------------------------------------------- descriptors


def test_a_name_that_is_not_there_is_told_with_what_may_be_meant() -> None:
    text = descriptors(proto3("int32 x = 1; message Inner { int32 y = 1; }"))
    assert message_of(text, "t.M.Inner").full_name == "t.M.Inner"
    with pytest.raises(Misfit, match=r"no message 't.N'; did you mean t.M\?"):
        message_of(text, "t.N")
    for wrong in ("", "\ud800", "\0", "t.M.x"):
        with pytest.raises(Misfit, match="the descriptors have no message"):
            message_of(text, wrong)


@pytest.mark.parametrize("text", ["", "no base64", "Zm9v", "é", "gICAgICAgIA="])
def test_what_is_no_set_of_descriptors_has_a_reason(text: str) -> None:
    with pytest.raises(Misfit, match=r"the descriptors are not (base64 of )?a FileDescriptorSet"):
        check_descriptors(text)


def test_a_file_that_lacks_is_told_and_one_that_everybody_has_is_not_needed() -> None:
    made = FileDescriptorSet.FromString(
        descriptor_set(
            'syntax = "proto3"; import "other.proto"; import "google/protobuf/timestamp.proto";'
            "message M { O x = 1; google.protobuf.Timestamp y = 2; }",
            other='syntax = "proto3"; message O { int32 a = 1; }',
        )
    )
    alone = [one for one in made.file if not one.name.startswith("google/")]
    found = message_at(FileDescriptorSet(file=alone).SerializeToString(), (0,))
    assert str(fields_of(found)) == "{x: {a: int32}, y: timestamp(ns)}"
    with pytest.raises(Misfit, match="do they lack a file"):
        message_at(FileDescriptorSet(file=alone[1:]).SerializeToString(), (0,))
    with pytest.raises(Misfit, match="no message at that place"):
        message_at(made.SerializeToString(), (0, 1))


@given(st.binary(max_size=200), st.integers(0, 400), st.binary(max_size=3))
def test_any_descriptors_are_some_or_have_a_reason(noise: bytes, at: int, more: bytes) -> None:
    good = descriptor_set(proto3("int32 x = 1; I y = 2; message I { repeated string a = 1; }"))
    for content in (noise, good[:at] + more + good[at + len(more) :]):
        with suppress(Misfit):
            fields_of(message_at(content, (0,)))


# -------------------------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize(
    ("place", "before"),
    [
        ((0,), b"\0\0\0\1\2\0"),
        ((1,), b"\0\0\0\1\2\2\2"),
        ((0, 0), b"\0\0\0\1\2\4\0\0"),
        ((300,), b"\0\0\0\1\2\2\xd8\4"),
    ],
)
def test_a_message_is_found_by_its_place_in_its_file(place: tuple[int, ...], before: bytes) -> None:
    assert frame("registry", (258, place)) == before
    assert split_frame("registry", before + b"abc") == FramedMessage((258, place), b"abc")
    longer = before[:5] + b"\2\0"
    assert split_frame("registry", longer) == FramedMessage((258, (0,)), b""), "the longer form of the first"


@pytest.mark.parametrize("rest", [b"", b"\1", b"\2", b"\2\1", b"\xff" * 9, b"\xfe\xff\xff\xff\x0f", b"\x64"])
def test_what_names_no_message_has_a_reason(rest: bytes) -> None:
    found = split_frame("registry", b"\0\0\0\0\1" + rest)
    assert found == "the number of its schema is not followed by the place of a message"


def test_places_of_messages_are_those_of_their_file() -> None:
    made = descriptor_set(proto3("int32 x = 1;", "message B { message C {} message D { int32 d = 1; } }"))
    for place, name in (((0,), "t.M"), ((1,), "t.B"), ((1, 1), "t.B.D")):
        found = message_at(made, place)
        assert (found.full_name, place_of(found)) == (name, place)


def test_a_message_of_another_schema_or_place_is_rejected_with_its_reason() -> None:
    of, made = struct_of({"x": "int32"}), descriptor_set(proto3("int32 x = 1;", "message B { int32 x = 1; }"))

    def files(number: int) -> bytes:
        if number == 9:
            raise Misfit("the registry has none of that number")
        return made

    bodies = [b"\0\0\0\0\1" + rest for rest in (b"\0\x08\5", b"\2\2\x08\6", b"\2\4\x08\7")] + [b"\0\0\0\0\x09\0", b"\1"]
    found = ProtobufReader(of, "registry", {}, files=files).read(pa.array(bodies, pa.binary()))
    assert found.rows.to_pylist() == [{"x": 5}, {"x": 6}]
    assert found.unfit == [
        (2, "schema 1: the schema has no message at that place"),
        (3, "schema 9: the registry has none of that number"),
        (4, "it does not begin with a zero byte and the number of a schema"),
    ]
    named = ProtobufReader(of, "registry", {}, files=files, message="t.B").read(pa.array(bodies[:2], pa.binary()))
    assert (named.rows.to_pylist(), named.unfit) == ([{"x": 6}], [(0, "schema 1: another message than t.B")])
    given_one = ProtobufReader(of, "registry", {(1, (0,)): message_at(made, (0,))})
    found = given_one.read(pa.array([*bodies[:2], b"\0\0\0\0\2\0"], pa.binary()))
    assert found.rows.to_pylist() == [{"x": 5}]
    assert [why for _, why in found.unfit] == [
        "another message of the schema than that of the document",
        "written with schema 2, and the document has none of that number",
    ]


# ------------------------------------------------------------------------------------------------------ whatever comes

WIDE_TEXT = proto3(
    f"""{ENUM}
    optional bool a = 1; optional sint32 b = 2; optional fixed32 c = 3; optional int64 d = 4; optional uint64 e = 5;
    optional float f = 6; optional double g = 7; optional string h = 8; optional bytes i = 9;
    optional sfixed32 j = 10; optional uint32 k = 11; optional sint64 l = 12; optional fixed64 m = 13;
    optional sfixed64 n = 14; optional int32 o = 15; google.protobuf.Timestamp p = 16;
    google.protobuf.Duration q = 17; google.protobuf.DoubleValue r = 18; I s = 19; google.protobuf.BytesValue t = 20;
    oneof u {{ int32 v = 21; string w = 22; }}
    repeated sint64 x = 23; repeated I y = 24; map<string, I> z = 25; E aa = 26; int64 ab = 27; string ac = 28;
    message I {{ optional string a = 1; google.protobuf.Timestamp b = 2; optional E e = 3; }}"""
)
INNER = {"a": "text", "b": "timestamp(ns)", "e": "text"}
WIDE = struct_of(
    {
        "a": "bool",
        "b": "int32",
        "c": "uint32",
        "d": "int64",
        "e": "uint64",
        "f": "float32",
        "g": "float64",
        "h": "text",
        "i": "bytes",
        "j": "int16",
        "k": "uint16",
        "l": "epoch(us)",
        "m": "uint64",
        "n": "uint32",
        "o": "int8",
        "p": "timestamp(us)",
        "q": "decimal(21,9)",
        "r": "float64",
        "s": INNER,
        "t": "bytes",
        "v": "int32",
        "w": "text",
        "x": ["int64"],
        "y": [INNER],
        "z": [{"key": "text", "value": INNER}],
        "aa": "text",
        "ab": "int64",
        "ac": "text",
    }
)
PLAIN_TEXT = proto3(
    "optional bool a=1; optional int32 b=2; optional int64 c=3; optional uint64 d=4; optional float e=5;"
    "optional double f=6; optional string g=7; optional bytes h=8; I i=9; repeated I j=10; optional uint32 k=11;"
    "google.protobuf.Timestamp l=12; google.protobuf.StringValue m=13; repeated bytes n=14; repeated double o=15;"
    "message I { optional string a=1; optional sint64 b=2; I2 c=3; } message I2 { repeated fixed64 x=1; }"
)
INNER2 = {"a": "text", "b": "int64", "c": {"x": ["uint64"]}}
PLAIN = struct_of(
    {
        "a": "bool",
        "b": "int32",
        "c": "int64",
        "d": "uint64",
        "e": "float32",
        "f": "float64",
        "g": "text",
        "h": "bytes",
        "i": INNER2,
        "j": [INNER2],
        "k": "uint32",
        "l": "timestamp(ns)",
        "m": "text",
        "n": ["bytes"],
        "o": ["float64"],
    }
)


@pytest.mark.parametrize(("text", "of"), [(WIDE_TEXT, WIDE), (PLAIN_TEXT, PLAIN)])
@given(st.data(), st.sampled_from(["plain", "registry"]))
def test_rows_that_are_written_are_read_as_they_were(
    text: str, of: Type, data: st.DataObject, framing: Framing
) -> None:
    some = data.draw(rows(st.just(of)))[1]
    key = None if framing == "plain" else (7, (0,))
    before = frame(framing, key)
    values, unfit = written(text, some, of, before)
    reasons = ("missing, and", "nothing that", "a key twice", "too early", "too long", "more than one member")
    assert all(any(known in why for known in reasons) for _, why in unfit)
    kept = some.take(pa.array(sorted(set(range(len(some))) - {row for row, _ in unfit}), pa.int64()))
    found = ProtobufReader(of, framing, {key: message(text)}).read(values)
    found.rows.validate(full=True)
    assert found.unfit == []
    assert found.rows.type.equals(some.type, check_metadata=True)
    assert found.rows.equals(kept)
    assert written(text, found.rows, of, before).values.equals(values), "Arrow takes -0.0 for 0.0"
    theirs = GetMessageClass(message(text))
    for body in values.to_pylist():
        assert theirs.FromString(body[len(before) :]).SerializeToString() is not None


@st.composite
def _bodies(draw: st.DrawFn) -> bytes | None:
    made = draw(rows(st.just(PLAIN)))[1]
    valid = written(PLAIN_TEXT, made, PLAIN).values.to_pylist() or [b""]
    text = bytearray(valid[0])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3) | st.sampled_from([b"\xff" * 9, b"\x80"]))
    return draw(st.one_of(st.none(), st.binary(max_size=60), st.just(bytes(text))))


@pytest.mark.parametrize(
    ("text", "of", "unknown"), [(WIDE_TEXT, WIDE, "reject"), (PLAIN_TEXT, PLAIN, "drop"), (WIDE_TEXT, PLAIN, "drop")]
)
@given(st.lists(_bodies(), max_size=4))
def test_any_bytes_are_a_row_or_have_a_reason(
    text: str, of: Type, unknown: Unknown, bodies: list[bytes | None]
) -> None:
    kept = Type("struct", fields=tuple(one for one in of.fields if text is not WIDE_TEXT or one in WIDE.fields))
    found = read(kept, text, *bodies, unknown=unknown)
    found.rows.validate(full=True)
    for row, body in enumerate(bodies):
        alone = read(kept, text, body, unknown=unknown)
        assert [why for _, why in alone.unfit] == [why for at, why in found.unfit if at == row]


def test_a_value_is_bounded_before_it_is_decoded() -> None:
    wide = "".join(f"optional int64 f{at} = {at};" for at in range(1, 400))
    text = proto3("repeated I x = 1; repeated bool y = 2;", f"message I {{ {wide} }}")
    fields = {"x": [{"f1": "int64"}], "y": ["bool"]}
    many = [b"\x0a\0" * 3000, b"\x12\x84\x89\x7a" + b"\0" * 2_000_004, b"\0" * (LONGEST + 1), b"\x12" * 3]
    found = read(fields, text, *many, unknown="drop")
    reasons = [why for _, why in found.unfit]
    assert reasons == [
        STRICT + f"it holds more than {VALUES:,} values",
        STRICT + f"it holds more than {VALUES:,} values",
        "longer than 4 MiB",
        STRICT + "it ends too early",
    ]
    some = read(fields, text, b"\x0a\0" * 2000, unknown="drop")
    assert len(some.rows[0].as_py()["x"]) == 2000


def test_a_part_of_a_batch_is_as_large_as_it_may_be() -> None:
    text = proto3("bytes x = 1; repeated int32 y = 2;")
    bodies = [value_of(text, x=bytes(400_000), y=[at]) for at in range(7)]
    found = read({"x": "bytes", "y": ["int32"]}, text, *bodies[:3], b"\xff", *bodies[3:])
    assert found.rows.field("y").to_pylist() == [[at] for at in range(7)]
    assert [row for row, _ in found.unfit] == [3]


def test_reading_fields_names_what_is_left_out() -> None:
    text = proto2("oneof o { group G = 1 { optional int32 a = 1; } int32 x = 2; }")
    with pytest.raises(Misfit, match="g: the schema says a group in a oneof"):
        reading_fields(message(text), struct_of({"x": "int32"}), "drop")
