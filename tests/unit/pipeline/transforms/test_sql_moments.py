"""Moments that SQL has none for, and those it makes that are none: the record is rejected, and nothing else is."""

from __future__ import annotations

import pytest

from connect_core.rows.types import struct_of
from tests.unit.pipeline.transforms.stepping import checked_run, column_of, stepped

INT32, INT64 = (1 << 31) - 1, (1 << 63) - 1


@pytest.mark.parametrize(
    "made",
    [
        "CAST(t AS DATE)",
        "CAST(t AS TIMESTAMP)",
        "CAST(t AS TIMESTAMPTZ)",
        "CAST(t AS TIMESTAMP_S)",
        "CAST(t AS TIMESTAMP_MS)",
        "[CAST(t AS DATE)]",
        "{'a': [{'b': CAST(t AS TIMESTAMP)}]}",
    ],
)
@pytest.mark.parametrize("text", ["infinity", "-infinity", "10000-01-01", "0001-01-01 (BC)"])
def test_sql_makes_no_moment_that_has_no_text(made: str, text: str) -> None:
    given = [{"t": "2026-01-31"}, {"t": "0044-03-15 (BC)"} if "BC" in text else {"t": text}, {"t": None}]
    done = stepped([{"sql": f"SELECT {made} AS made FROM records"}], {"t": "text"}, given)
    assert done.places.tolist() == [0, 2]
    assert done.unfit == [
        (1, "sql: made is, or holds, infinity, a year beyond 0 to 9999, or a time beyond its day"),
    ]


@pytest.mark.parametrize("made", ["CAST(t AS TIME)", "CAST(t AS TIME_NS)", "[CAST(t AS TIME)]"])
def test_sql_makes_no_time_beyond_its_day(made: str) -> None:
    given = [{"t": "23:59:59.999999"}, {"t": "24:00:00"}, {"t": "00:00:00"}]
    done = stepped([{"sql": f"SELECT {made} AS made FROM records"}], {"t": "text"}, given)
    assert (done.places.tolist(), [place for place, _ in done.unfit]) == ([0, 2], [1])


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("date", [INT32, -INT32])]
    + [
        (f"{word}({unit})", [INT64, -INT64, -INT64 - 1])
        for word in ("timestamp", "datetime", "epoch")
        for unit in ("s", "ms", "us", "ns")
    ],
)
def test_sql_is_not_given_what_it_takes_for_infinity(kind: str, numbers: list[int]) -> None:
    """`year(n)` would be missing, and WHERE leave the record out."""
    shape = struct_of({"n": kind})
    step = {"sql": "SELECT n, year(n) AS y FROM records WHERE year(n) > 0"}
    done = checked_run([step], shape, column_of(kind, [0, *numbers]))
    assert done.places.tolist() == [0]
    why = "sql: n is, or holds, a moment that SQL has none for: its largest are infinity there"
    assert done.unfit == [(place, why) for place in range(1, len(numbers) + 1)]


@pytest.mark.parametrize(("number", "year"), [(INT64 - 1, 2262), (1 - INT64, 1677)])
def test_the_moments_beside_them_are_moments(number: int, year: int) -> None:
    done = checked_run(
        [{"sql": "SELECT n, year(n) AS y FROM records"}],
        struct_of({"n": "timestamp(ns)"}),
        column_of("timestamp(ns)", [number]),
    )
    assert done.rows.struct.field("y").to_pylist() == [year]


def test_what_is_only_named_is_not_given_to_sql() -> None:
    done = checked_run(
        [{"sql": "SELECT n, 1 AS one FROM records"}], struct_of({"n": "date"}), column_of("date", [INT32])
    )
    assert (done.places.tolist(), done.unfit) == ([0], [])
