"""What fits a type, and what does not: each value alone and between others."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Context, Decimal
from time import process_time
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connect_core.rows import json_faults, json_reading
from connect_core.rows.json_reading import JsonReader, Read
from connect_core.rows.types import Type, struct_of

UTC = dt.UTC
PI_LONG = b"0.1000000000000000055511151231257827021181583404541015625"


def reader(kind: object, unknown: Literal["reject", "drop"] = "reject") -> JsonReader:
    return JsonReader(struct_of({"x": kind}), unknown=unknown)


def read(kind: object, text: bytes, unknown: Literal["reject", "drop"] = "reject") -> Read:
    """Alone, and in a slice among a missing one, some that fit, and one that makes the reader examine each."""
    one = reader(kind, unknown)
    alone = one.read(pa.array([text], pa.binary()))
    among = one.read(pa.array([b"skipped", b"{}", None, text, b'{"x":?}', b"{}", b"skipped"], pa.binary()).slice(1, 5))
    assert {1: "no value", 3: "not JSON, from character 6 on"}.items() <= dict(among.unfit).items()
    assert [(0, reason) for row, reason in among.unfit if row == 2] == alone.unfit
    assert among.rows.slice(1, 1 - len(alone.unfit)).equals(alone.rows)
    return alone


def value(number: bytes) -> bytes:
    return b'{"x":' + number + b"}"


@pytest.mark.parametrize(
    ("kind", "number", "meant"),
    [
        ("int64", b"9223372036854775807", 2**63 - 1),
        ("int64", b"-9223372036854775808", -(2**63)),
        ("int64", b"-0", 0),
        ("uint64", b"18446744073709551615", 2**64 - 1),
        ("int8", b"-128", -128),
        ("float64", b"18446744073709551616", 2.0**64),
        ("float64", b"0.1", 0.1),
        ("float64", PI_LONG, 0.1),
        ("float64", b"9007199254740993", 9007199254740992.0),
        ("float64", b"1.7976931348623157e308", 1.7976931348623157e308),
        ("float64", b"5e-324", 5e-324),
        ("float64", b"1e-400", 0.0),
        ("float64", b"3", 3.0),
        ("float64", b"3e0000000000001", 30.0),
        ("float64", b"0.0001e311", 1e307),
        ("float32", b"3.4028235e38", 3.4028234663852886e38),
        ("decimal(38)", b"12345678901234567890123456789012345678", Decimal("12345678901234567890123456789012345678")),
        (
            "decimal(38,10)",
            b"1234567890123456789012345678.0123456789",
            Decimal("1234567890123456789012345678.0123456789"),
        ),
        ("decimal(38,38)", b"1e-38", Decimal("1e-38")),
        ("decimal(12,2)", b"1.500000", Decimal("1.50")),
        ("decimal(12,2)", b"1e3", Decimal("1000.00")),
        ("decimal(12,2)", b"-9999999999.99", Decimal("-9999999999.99")),
        ("decimal(12,2)", b'"1.5"', Decimal("1.50")),
        ("bool", b"true", True),
        ("text", b'"a\\u0000\\n\\/\\ud83d\\ude00"', "a\0\n/\N{GRINNING FACE}"),
        (
            "text",
            '"\N{GRINNING FACE}\N{LATIN SMALL LETTER E WITH ACUTE}"'.encode(),
            "\N{GRINNING FACE}\N{LATIN SMALL LETTER E WITH ACUTE}",
        ),
        ("bytes", b'"AQID"', b"\1\2\3"),
        ("bytes", b'""', b""),
        ("date", b'"2024-02-29"', dt.date(2024, 2, 29)),
        ("time", b'"03:04:05.123456"', dt.time(3, 4, 5, 123456)),
        ("time(s)", b'"23:59:59"', dt.time(23, 59, 59)),
        ("time(s)", b'"03:04"', dt.time(3, 4)),
        ("timestamp(ms)", b'"2026-01-02T03:04:05.678Z"', dt.datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)),
        ("timestamp", b'"2026-01-02 03:04:05+02:00"', dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("timestamp", b'"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=UTC)),
        ("datetime", b'"2026-01-02T03:04:05"', dt.datetime(2026, 1, 2, 3, 4, 5)),
        ("epoch(ms)", b"1700000000123", dt.datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)),
        (["int64"], b"[1,null,3]", [1, None, 3]),
        (["epoch(s)"], b"[0,null]", [dt.datetime(1970, 1, 1, tzinfo=UTC), None]),
        ({"a": "int64", "b": "text"}, b'{"b":"c"}', {"a": None, "b": "c"}),
        (["date"], b"null", None),
        ({"a": "date"}, b"null", None),
    ],
)
def test_what_fits_is_read_exactly(kind: object, number: bytes, meant: object) -> None:
    got = read(kind, value(number))
    assert got.unfit == []
    assert repr(got.rows.to_pylist()) == repr([{"x": meant}]) or got.rows.to_pylist() == [{"x": meant}]


def test_the_sign_of_zero_is_kept() -> None:
    assert str(read("float64", value(b"-0.0")).rows[0]["x"].as_py()) == "-0.0"


WHOLE = "x: not a whole number that {} holds"
NUMBER = "x: not a number that {} holds"
MOMENT = "x: not a moment with its zone that {} holds, as 2026-01-02T03:04:05Z"
LOCAL = "x: not a date and time without a zone that {} holds, as 2026-01-02T03:04:05"
TIME = "x: not a time that {} holds, as 03:04:05"


@pytest.mark.parametrize(
    ("kind", "number", "reason"),
    [
        ("int64", b"9223372036854775808", WHOLE),
        ("uint64", b"18446744073709551616", WHOLE),
        ("uint64", b"-1", WHOLE),
        ("uint64", b"-0", WHOLE),
        ("int8", b"300", WHOLE),
        ("int64", b"1.0", WHOLE),
        ("int64", b"1.5", WHOLE),
        ("int64", b"1e2", WHOLE),
        ("int64", b'"12"', WHOLE),
        ("int64", b"true", WHOLE),
        ("int64", b'{"a":1}', WHOLE),
        ("int64", b"NaN", WHOLE),
        ("float64", b"1e400", "a number beyond float64"),
        ("float32", b"1e39", NUMBER),
        ("float64", b"17.9e308", NUMBER),
        ("float64", b"1" * 400, NUMBER),
        ("decimal(9,2)", b"0e309", "a number beyond float64"),
        ("float64", b"NaN", NUMBER),
        ("float64", b"-Infinity", NUMBER),
        ("float64", b'"NaN"', NUMBER),
        ("float64", b'"0.5"', NUMBER),
        ("decimal(18,4)", b"1.23456", NUMBER),
        ("decimal(18,4)", b'"123456789012345678"', NUMBER),
        ("decimal(38,10)", b"12345678901234567890123456789012345678", NUMBER),
        ("decimal(38,38)", b"1.000e2", NUMBER),
        ("decimal(38,38)", b"1e36", NUMBER),
        ("decimal(12,2)", b"NaN", NUMBER),
        ("decimal(12,2)", b'""', NUMBER),
        ("decimal(12,2)", b"false", NUMBER),
        ("text", b"12", "x: not a text"),
        ("text", b'{"a":1}', "x: not a text"),
        ("bool", b'"true"', "x: not true or false"),
        ("bool", b"1", "x: not true or false"),
        ("bytes", b'"AQI"', "x: not bytes as base64 text"),
        ("bytes", b'"A QI="', "x: not bytes as base64 text"),
        ("bytes", '"\N{LATIN SMALL LETTER E WITH ACUTE}"'.encode(), "x: not bytes as base64 text"),
        ("date", b'"2026-02-30"', "x: not a date, as 2026-01-02"),
        ("date", b'"2026-01-02T05:00:00"', "x: not a date, as 2026-01-02"),
        ("time", b'""', TIME),
        ("time", b'"24:00:00"', TIME),
        ("time", b'"03:04:05Z"', TIME),
        ("time(ms)", b'"03:04:05.123456"', TIME),
        ("timestamp", b'"2026-01-02T03:04:05"', MOMENT),
        ("timestamp", b'"2026-01-02T03:04:05.123456789Z"', MOMENT),
        ("timestamp", b'"2026-02-30T00:00:00Z"', MOMENT),
        ("timestamp", b"1700000000", MOMENT),
        ("timestamp(ns)", b'"0001-01-01T00:00:00Z"', MOMENT),
        ("datetime", b'"2026-01-02T03:04:05Z"', LOCAL),
        ("datetime", b'"2026-01-02T03:04:05+00:00"', LOCAL),
        ("datetime", b'"2026-01-02"', LOCAL),
        ("epoch(ms)", b'"2026-01-02T03:04:05Z"', WHOLE),
        ("epoch(ms)", b"1.5", WHOLE),
        (["int64"], b"1", "x: not a list"),
        (["int64"], b'[1,"2"]', "x[]: not a whole number that int64 holds"),
        (["date"], b'["2026-01-02","?"]', "x[]: not a date, as 2026-01-02"),
        ({"a": "int64"}, b"[1]", "x: not an object"),
        ({"a": ["int8"]}, b'{"a":[128]}', "x.a[]: not a whole number that int8 holds"),
        ({"a": "int64"}, b'{"a":1,"SECRET":2}', "x: a field that is not declared (unknown: drop leaves such out)"),
        ({"a": "int64"}, b'{"a":1,"a":2}', "x.a: given more than once"),
        ("text", b'"\\ud800"', "not JSON: half of a surrogate pair"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(kind: object, number: bytes, reason: str) -> None:
    got = read(kind, value(number))
    assert got.unfit == [(0, reason.format(struct_of({"x": kind}).fields[0][1]))]
    assert len(got.rows) == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty"),
        (b"  ", "empty"),
        (b"null", "not one JSON object"),
        (b"5", "not one JSON object"),
        (b'[{"x":1}]', "not one JSON object"),
        (b'{"x":1', "not one JSON object"),
        (b'{"x":1}]', "not one JSON object"),
        (b'{"x":1},', "not one JSON object"),
        (b'{"x":1} x', "not one JSON object"),
        (b'\xef\xbb\xbf{"x":1}', "a byte order mark before it"),
        (b'\x0c{"x":1}', "not one JSON object"),
        (b'{"x":1}\0', "not one JSON object"),
        (b'{"x":1}\0}', "not JSON, from character 8 on"),
        (b'{"x":1}{"x":2}', "not JSON, from character 8 on"),
        (b'{"x":1} \n {"x":2}', "not JSON, from character 11 on"),
        (b'{"x":1,}', "not JSON, from character 8 on"),
        (b'{"x":/*c*/1}', "not JSON, from character 6 on"),
        (b"{'x':1}", "not JSON, from character 2 on"),
        (b'{"x":01}', "not JSON, from character 7 on"),
        (b'{"x":+1}', "not JSON, from character 6 on"),
        (b'{"x":.5}', "not JSON, from character 6 on"),
        (b'{"x":Inf}', "not JSON of the declared fields"),
        (b'{"x":"a\nb"}', "not JSON, from character 8 on"),
        (b'{"x":"a\0b"}', "not JSON, from character 8 on"),
        (b'{"x":"\\q"}', "not JSON, from character 7 on"),
        (b'{"x":"}', "not JSON, from character 6 on"),
        (b'{"x":{}', "not JSON, from character 8 on"),
        (b'{"x":"\xff"}', "not UTF-8"),
        (b'{"x":"\xc0\x80"}', "not UTF-8"),
        (b'{"x":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"x":1,"x":1}', "x: given more than once"),
        (b'{"x":null,"x":1}', "x: given more than once"),
        (b'{"SECRET":2,"x":1}', "a field that is not declared (unknown: drop leaves such out)"),
        (b'{"SECRET":null,"x":1}', "a field that is not declared (unknown: drop leaves such out)"),
        (value(b"1" * 10_000_000), "not JSON of the declared fields"),
        (b'{"y":' + b"[" * 1000 + b"]" * 1000 + b"}", "not JSON of the declared fields"),
        (b'{"y":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON of the declared fields"),
    ],
)
def test_what_is_no_object_of_the_type_has_a_reason(text: bytes, reason: str) -> None:
    assert read("int64", text).unfit == [(0, reason)]


@pytest.mark.parametrize(
    "text",
    [
        b' \r\n\t{ "x" :\t1 ,\r"y":[]} \n',
        b'{\n"y":{"x":2,"x":3},\r\n"x":1\n}',
        b'{"\\u0078":1}',
        b'{"y":' + b"[" * 100_000 + b"]" * 100_000 + b',"x":1}',
        b'{"y":' + b"1" * 100_000 + b',"x":1}',
        b'{"y":"\\ud83d\\ude00","x":1}',
        b'{"y":[NaN,-Inf],"x":1}',
    ],
)
def test_fields_that_are_not_declared_are_dropped(text: bytes) -> None:
    assert read("int64", text, "drop").rows.to_pylist() == [{"x": 1}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"y":"\xff","x":1}', "not UTF-8"),
        (b'{"y":"\\ud800","x":1}', "not JSON: half of a surrogate pair"),
        (b'{"y":1e400,"x":1}', "a number beyond float64"),
        (b'{"y":[1,],"x":1}', "not JSON, from character 9 on"),
        (b'{"y":1,"x":1,"x":2}', "x: given more than once"),
    ],
)
def test_what_is_in_dropped_fields_is_still_json(text: bytes, reason: str) -> None:
    assert read("int64", text, "drop").unfit == [(0, reason)]


@settings(deadline=None)
@given(
    st.integers(1, 38),
    st.integers(0, 38),
    st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?(e-?[0-9]{1,2})?", fullmatch=True),
)
@example(38, 10, "12345678901234567890123456789012345678")
@example(38, 38, "1.000e2")
@example(5, 4, "1e-43")
@example(38, 38, "1e-120")
@example(5, 4, "0." + "0" * 43 + "1")
@example(5, 4, "0." + "0" * 150 + "1")
@example(38, 0, "1e45")
@example(5, 4, "-0.00001E-38")
@example(5, 4, "1e-9999999")
@example(38, 38, "0e-9999999")
def test_a_decimal_is_read_exactly_or_not_at_all(precision: int, scale: int, number: str) -> None:
    """Arrow's own multiplication overflows silently. It is stricter with more digits than it can hold, though."""
    kind = Type("decimal", precision=precision, scale=min(scale, precision))
    got = JsonReader(Type("struct", fields=(("x", kind),))).read(pa.array([value(number.encode())], pa.binary()))
    if not got.unfit:
        assert got.rows[0]["x"].as_py() == Decimal(number)
    elif "e" not in number and len(number) <= precision:
        exact = Decimal(number)
        assert (
            exact.adjusted() >= precision - kind.scale
            or -int(exact.normalize(Context(prec=100)).as_tuple().exponent) > kind.scale
        )


