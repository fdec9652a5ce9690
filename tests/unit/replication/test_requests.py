"""The words of a backfill: times, ranges, names of partitions, and all that can be wrong with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connect_core.errors import ConfigError
from connect_core.replication.backfill.request import (
    Moments,
    Request,
    Span,
    check,
    chosen,
    moments,
    moments_of_tick,
    parse_moment,
    parse_span,
    stream_of,
)
from connect_core.sdk.records import Partition

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUEUES = [Partition(f"orders/broker-{broker}/{number}") for broker in "ab" for number in (0, 1, 10)]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-01T00:00:00Z", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T02:00:00+02:00", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2h", NOW - timedelta(hours=2)),
        ("90", NOW - timedelta(seconds=90)),
    ],
)
def test_a_time_has_a_zone_or_is_so_long_ago(text: str, moment: datetime) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    ["2026-11-01T00:00:00", "2026-11-01", "yesterday", "2 fortnights", "999999999d", "9999-12-31T23:59:59-23:59"],
)
def test_any_other_time_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"with its zone, such as 2026-11-01T00:00:00Z, or how long ago"):
        parse_moment(text, NOW)


def test_without_an_end_it_is_up_to_now() -> None:
    assert moments(Request(begin="2h"), NOW) == Moments(NOW - timedelta(hours=2), NOW)


def test_both_times_are_judged_at_once() -> None:
    with pytest.raises(ConfigError) as told:
        moments(Request(begin="soon", end="2026-11-01"), NOW)
    assert [fault.path for fault in told.value.faults] == ["from", "to"]
    with pytest.raises(ConfigError, match=r"from: 2026-11-21T11:00:00\+00:00 is not before 2026-11-21T10:00:00"):
        moments(Request(begin="1h", end="2h"), NOW)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("orders/broker-a/0:100-200", Span("orders/broker-a/0", 100, 200)),
        ("/logs/a:b.log:-200", Span("/logs/a:b.log", None, 200)),
        ("0:5-", Span("0", 5, None)),
        (":-", Span("", None, None)),
    ],
)
def test_a_range_names_a_partition_and_its_ends(text: str, span: Span) -> None:
    assert parse_span(text) == span


@pytest.mark.parametrize("text", ["orders", "orders:5", "orders:5-4", "orders:5-5", "orders:a-b", "orders:-5-7"])
def test_any_other_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not PARTITION:BEGIN-END|ends before it begins"):
        parse_span(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("orders/broker-a/1", "orders/broker-a/1"),
        ("a/1", "orders/broker-a/1"),
        ("b/10", "orders/broker-b/10"),
        ("a/10", "orders/broker-a/10"),
    ],
)
def test_a_partition_may_be_named_in_short(text: str, key: str) -> None:
    assert chosen(text, QUEUES) == Partition(key)


def test_the_only_partition_needs_no_name() -> None:
    assert chosen("", [Partition("/logs/app.log")]) == Partition("/logs/app.log")


def test_a_name_that_means_several_partitions_or_none_lists_them() -> None:
    with pytest.raises(
        ValueError, match=r"'/1' may be any of orders/broker-a/1, orders/broker-a/10, orders/broker-b/1"
    ):
        chosen("/1", QUEUES)
    with pytest.raises(ValueError, match=r"no partition 'c/0'; there are orders/broker-a/0, orders/broker-a/1"):
        chosen("c/0", QUEUES)


def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = Request(begin="2h", ranges=("orders:1",), run="r1", sink=("path",), id="a b")
    with pytest.raises(ConfigError) as told:
        check(wrong)
    assert [fault.path for fault in told.value.faults] == ["", "id", "range", "sink"]
    assert str(told.value.faults[0]) == "times and --range and --run are given: choose one"


@pytest.mark.parametrize("request_", [Request(), Request(end="2h")])
def test_it_says_where_to_begin(request_: Request) -> None:
    with pytest.raises(ConfigError, match="from"):
        check(request_)


def test_what_is_asked_is_kept_as_it_was_written() -> None:
    assert Request(begin="2h", sink=("path=x",), id="one").asked() == {"from": "2h", "sink": ["path=x"]}
    assert Request(id="one").asked() == {}


def test_a_stream_is_named_after_what_it_is() -> None:
    assert stream_of(Request(begin="2h"), "new") == "backfill-new"
    assert stream_of(Request(run="r1", id="mine"), "new") == "replay-mine"


def test_ticks_of_a_schedule_join() -> None:
    first, second = moments_of_tick(30, NOW), moments_of_tick(30, NOW + timedelta(seconds=30))
    assert first == Moments(NOW - timedelta(seconds=30), NOW)
    assert first.end == second.begin
