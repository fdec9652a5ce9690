"""What a connector does now, judged by its runs, its leases and its switch."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from connect_core.errors import (
    ConfigError,
    EngineFailed,
    Failure,
    Fatal,
    LeaseHeld,
    OffsetGone,
    Unreachable,
    WaybillError,
)
from connect_core.ledger import Run
from connect_core.replication.driver.status import Status, StatusFacts, status_of
from connect_core.sdk.values import LIVE

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
AWAY = Unreachable("the broker is away", where="broker-a", next_step="Start it")


def _at(minutes: float) -> datetime:
    """So long ago."""
    return NOW - timedelta(minutes=minutes)


def _run(name: str, state: str, began: float, error: WaybillError | None = None, task: int = 0, of: str = "") -> Run:
    """`began` minutes ago; over half a minute later."""
    ended = None if state == "running" else _at(began - 0.5)
    failure = Failure.of(error) if error else None
    return Run(name, "u", LIVE, task, "spark", of or None, state, _at(began), ended, failure, {})


def _facts(*runs: Run, tasks: int = 1, held: bool = False) -> StatusFacts:
    newest = sorted(runs, key=lambda run: run.started_at, reverse=True)
    return StatusFacts("copy", tasks, "on", newest, held, NOW, starting_s=15.0)


def _judged(facts: StatusFacts) -> Status:
    return status_of(facts)


def test_one_that_never_ran_is_new() -> None:
    assert _judged(replace(_facts(), switched_at=_at(9))) == Status("copy", "new", "on", _at(9))


def test_one_that_has_moved_all_is_idle_since_then() -> None:
    told = _judged(_facts(_run("a", "failed", 20, AWAY), _run("b", "done", 10)))
    assert (told.state, told.since, told.why, told.attempts, told.run) == ("idle", _at(9.5), "", 0, "b")


def test_one_that_holds_its_lease_is_running_whatever_was_before() -> None:
    told = _judged(_facts(_run("a", "failed", 20, AWAY), _run("b", "running", 10), held=True))
    assert (told.state, told.since, told.run) == ("running", _at(10), "b")
    assert (told.attempts, told.why) == (1, "Unreachable: the broker is away [broker-a]")


def test_a_row_without_a_lease_is_no_run() -> None:
    """As a killed driver leaves it."""
    told = _judged(_facts(_run("a", "done", 20), _run("b", "running", 10)))
    assert (told.state, told.since, told.attempts, told.run) == ("failed", _at(10), 1, "b")
    assert "without reporting" in told.why
    assert _judged(_facts(_run("b", "running", 0.1))).state == "running", "it begins"


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (AWAY, "failed", 3),
        (EngineFailed("x"), "failed", 1),
        (LeaseHeld("x"), "failed", 4),
        (ConfigError("x"), "blocked", 2),
        (OffsetGone("x"), "blocked", 5),
        (Fatal("x"), "blocked", 6),
    ],
)
def test_what_a_person_has_to_mend_is_blocked(error: WaybillError, state: str, code: int) -> None:
    facts = _facts(_run("a", "done", 30), _run("b", "failed", 20, error), _run("c", "failed", 10, error))
    told = _judged(facts)
    assert (told.state, told.exit_code, told.attempts, told.since, told.run) == (state, code, 2, _at(20), "c")
    assert (told.next_step, told.why) == (error.next_step, f"{type(error).__name__}: {error.what}" + _where(error))
    again = _judged(replace(facts, again=True))
    assert again.state == ("waiting" if state == "failed" else "blocked")


def _where(error: WaybillError) -> str:
    return f" [{error.where}]" if error.where else ""


def test_a_scheduler_tries_the_same_run_so_often_and_no_more() -> None:
    attempts = [_run(f"r{number}", "failed", 30 - number, AWAY, of="dag run") for number in range(3)]
    facts = _facts(_run("old", "failed", 60, AWAY, of="dag before"), *attempts)
    assert _judged(replace(facts, retries=3)).state == "waiting"
    assert _judged(replace(facts, retries=2)).state == "failed"
    assert _judged(facts).attempts == 4


@pytest.mark.parametrize("switch", ["paused", "stopped"])
def test_a_switch_that_is_off_is_told_with_what_was_last(switch: str) -> None:
    facts = replace(_facts(_run("a", "failed", 20, AWAY)), switch=switch, switched_at=_at(5), again=True)
    told = _judged(facts)
    assert (told.state, told.switch, told.since, told.exit_code) == (switch, switch, _at(5), 3)
    assert "the broker is away" in told.why
    running = _judged(replace(facts, runs=[_run("b", "running", 1)], held=True))
    assert (running.state, running.switch) == ("running", switch), "until it ends at a range boundary"


def test_the_worst_task_counts() -> None:
    runs = (
        _run("a", "done", 5, task=0),
        _run("b", "failed", 6, AWAY, task=1),
        _run("c", "failed", 7, OffsetGone("records are gone"), task=2),
        _run("d", "failed", 1, Fatal("long past"), task=3),
    )
    told = _judged(_facts(*runs, tasks=3))
    assert (told.state, told.run) == ("blocked", "c")
    assert _judged(_facts(*runs, tasks=2)).run == "b", "a task that there is no more says nothing"


def test_one_that_was_turned_away_by_a_run_that_is_done_since_does_not_count() -> None:
    long = replace(_run("a", "done", 30), ended_at=_at(2))
    assert _judged(_facts(long, _run("b", "failed", 10, LeaseHeld("x")))).state == "idle"