@pytest.mark.parametrize("kind", ["decimal(5,4)", ["decimal(5,4)"], {"y": "decimal(5,4)"}])
def test_a_point_that_is_far_away_moves_no_other_record(kind: Any) -> None:
    """Arrow makes 0 of such a number."""
    form = b'{"x":%s}' if isinstance(kind, str) else b'{"x": [%s]}' if isinstance(kind, list) else b'{"x":{"y":%s}}'
    far = (b"1e-43", b"0.00001e-38", b'"1e-43"', b'" .' + b"0" * 43 + b'1"', b'"\\u0031e-43"', b'"1\\u0065\\u002d43"')
    some = [form % one for one in (b"1.5", *far, b"15e-1", b"2.5E+00", b'"3.5"')]
    got = reader(kind).read(pa.array(some, pa.binary()))
    assert [row for row, _ in got.unfit] == list(range(1, 1 + len(far)))
    numbers = [Decimal(one) for one in ("1.5", "1.5", "2.5", "3.5")]
    wrapped = {"list": lambda one: [one], "dict": lambda one: {"y": one}}.get(type(kind).__name__, lambda one: one)
    assert got.rows.to_pylist() == [{"x": wrapped(one)} for one in numbers]


def test_no_reason_has_what_was_in_the_record() -> None:
    """A name of the document may be in it, and nothing else."""
    some = [b'{"x":"SECRET"}', b'{"SECRET":1}', b"SECRET", b'{"x":"SECRET\xff"}', b'{"x":1,SECRET}', b'{"x":1}{SECRET}']
    for kind in ("int64", "decimal(9,2)", "date", "timestamp", "bytes", "time", {"a": "text"}, ["text"]):
        reasons = [reason for _, reason in reader(kind).read(pa.array(some, pa.binary())).unfit]
        assert len(reasons) == len(some)
        assert "SECRET" not in "".join(reasons)


