"""The form in which MySQL keeps JSON. What it writes itself is in the contract tests."""

from __future__ import annotations

import contextlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from connect_core.systems.mysql.binlog.json_binary import DamagedJson, double_text, json_text

SMALL = bytes.fromhex(
    "00 0200 1e00 1200 0100 1300 0100 05 ffff 02 1400 6162 0100 0a00 0c 0700 02 6869".replace(" ", "")
)
"""{"a": -1, "b": ["hi"]}"""


def test_a_document() -> None:
    assert json_text(SMALL) == '{"a": -1, "b": ["hi"]}'


def test_nothing_at_all_is_null() -> None:
    assert json_text(b"") == "null"


NUMBERS = [
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (1e14, "100000000000000.0"),
    (1e15, "1e15"),
    (1234567890123456.8, "1234567890123456.8"),
    (123456789012345680.0, "1.2345678901234568e17"),
    (1e-15, "0.000000000000001"),
    (1e-16, "1e-16"),
    (-2.5e300, "-2.5e300"),
    (0.1, "0.1"),
    (5e-324, "5e-324"),
]


@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_numbers_are_written_as_the_server_does(number: float, text: str) -> None:
    assert json_text(b"\x0b" + struct.pack("<d", number)) == text


@given(some.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_when_it_is_read(number: float) -> None:
    assert repr(float(json.loads(double_text(number)))) == repr(number)


@pytest.mark.parametrize("cut", range(1, len(SMALL)))
def test_what_is_cut_off_is_damaged(cut: int) -> None:
    with pytest.raises(DamagedJson):
        json_text(SMALL[:cut])


@given(some.binary(max_size=60) | some.builds(lambda head, rest: head + rest, some.just(SMALL[:9]), some.binary()))
def test_any_bytes_are_json_or_damaged(data: bytes) -> None:
    with contextlib.suppress(DamagedJson):
        json_text(data)


def test_a_type_that_is_not_known_is_damaged() -> None:
    with pytest.raises(DamagedJson, match="of kind 13"):
        json_text(b"\x0d\x00")
