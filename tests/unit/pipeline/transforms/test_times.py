"""Moments and texts of any form."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.types import struct_of
from tests.unit.pipeline.transforms.stepping import stepped, values

AT = datetime(2026, 1, 31, 13, 45, 10, 250_000, UTC)


@pytest.mark.parametrize(
    ("form", "text", "at"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2026-01-31 13:45:10.250", AT),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-01-31T13:45:10.250Z", AT),
        ("dd.MM.yyyy", "31.01.2026", datetime(2026, 1, 31, tzinfo=UTC)),
        ("yyyyMMddHHmmss", "20260131134510", AT.replace(microsecond=0)),
        ("'on ('dd/MM/yyyy')' HH 'o''clock'", "on (31/01/2026) 13 o'clock", datetime(2026, 1, 31, 13, tzinfo=UTC)),
        ("yyyy", "0999", datetime(999, 1, 1, tzinfo=UTC)),
    ],
)
def test_there_and_back(form: str, text: str, at: datetime) -> None:
    there = stepped([{"parse_time": {"at": form}}], {"at": "text"}, [{"at": text}, {"at": None}])
    assert values(there) == [{"at": at}, {"at": None}]
    back = stepped([{"format_time": {"at": form}}], {"at": "timestamp(ms)"}, [{"at": at}, {"at": None}])
    assert values(back) == [{"at": text}, {"at": None}]


def test_a_zone_is_read() -> None:
    step = {"parse_time": {"a.at": "yyyy-MM-dd HH:mm XXX"}}
    done = stepped([step], {"a": {"at": "text"}}, [{"a": {"at": "2026-01-31 13:45 +01:00"}}, {"a": None}])
    assert values(done) == [{"a": {"at": datetime(2026, 1, 31, 12, 45, tzinfo=UTC)}}, {"a": None}]


@pytest.mark.parametrize("text", ["2026-1-31", "2026-02-30", "2026-13-01", "2026-01-31 ", "x", "", "2026-01-31\n"])
def test_a_text_of_another_form_is_unfit(text: str) -> None:
    done = stepped([{"parse_time": {"at": "yyyy-MM-dd"}}], {"at": "text"}, [{"at": text}, {"at": "2026-01-31"}])
    assert done.unfit == [(0, "parse_time of at: this text is no time of its form")]
    assert done.places.tolist() == [1]


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)))
def test_any_moment(at: datetime) -> None:
    at = at.replace(tzinfo=UTC)
    step = {"format_time": {"at": "yyyy-MM-dd HH:mm:ss.SSS"}}
    done = stepped([step], {"at": "timestamp(us)"}, [{"at": at}])
    assert values(done) == [{"at": f"{at:%m-%d %H:%M:%S}.{at.microsecond // 1000:03}".join([f"{at.year:04}-", ""])}]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"parse_time": {"at": "yy-MM"}}, "yy is not one of yyyy, MM"),
        ({"parse_time": {"at": "HH:mm"}}, "a moment has a year"),
        ({"parse_time": {"at": "yyyy yyyy"}}, "yyyy is there twice"),
        ({"parse_time": {"at": "yyyy'"}}, "a quotation mark is not closed"),
        ({"parse_time": {"at": ""}}, "is no form of a time"),
        ({"parse_time": {"n": "yyyy"}}, "n is int64, and no text"),
        ({"format_time": {"at": "yyyy"}}, "at is text, and no timestamp"),
    ],
)
def test_a_fault_says_what_is_wrong(step: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        step_of(step).after(struct_of({"at": "text", "n": "int64"}))