def test_two_objects_in_one_record_do_not_make_up_for_none_in_another() -> None:
    some = [b'{"x":1}{"x":2}', b'{"x":"}', b'{"x":3}{"x":4}', b'{"x":5}\0}', b'{"x":6}']
    got = reader("int64").read(pa.array(some, pa.binary()))
    assert (got.rows.to_pylist(), [row for row, _ in got.unfit]) == ([{"x": 6}], [0, 1, 2, 3])


@pytest.mark.parametrize("part", [1, 40, 1 << 20])
def test_a_batch_is_read_in_parts(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr(json_reading, "PART", part)
    some = [b'{"x":%d}' % row if row % 7 else b'{"x":"?"}' for row in range(500)]
    got = reader("int64").read(pa.array(some, pa.binary()))
    assert got.rows.to_pylist() == [{"x": row} for row in range(500) if row % 7]
    assert got.unfit == [(row, WHOLE.format("int64")) for row in range(0, 500, 7)]


def test_a_long_record_is_judged_without_objects_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_faults, "EXPLAINED", 10)
    some = [b'{"x":1234567}', b'{"x":"12345"}', b'{"x":"1"}']
    got = reader("int64").read(pa.array(some, pa.binary()))
    assert got.rows.to_pylist() == [{"x": 1234567}]
    assert got.unfit == [(1, json_faults.MISFIT), (2, WHOLE.format("int64"))]


