"""The clock of this host, and another one in its place."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from connect_core import clock
from connect_core.ledger import database
from connect_core.sdk.values import Limit
from tests.unit.sleeping import SleepingClock


def test_the_system_clock_is_that_of_deadlines() -> None:
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert before <= clock.now_ns() <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def test_everything_lives_by_the_clock_that_was_put_in_its_place() -> None:
    limit = Limit(quantum_end_ns=5_000_000_000, deadline_ns=8_000_000_000)
    with clock.replaced_by(SleepingClock()):
        clock.sleep(6)
        assert (limit.quantum_left_s(), limit.left_s()) == (-1, 2)
        assert database.now() == datetime.fromtimestamp(6, UTC)
        assert clock.monotonic() == 6
    assert clock.now_ns() > 6_000_000_000
