"""What is written is read as it was, and whatever is read is a row or has a reason."""

from __future__ import annotations

import json
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_core.rows.json_reading import JsonReader, Read
from connect_core.rows.json_writing import written
from connect_core.rows.types import Type, struct_of
from tests.unit.rows.strategies import ROW_TYPES, rows

Unknown = Literal["reject", "drop"]

WIDE = struct_of(
    {
        "n": "int32",
        "f": "float32",
        "d": "decimal(12,2)",
        "t": "text",
        "at": "timestamp(ms)",
        "b": "bytes",
        "l": ["time"],
        "s": {"x": "bool", "day": "date", "u": ["uint64"]},
    }
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([name for name, _ in WIDE.fields]) | st.text(), inner, max_size=6)
    ),
)


@given(rows())
def test_rows_that_are_written_are_read_as_they_were(made: tuple[Type, pa.StructArray]) -> None:
    one, some = made
    texts, unfit = written(some)
    assert (len(texts), unfit) == (len(some), [])
    for text in texts.to_pylist():
        assert list(json.loads(text)) == [name for name, _ in one.fields]
    read = JsonReader(one).read(texts)
    read.rows.validate(full=True)
    assert read.unfit == []
    assert read.rows.type.equals(some.type, check_metadata=True)
    assert read.rows.equals(some)
    assert written(read.rows).values.equals(texts), "Arrow takes -0.0 for 0.0"


def whole(read: Read, values: int) -> None:
    read.rows.validate(full=True)
    assert read.rows.null_count == 0
    assert [row for row, _ in read.unfit] == sorted({row for row, _ in read.unfit})
    assert len(read.rows) + len(read.unfit) == values


@given(st.data(), st.sampled_from(["reject", "drop"]))
def test_whatever_comes_is_a_row_or_has_a_reason_whatever_it_comes_with(data: st.DataObject, unknown: Unknown) -> None:
    some = data.draw(st.lists(_texts(data), max_size=8))
    begin = data.draw(st.integers(0, len(some)))
    values = pa.array(some, pa.binary()).slice(begin)
    reader = JsonReader(WIDE, unknown=unknown)
    read = reader.read(values)
    whole(read, len(values))
    alone = [reader.read(values.slice(row, 1)) for row in range(len(values))]
    assert [row for row, one in enumerate(alone) if one.unfit] == [row for row, _ in read.unfit]
    assert [one.unfit[0][1] for one in alone if one.unfit] == [reason for _, reason in read.unfit]
    assert read.rows.equals(pa.concat_arrays([one.rows for one in alone] or [read.rows]))


def test_the_name_of_a_dropped_field_makes_no_difference() -> None:
    some = [b"{\0}", b'{"":null,"":"\\ud800\\udc00"}']
    assert [row for row, _ in JsonReader(WIDE, unknown="drop").read(pa.array(some, pa.binary())).unfit] == [0]


def _texts(data: st.DataObject) -> st.SearchStrategy[bytes | None]:
    fit = rows(st.just(WIDE)).map(lambda made: written(made[1]).values.to_pylist())
    valid = fit.map(lambda texts: texts[0] if texts else b"{}")
    return st.one_of(
        st.none(), st.binary(max_size=40), JSON.map(lambda value: json.dumps(value).encode()), valid, _mutated(valid)
    )


PIECES = [b"{", b"}", b"[", b'"', b"\\", b",", b"1", b"-", b"e9", b"NaN", b"Inf", b"null", b"\n", b"\0", b'":{"']


@st.composite
def _mutated(draw: st.DrawFn, valid: st.SearchStrategy[bytes]) -> bytes:
    text = bytearray(draw(valid))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3) | st.sampled_from(PIECES))
    return bytes(text)


@settings(deadline=None)
@given(ROW_TYPES, st.lists(st.binary(max_size=30), max_size=4))
def test_any_type_reads_any_bytes(one: Type, some: list[bytes]) -> None:
    values = pa.array([*some, b"{}"], pa.binary())
    whole(JsonReader(one).read(values), len(values))


@pytest.mark.parametrize("unknown", ["reject", "drop"])
def test_nothing_is_read_from_nothing(unknown: Unknown) -> None:
    empty: list[Any] = []
    read = JsonReader(WIDE, unknown=unknown).read(pa.array(empty, pa.binary()))
    assert (len(read.rows), read.unfit) == (0, [])
    assert written(read.rows).values.type == pa.binary()
    assert len(written(read.rows).values) == 0
