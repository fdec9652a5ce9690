"""Casts of whole columns agree with casts of one value at a time."""

from __future__ import annotations

import math
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connect_core.pipeline.transforms.casts import WAYS, fault_of
from connect_core.pipeline.transforms.running import run
from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import PLAIN, UNITS, Type, type_of
from tests.unit.pipeline.transforms import one_by_one
from tests.unit.pipeline.transforms.stepping import checked_run, typed_rows

DAY = 86_400


@st.composite
def decimals(draw: st.DrawFn) -> Type:
    precision = draw(st.integers(1, 38))
    return Type("decimal", precision=precision, scale=draw(st.integers(0, precision)))


TYPES = st.one_of(
    st.sampled_from(PLAIN).map(Type),
    st.builds(Type, st.sampled_from(["time", "timestamp", "datetime", "epoch"]), unit=st.sampled_from(UNITS)),
    decimals(),
)
POSSIBLE = st.tuples(TYPES, TYPES).filter(lambda pair: not fault_of(*pair))
POWERS = [sign << bits for bits in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for sign in (1, -1)]
EDGES = [power + more for power in POWERS for more in (-1, 0, 1)]
SLIPS = ["", "0", "1", "9", "-", ".", "00", " ", "Z", "+05:30", "e5"]


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from([low, high, *(one for one in EDGES if low <= one <= high)]) | st.integers(low, high)


def values(one: Type, meant: Type) -> st.SearchStrategy[Any]:
    """As `one_by_one` has them; texts are mostly such that they are of type `meant`."""
    kind = one.kind
    if kind == "text":
        return texts(meant)
    if kind == "decimal":
        digits = whole(-(10**one.precision) + 1, 10**one.precision - 1) | st.integers(-99, 99).map(
            lambda number: number * 10**one.scale if abs(number) < 10 ** (one.precision - one.scale) else 0
        )
        return digits.map(lambda number: Decimal(f"{number}e-{one.scale}"))
    if kind == "time":
        seconds = 10 ** one_by_one.DIGITS[one.unit]
        return st.integers(0, DAY * seconds - 1) | st.integers(0, DAY - 1).map(lambda number: number * seconds)
    if kind in ("timestamp", "datetime", "epoch"):
        ticks = 10 ** one_by_one.DIGITS[one.unit]
        return whole(-(1 << 63), (1 << 63) - 1) | st.integers(-(10**9), 10**9).map(lambda number: number * ticks)
    if kind == "date":
        return whole(-(1 << 31), (1 << 31) - 1) | st.integers(-719_600, 2_933_000)
    if kind.startswith("float"):
        exact = whole(-(1 << 63), 1 << 64).map(float).map(lambda one: one if kind == "float64" else rounded(one))
        return exact | st.floats(width=int(kind[5:])) | st.sampled_from([0.5, -0.0, 1.25, 1e9])
    if kind == "bool":
        return st.booleans()
    if kind == "bytes":
        return st.binary(max_size=9)
    bits, unsigned = int(kind.lstrip("uint")), kind.startswith("u")
    return whole(0, (1 << bits) - 1) if unsigned else whole(-(1 << bits - 1), (1 << bits - 1) - 1)


def rounded(one: float) -> float:
    made: float = pa.array([one]).cast(pa.float32(), safe=False)[0].as_py()
    return made


@st.composite
def texts(draw: st.DrawFn, meant: Type) -> str:
    """Of a value of the type, whole or with something else in it; or any."""
    if meant.kind == "text" or draw(st.integers(0, 9)) == 0:
        return draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=9))
    try:
        text = one_by_one.text(draw(values(meant, meant)), meant)
    except one_by_one.Unfit:
        text = "NaN"
    if draw(st.booleans()):
        place = draw(st.integers(0, len(text)))
        much = draw(st.integers(0, 2))
        text = text[:place] + draw(st.sampled_from(SLIPS)) + text[place + much :]
    return text


def column(one: Type, given: list[Any]) -> pa.Array:
    return pa.array(given, arrow_type(one))


def same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float) and math.isnan(first):
        return math.isnan(second)
    return bool(first == second) and type(first) is type(second)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Type, Type, list[Any]]:
    given_type, wanted = draw(POSSIBLE)
    return given_type, wanted, draw(st.lists(st.none() | values(given_type, wanted), max_size=8))


