"""When a part that died is started again: at once, then with growing pauses, anew after it ran for a while."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from errno import ENOSPC
from io import TextIOBase
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from connect_core.stack import BROKER, POSTGRESQL, SCHEDULER, TRIGGERER, Options, Stack, processes, supervisor
from connect_core.stack.airflow_database import Waiting
from connect_core.stack.processes import Process
from connect_core.stack.record import StackPart
from connect_core.stack.starting import Look, Patience
from connect_core.stack.supervisor import BackOff, to_start


def starts(back_off: BackOff, seconds: int) -> list[int]:
    """At which of the given seconds a part that always dies is started."""
    found = []
    for now in range(1000, 1000 + seconds):
        if back_off.is_due("broker", now):
            back_off.tried("broker", now)
            found.append(now - 1000)
    return found


def test_the_pauses_double_up_to_a_minute() -> None:
    assert starts(BackOff(), 260) == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_a_part_that_ran_for_two_minutes_begins_anew() -> None:
    back_off = BackOff()
    assert starts(back_off, 20) == [0, 1, 3, 7, 15]
    assert back_off.is_due("broker", 1015 + 120)
    assert back_off.failures == {}


def test_one_part_does_not_hold_up_another() -> None:
    back_off = BackOff()
    starts(back_off, 20)
    assert back_off.is_due("engine", 1016)


def stack_with(**alive: bool) -> Stack:
    """Of these parts, with `_` for `-` in their names."""
    here = processes.of(os.getpid())
    assert here is not None
    gone = Process(here.pid, here.started - 1, here.boot_id)
    names = {name.replace("_", "-"): here if lives else gone for name, lives in alive.items()}
    parts = {name: StackPart(name, process, {}, "1", {}, 0.0) for name, process in names.items()}
    return Stack(Path("/nowhere"), Options(), parts)


def test_all_that_died_are_started_together() -> None:
    stack = stack_with(broker=False, postgresql=False, scheduler=False, triggerer=True)
    assert to_start(stack, BackOff(), 1000) == [BROKER, POSTGRESQL, SCHEDULER]


def test_nothing_is_started_before_what_it_needs_is_due() -> None:
    """Its own pauses would grow for nothing."""
    back_off = BackOff()
    back_off.tried(POSTGRESQL, 1000)
    stack = stack_with(broker=False, postgresql=False, scheduler=False)
    assert to_start(stack, back_off, 1000.5) == [BROKER]
    assert to_start(stack, back_off, 1001) == [BROKER, POSTGRESQL, SCHEDULER]


def test_what_has_to_wait_holds_up_nobody_else() -> None:
    back_off = BackOff()
    back_off.tried(TRIGGERER, 1000)
    stack = stack_with(postgresql=True, scheduler=False, triggerer=False)
    assert to_start(stack, back_off, 1000.5) == [SCHEDULER]


class FullDisk(TextIOBase):
    def write(self, _: str) -> int:
        raise OSError(ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [OSError(ENOSPC, "No space left on device"), ValueError("of a part's preparation")])
def test_it_goes_on_while_the_disk_is_full_and_nothing_can_be_started(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    stack = stack_with(broker=False)
    stack = replace(stack, supervisor=processes.of(os.getpid()))
    looks, tried = [stack, stack, None], []

    def restart(home: Path, names: list[str], *, report: Callable[[str], None]) -> None:
        report("its last lines")
        tried.append(names)
        raise error

    seconds = count(1000.0, 2.0)
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None))
    monkeypatch.setattr(supervisor, "load", lambda _: looks.pop(0))
    monkeypatch.setattr(supervisor.lifecycle, "restart", restart)
    monkeypatch.setattr(sys, "stdout", FullDisk())
    supervisor.watch(Path("/nowhere"))
    assert tried == [[BROKER], [BROKER]]


def test_a_mend_that_did_not_help_is_not_tried_again_at_once() -> None:
    mends = BackOff(60, 900, 900)
    found = []
    for now in range(1000, 3000):
        if mends.is_due(SCHEDULER, now):
            mends.tried(SCHEDULER, now)
            found.append(now - 1000)
    assert found == [0, 60, 180, 420, 900, 1800, 1860, 1980]


def found(queued: int = 1, longest_s: float = 60, running: int = 0, starts: bool = False, busy: int = 0) -> Look:
    return Look(Waiting(queued, longest_s, running, starts), workers=4, busy=busy)


def seen(*looks: Look, pid: int = 1) -> list[float]:
    """When patience was over, of one look each three seconds."""
    patience = Patience()
    return [3.0 * at for at, one in enumerate(looks) if patience.is_over(pid, one, 3.0 * at)]


def test_queued_and_nothing_starts_is_noticed_within_half_a_minute() -> None:
    looks = [found(longest_s=3.0 * at) for at in range(10)]
    assert seen(*looks)[0] == 21


@pytest.mark.parametrize(
    "one",
    [
        found(queued=0),
        found(starts=True),
        found(busy=1),
        found(running=2, busy=3),
        Look(Waiting(1, 60, 0, False), 0, 0),
    ],
    ids=["nothing queued", "others start", "a worker is at it", "one more is at it", "no worker is there yet"],
)
def test_what_is_slow_or_begins_is_not_stuck(one: Look) -> None:
    assert seen(*[one] * 30) == []


def test_workers_whose_tasks_run_are_not_about_to_start_any() -> None:
    assert seen(*[found(running=3, busy=3)] * 10)


def test_a_scheduler_that_was_just_started_has_its_own_time() -> None:
    """It finds what the one before has queued."""
    patience = Patience()
    assert not any(patience.is_over(1, found(), at) for at in (0.0, 9.0, 18.0))
    assert not any(patience.is_over(2, found(), at) for at in (21.0, 30.0, 39.0))
    assert patience.is_over(2, found(), 42.0)