WIDE = {"n": "int32", "at": "timestamp", "d": "date", "b": "bytes", "p": "decimal(9,2)", "l": ["time"], "t": "text"}
FIT: dict[str, Any] = {"n": 1, "at": "2026-01-02T03:04:05Z", "d": "2026-01-02", "b": "AQID", "p": 1.5, "l": ["03:04"]}


@pytest.mark.parametrize(
    "bad",
    [
        lambda row: json.dumps(FIT | {"n": "1"}),
        lambda row: json.dumps(FIT | {"unknown": 1}),
        lambda row: json.dumps(FIT | {"at": f"{row}"}),
        lambda row: json.dumps(FIT | {"at": f"{row}", "d": "2026-02-30", "b": "!", "p": 1e20, "l": ["x"] * 5}),
        lambda row: json.dumps(FIT | {"p": "0.001"}),
        lambda row: json.dumps(FIT | {"t": "\ud800"}),
        lambda row: json.dumps(FIT) * 2,
        lambda row: json.dumps(FIT)[:-1] + "]}",
        lambda row: json.dumps(FIT)[:-1] + ',"n":1e400}',
        lambda row: json.dumps(FIT | {"n": "1"} if row % 10 == 3 else FIT | {"d": "x"} if row % 10 == 5 else FIT),
    ],
)
def test_many_that_do_not_fit_take_no_long_time(bad: Callable[[int], str]) -> None:
    some = pa.array([bad(row).encode() for row in range(4000)], pa.binary())
    one = JsonReader(struct_of(WIDE))
    begin = process_time()
    got = one.read(some)
    assert process_time() - begin < 3, "some tenths of a second where nothing else runs"
    assert len(got.unfit) in (4000, 800)


def test_many_items_that_do_not_fit_are_one_record() -> None:
    some = pa.array([value(b"[" + b",".join([b'"x"'] * 200_000) + b"]"), value(b'["2026-01-02"]')], pa.binary())
    begin = process_time()
    got = reader(["date"]).read(some)
    assert got.unfit == [(0, "x[]: not a date, as 2026-01-02")]
    assert process_time() - begin < 3
