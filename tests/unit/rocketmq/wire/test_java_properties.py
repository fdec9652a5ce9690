from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.java_properties import decode, encode

# No line separators of Unicode, which Java's reader would not take for line ends either but Python's does.
PLAIN = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")))


@given(st.dictionaries(PLAIN.filter(bool), PLAIN))
def test_round_trip(settings: dict[str, str]) -> None:
    assert decode(encode(settings)) == settings


def test_what_a_broker_sends() -> None:
    text = b"# comment\n\nbrokerName=broker-a\nmaxMessageSize=4194304\nempty=\nspaced = a b\npath=C\\:\\\\data\n"
    assert decode(text) == {
        "brokerName": "broker-a",
        "maxMessageSize": "4194304",
        "empty": "",
        "spaced": "a b",
        "path": "C:\\data",
    }


def test_line_ends_stay_inside_a_value() -> None:
    assert encode({"a": "x\ny"}) == b"a=x\\ny\n"
    assert decode(b"a=x\\ny\\u0041\n") == {"a": "x\nyA"}


def test_not_utf8() -> None:
    with pytest.raises(WireFormatError):
        decode(b"\xff")
