from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire import properties

NAMES = st.text(min_size=1).filter(lambda text: "\x01" not in text and "\x02" not in text)
VALUES = st.text(min_size=1).filter(lambda text: "\x02" not in text)
FEW_NAMES = st.sampled_from(["a", "ba", "UNIQ_KEY", "WAYBILL", "", "a\x01", "xWAYBILL"])
PAIRS = st.lists(st.tuples(FEW_NAMES, st.sampled_from(["", "1", "WAYBILL\x01", "x\x01y", "UNIQ_KEY"])))


@given(st.dictionaries(NAMES, VALUES))
def test_round_trip(original: dict[str, str]) -> None:
    decoded = properties.decode(properties.encode(original))
    assert decoded == original
    assert list(decoded) == list(original)


@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [
        (b"", {}),
        (b"a\x01b\x02", {"a": "b"}),
        (b"a\x01b", {"a": "b"}),
        (b"a\x01x\x01y\x02", {"a": "x\x01y"}),
        (b"a\x01\x02\x01b\x02c\x02\x02d\x01e\x02", {"d": "e"}),
        (b"a\x011\x02b\x012\x02a\x013\x02", {"a": "3", "b": "2"}),
        (b"UNIQ_KEY\x01own\x02a\x011\x02UNIQ_KEY\x01batch\x02", {"UNIQ_KEY": "own", "a": "1"}),
        ("ümlaut\x01wert £\x02".encode(), {"ümlaut": "wert £"}),
    ],
)
def test_decoding(encoded: bytes, decoded: dict[str, str]) -> None:
    assert properties.decode(encoded) == decoded


def test_encoding_leaves_out_what_every_reader_drops() -> None:
    assert properties.encode([("a", ""), ("", "b"), ("c", "d")]) == b"c\x01d\x02"


@pytest.mark.parametrize(("name", "value"), [("a\x01", "b"), ("a\x02", "b"), ("a", "b\x02c")])
def test_separators_cannot_be_encoded(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="separator"):
        properties.encode({name: value})


def test_not_utf8() -> None:
    with pytest.raises(WireFormatError, match="byte 2"):
        properties.decode(b"a\x01\xff\x02")
    with pytest.raises(WireFormatError, match="Property a"):
        properties.value_of(b"a\x01\xff\x02", "a")


@given(PAIRS)
def test_value_of_is_what_decode_says(pairs: list[tuple[str, str]]) -> None:
    encoded = "".join(f"{name}\x01{value}\x02" for name, value in pairs).encode()
    decoded = properties.decode(encoded)
    for name in ("a", "ba", "UNIQ_KEY", "WAYBILL", "absent"):
        assert properties.value_of(encoded, name) == decoded.get(name)


@pytest.mark.parametrize("name", ["DELAY", "TIMER_DELAY_SEC", "TRAN_MSG", "REAL_TOPIC", "MSG_REGION", "__CRC32#"])
def test_dropped_in_copies(name: str) -> None:
    assert not properties.kept_in_copies(name)


@pytest.mark.parametrize("name", ["KEYS", "TAGS", "UNIQ_KEY", "__SHARDINGKEY", "TRACE_CONTEXT", "mine", "DELAYED"])
def test_kept_in_copies(name: str) -> None:
    assert properties.kept_in_copies(name)


@pytest.mark.parametrize(("tag", "expected"), [("even", 3125530), ("odd", 109871), ("", 0), ("€😀", 9810703)])
def test_tag_hash(tag: str, expected: int) -> None:
    assert properties.tag_hash(tag) == expected


def test_tag_hash_is_signed() -> None:
    assert properties.tag_hash("polygenelubricants") == -(2**31)
