"""What a tick of a schedule has to move when Airflow catches it up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connect_core.config.schedule import Schedule
from connect_core.errors import ConfigError
from connect_core.orchestration import names
from connect_core.service.scheduled import since_the_tick_before

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_of_a_period_it_is_what_camesince_the_tick_before() -> None:
    assert since_the_tick_before(Schedule(every=30), NOON) == (NOON - timedelta(seconds=30), NOON)


@pytest.mark.parametrize(
    ("cron", "before"),
    [("0 * * * *", timedelta(hours=1)), ("*/5 * * * *", timedelta(minutes=5)), ("0 12 * * 0", timedelta(days=7))],
)
def test_of_a_cron_expression_it_is_what_came_since_its_last_time(cron: str, before: timedelta) -> None:
    assert since_the_tick_before(Schedule(cron=cron), NOON) == (NOON - before, NOON)


def test_ticks_meet_without_gap_or_overlap() -> None:
    schedule = Schedule(cron="7,19 3-5 * * 1-5")
    begin, _ = since_the_tick_before(schedule, NOON)
    assert since_the_tick_before(schedule, begin)[1] == begin


def test_other_schedules_have_no_ticks() -> None:
    with pytest.raises(ConfigError, match="every or cron"):
        since_the_tick_before(Schedule(manual=True), NOON)


def test_the_id_of_a_backfill_comes_from_airflow_s_run() -> None:
    assert names.backfill_id("manual__2026-11-21T22:38:18.502696+00:00") == "manual__2026-11-21T22-38-18.502696-00-00"
    first, second = (names.backfill_id("x" * 200 + end) for end in "ab")
    assert len(first) == len(second) == 60
    assert first != second, "two runs are two backfills"
    assert names.backfill_id("x" * 200 + "a") == first
