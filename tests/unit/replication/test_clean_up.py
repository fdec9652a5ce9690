"""Whose work has to have ended before a connector is deleted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connect_core.errors import LeaseHeld
from connect_core.replication.driver.clean_up import _streams_at_rest

CONNECTOR: Any = SimpleNamespace(uid="u", name="out")


def ledger(live: str = "", **states: str) -> Any:
    """With backfills in these states, of which one has a lease that is not released."""
    return SimpleNamespace(
        backfills=lambda uid: [SimpleNamespace(stream=stream, state=state) for stream, state in states.items()],
        live_leases=lambda uid, stream: ["a lease"] if stream == live else [],
    )


def test_a_backfill_that_is_running_keeps_its_connector_between_two_attempts_too() -> None:
    with pytest.raises(LeaseHeld, match=r"slow is running .*waybill backfills cancel out slow"):
        _streams_at_rest(ledger(done="done", slow="running"), CONNECTOR)


def test_attempts_are_waited_for_that_may_still_come_or_still_work() -> None:
    states = {"done": "done", "failed": "failed", "called_off": "cancelled", "over": "cancelled"}
    assert _streams_at_rest(ledger(live="called_off", **states), CONNECTOR) == [
        "live",
        "errors-sink",
        "failed",
        "called_off",
    ]
