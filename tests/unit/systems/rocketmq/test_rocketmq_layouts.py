"""A batch of property strings is sorted out as each of them is, whatever they look like."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.systems.rocketmq.attributes import Attributes, attribute_columns, attributes
from connect_core.systems.rocketmq.columns import FEW
from connect_core.systems.rocketmq.layouts import layout_of

ROWS = FEW + 3
_NAMES = st.sampled_from(
    [
        b"KEYS",
        b"TAGS",
        b"UNIQ_KEY",
        b"WAYBILL",
        b"BORN_TIMESTAMP",
        b"CLUSTER",
        b"TIMER_X",
        b"color",
        b"size",
        "größe".encode(),
    ]
)
_VALUES = st.sampled_from([b"a", b"longer", b"12", b"1\x012", "ß".encode(), b"1234567890123456"])
_ODD = st.sampled_from([b"", b"\x02", b"name", b"name\x01", b"\x01value", b"KEYS\x01k\x02\x02", b"x\x01\xff"])


def sorted_out(texts: list[bytes]) -> list[Attributes]:
    found = attribute_columns(pa.array(texts, pa.binary()))
    born = found.born_ms.to_pylist() if found.born_ms is not None else [None] * len(texts)
    columns = [one.to_pylist() for one in (found.key, found.tags, found.headers, found.message_id)]
    return [Attributes(*row) for row in zip(*columns, born, strict=True)]


@st.composite
def like_one_another(draw: st.DrawFn) -> list[bytes]:
    """Strings of the same names in the same order, with or without a separator at the end."""
    names = draw(st.lists(_NAMES, max_size=5))
    ended = draw(st.booleans())
    texts = []
    for _ in range(ROWS):
        text = b"\x02".join(name + b"\x01" + draw(_VALUES) for name in names)
        texts.append(text + b"\x02" * (ended and bool(names)))
    return texts


@given(like_one_another())
def test_strings_of_one_layout_are_sorted_out_together(texts: list[bytes]) -> None:
    assert layout_of(pa.array(texts, pa.binary())) is not None
    assert sorted_out(texts) == [attributes(text) for text in texts]


@given(like_one_another(), st.lists(st.tuples(st.integers(0, ROWS - 1), _ODD), max_size=3))
def test_strings_that_differ_are_sorted_out_alike(texts: list[bytes], odd: list[tuple[int, bytes]]) -> None:
    for row, text in odd:
        texts[row] = text + texts[row]
    try:
        expected = [attributes(text) for text in texts]
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            sorted_out(texts)
    else:
        assert sorted_out(texts) == expected


def test_part_of_a_larger_array_has_its_own_layout() -> None:
    everything = pa.array([b"other\x01x"] + [b"KEYS\x01%d" % n for n in range(ROWS)], pa.binary())
    assert layout_of(everything) is None
    part = layout_of(everything.slice(1))
    assert part is not None
    assert part.value(0).to_pylist() == [b"%d" % n for n in range(ROWS)]


def test_a_key_that_is_not_utf_8_is_told() -> None:
    with pytest.raises(UnicodeDecodeError):
        attribute_columns(pa.array([b"KEYS\x01\xff"] * ROWS, pa.binary()))