@given(cases(), st.integers(0, 3))
@example((Type("text"), type_of("datetime(ns)"), ["2262-04-11T23:47:16.854775807", "2262-04-11T23:47:16.854775808"]), 0)
@example((Type("text"), type_of("timestamp(us)"), ["0000-01-01T00:00:00+00:01", "0000-02-29T00:00:00-00:01"]), 0)
@example((Type("text"), Type("date"), ["2023-02-29", "2024-02-29", "1900-02-29", "2000-02-29", "2024-02-30"]), 0)
@example((Type("float64"), type_of("decimal(38,38)"), [1e-38, 5e-324, 0.1, 1e300]), 0)
@example((type_of("decimal(20,0)"), type_of("decimal(21,0)"), [Decimal((1 << 64) - 1), Decimal(1 - (1 << 64))]), 0)
@example((type_of("decimal(3,1)"), Type("float32"), [Decimal("0.1"), Decimal("16.1")]), 0)
def test_columns_are_cast_as_values_are(case: tuple[Type, Type, list[Any]], begin: int) -> None:
    """Also those of a slice, and of a struct that may be null; what does not fit makes its row unfit."""
    given_type, wanted, several = case
    shape = Type("struct", fields=(("of", Type("struct", fields=(("x", given_type),))),))
    inner = column(given_type, several)
    mask = pa.array([place % 4 == 3 for place in range(len(several))], pa.bool_())
    of = pa.StructArray.from_arrays([inner], fields=list(arrow_type(shape.fields[0][1])), mask=mask)
    struct = pa.StructArray.from_arrays([of], fields=list(arrow_type(shape))).slice(begin)
    done = checked_run([{"cast": {"of.x": str(wanted)}}], shape, struct)
    made = one_by_one.raw(done.rows.struct.field("of").flatten()[0], wanted)
    there, lost = dict(zip(done.places.tolist(), made, strict=True)), {place for place, _ in done.unfit}
    assert set(there) | lost == set(range(len(struct)))
    for place, value in enumerate(several[begin:]):
        value = None if (place + begin) % 4 == 3 else value
        try:
            expected = one_by_one.cast(value, given_type, wanted)
        except one_by_one.Unfit:
            assert place in lost, (given_type, wanted, value, there[place])
        else:
            assert place in there, (given_type, wanted, value)
            assert same(there[place], expected), (given_type, wanted, value, there[place], expected)
    assert done.rows.struct.field("of").is_null().to_pylist() == [(place + begin) % 4 == 3 for place in done.places]


@pytest.mark.parametrize("kind", sorted(WAYS))
def test_every_possible_cast_has_a_way(kind: str) -> None:
    example_of = {"decimal": "decimal(5,2)", "time": "time(s)", "timestamp": "timestamp(s)", "epoch": "epoch(s)"}
    given_type = type_of(example_of.get(kind, kind))
    for other in WAYS[kind]:
        shape = Type("struct", fields=(("x", given_type),))
        checked_run([{"cast": {"x": example_of.get(other, other)}}], shape, pa.array([{"x": None}], arrow_type(shape)))


@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        ("int8", "12", "300"),
        ("date", "2024-02-29", "2023-02-29"),
        ("timestamp(ms)", "2024-02-29T10:00:00.123Z", "2023-02-29T10:00:00Z"),
        ("time(ms)", "10:00:00.123", "10:00:00.1234"),
        ("decimal(9,2)", "12.50", "12.505"),
        ("float64", "1.5", "1e400"),
        ("bytes", "AAAA", "A"),
    ],
)
def test_many_unfit_rows_are_found_in_no_time(wanted: str, good: str, bad: str) -> None:
    several = [bad if place % 5 < 2 else good for place in range(10_000)]
    rows = typed_rows(pa.array([{"x": one} for one in several]))
    begin = time.perf_counter()
    done = run([step_of({"cast": {"x": wanted}})], rows)
    assert time.perf_counter() - begin < 3
    assert (len(done.places), len(done.unfit)) == (6_000, 4_000)
    assert {why for _, why in done.unfit} == {f"cast of x: this text is no {wanted}"}
