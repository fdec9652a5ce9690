"""Moments without a text: the record is rejected by the step that would make one, and nothing else is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type, struct_of
from tests.unit.pipeline.transforms.stepping import checked_run, column_of

FIELDS = {"id": "int64", "at": "timestamp(s)", "o": {"l": ["date"]}}
FAR_S, FAR_DAY = 253_402_300_800, 2_932_897
"""The first moment and the first day of the year 10000."""
GOOD_S = FAR_S - 1
INT32 = (1 << 31) - 1


def rows(*given: tuple[int | None, list[int]]) -> pa.StructArray:
    of = arrow_type(struct_of(FIELDS))
    days = [pa.array(days, pa.int32()).cast(pa.date32()) for _, days in given]
    lists = pa.concat_arrays([pa.ListArray.from_arrays([0, len(one)], one) for one in days])
    inner = pa.StructArray.from_arrays([lists.cast(of[2].type[0].type)], fields=list(of[2].type))
    moments = pa.array([at for at, _ in given], pa.int64()).cast(of[1].type)
    return pa.StructArray.from_arrays([pa.array(range(len(given)), pa.int64()), moments, inner], fields=list(of))


GIVEN = rows((GOOD_S, [0]), (FAR_S, [0]), (None, [0, FAR_DAY]), (-FAR_S, [-INT32]), (None, []))
BAD_AT, BAD_DAYS = [1, 3], [2, 3]


@pytest.mark.parametrize(
    ("step", "bad"),
    [
        ({"format_time": {"at": "yyyy-MM-dd"}}, BAD_AT),
        ({"set": {"x": "{$.at}"}}, BAD_AT),
        ({"set": {"x": "{$.id|$.o}"}}, BAD_DAYS),
        ({"set": {"x": "{$.o.l[0]}"}}, [3]),
        ({"record": {"key": "{$.at}"}}, BAD_AT),
        ({"record": {"headers": {"site": "{$.o.l}"}}}, BAD_DAYS),
        ({"filter": "$.at <> '2026'"}, BAD_AT),
        ({"mask": {"at": "hash"}}, BAD_AT),
        ({"mask": {"o": "hash"}}, BAD_DAYS),
        ({"dedupe": ["at", "id"]}, BAD_AT),
        ({"cast": {"at": "text"}}, BAD_AT),
        ({"mask": {"at": {"with": "2026-01-01T00:00:00Z"}}}, []),
        ({"drop": ["at"]}, []),
    ],
)
def test_a_step_that_makes_a_text_of_one_rejects_its_record_alone(step: dict[str, Any], bad: list[int]) -> None:
    done = checked_run([step], struct_of(FIELDS), GIVEN)
    assert [place for place, _ in done.unfit] == bad
    assert all("text" in why for _, why in done.unfit)
    assert [row for row in range(len(GIVEN)) if row not in bad] == done.places.tolist() or "filter" in step


def test_no_text_is_nonsense() -> None:
    done = checked_run([{"set": {"x": "{$.at}"}}], struct_of(FIELDS), GIVEN)
    assert done.rows.struct.field("x").to_pylist() == ["9999-12-31T23:59:59Z", "", ""]
    assert done.unfit[0] == (1, "$.at is, or holds, a moment that has no text: it is too early or too late")


def test_different_moments_are_no_duplicates_because_they_are_far() -> None:
    """Their years are one digit longer."""
    done = checked_run([{"dedupe": ["at"]}], struct_of(FIELDS), rows((FAR_S, []), (FAR_S + 86_400, [])))
    assert [place for place, _ in done.unfit] == [0, 1]


def test_moments_that_are_numbers_have_a_text_always() -> None:
    shape: Type = struct_of({"n": "epoch(s)"})
    done = checked_run([{"set": {"x": "{$.n}"}}], shape, column_of("epoch(s)", [FAR_S]))
    assert done.rows.struct.field("x").to_pylist() == [str(FAR_S)]
