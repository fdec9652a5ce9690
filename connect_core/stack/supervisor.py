"""The resident process of a stack: starts again what has died, waiting longer each time, and says so in its log. A
scheduler whose executor starts nothing any more, as when a worker died with a lock, it ends and starts anew.

Started by `up` in a session of its own (`python -m connect_core.stack.supervisor HOME`), ended by `down`. It watches
what the record names, nothing else: a part that was stopped on purpose is no longer in it. It ends by itself when the
record names another supervisor or none.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from connect_core.errors import Failure, Unreachable, WaybillError
from connect_core.stack import airflow, lifecycle, processes
from connect_core.stack.parts import SCHEDULER
from connect_core.stack.record import Stack, load
from connect_core.stack.starting import Patience

_LOOK_EVERY_S = 0.5
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_STABLE_S = 120.0
_SECOND_MEND_S, _MENDED_S = 60.0, 900.0
"""A scheduler that starts nothing although it was ended for that: most likely something else is wrong."""
_LOOK_AT_TASKS_EVERY_S = 3.0


@dataclass
class BackOff:
    """When a part that died may be started again: at once, then after 1, 2, 4 … 60 s. Times are monotonic seconds."""

    first_pause_s: float = _FIRST_PAUSE_S
    longest_pause_s: float = _LONGEST_PAUSE_S
    stable_s: float = _STABLE_S
    failures: dict[str, int] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    def is_due(self, name: str, now: float) -> bool:
        """Whether it may be tried now. A part that ran for `stable_s` begins anew."""
        since = now - self.last.get(name, now - self.stable_s)
        if since >= self.stable_s:
            self.failures.pop(name, None)
        tried = self.failures.get(name, 0)
        return tried == 0 or since >= min(self.first_pause_s * 2 ** (tried - 1), self.longest_pause_s)

    def tried(self, name: str, now: float) -> None:
        self.failures[name] = self.failures.get(name, 0) + 1
        self.last[name] = now


def watch(home: Path) -> None:
    """Runs until this process is no longer the recorded supervisor of `home`."""
    back_off, mends = BackOff(), BackOff(_SECOND_MEND_S, _MENDED_S, _MENDED_S)
    patience, looked = Patience(), time.monotonic()
    _say("watching")
    while (stack := load(home)) is not None and _is_mine(stack):
        if time.monotonic() - looked >= _LOOK_AT_TASKS_EVERY_S:
            looked = time.monotonic()
            _mend_scheduler(stack, mends, patience, looked)
        names = to_start(stack, back_off, time.monotonic())
        if names:
            _restart(home, names)
        for name in names:
            back_off.tried(name, time.monotonic())
        time.sleep(_LOOK_EVERY_S)
    _say("no longer needed")


def _is_mine(stack: Stack) -> bool:
    """A record without a supervisor is one that `up` is about to write; its lock is held until then."""
    return stack.supervisor is not None and stack.supervisor.pid == os.getpid()


def to_start(stack: Stack, back_off: BackOff, now: float) -> list[str]:
    """The parts that died and may be tried now, but for those that come after one which has to wait."""
    dead = [name for name, part in stack.parts.items() if not part.process.is_alive]
    waiting = {name for name in dead if not back_off.is_due(name, now)}
    return [name for name in dead if name not in waiting and waiting.isdisjoint(lifecycle.KINDS[name].after)]


def _mend_scheduler(stack: Stack, mends: BackOff, patience: Patience, now: float) -> None:
    """Ends a scheduler that starts no tasks: the next look finds it dead, and its tasks are run again by the rules."""
    scheduler = stack.parts.get(SCHEDULER)
    if scheduler is None or not scheduler.process.is_alive:
        return
    try:
        found = airflow.look_at_tasks(stack.home)
    except (Unreachable, OSError):
        return
    if not patience.is_over(scheduler.process.pid, found, now) or not mends.is_due(SCHEDULER, now):
        return
    mends.tried(SCHEDULER, now)
    _say(
        f"{SCHEDULER} (pid {scheduler.process.pid}) starts no tasks: {found.waiting.queued} queued, the first of them"
        f" {found.waiting.longest_s:.0f} s ago, and {found.workers - found.busy} idle workers. Ending it; its tasks are"
        " tried again by the next one"
    )
    processes.stop(scheduler.process, sign=signal.SIGKILL)


def _restart(home: Path, names: list[str]) -> None:
    try:
        lifecycle.restart(home, names, report=_say)
    except WaybillError as error:
        _say(f"not everything could be started again: {error}")
    except Exception as error:  # a full disk, for one: nobody else would ever try again
        _say(f"not everything could be started again: {Failure.of(error).words}")


def _say(line: str) -> None:
    with suppress(OSError):  # while the disk is full, what it does counts for more than what it says
        print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}", flush=True)


def _end(_signal: int, _frame: object) -> None:
    _say("told to end")
    sys.exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    watch(Path(sys.argv[1]))
