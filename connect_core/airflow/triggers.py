"""The trigger of `schedule: {on_change: true}`: looks at a source every second and says when a run has something to do.

Read-only: it asks source and ledger what the next run would move, writes nothing and takes no lease. An event is a hint
to look; the run reads the true positions. What waits is told once, and again after a minute while it still waits (its
run may have failed). A look that fails begins a run as well: only a run tells people what is wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from connect_core.errors import Failure, WaybillError


class SourceTrigger(BaseEventTrigger):
    look_every_s = 1.0
    after_an_error_s = 5.0
    tell_again_s = 60.0
    error_again_s = 600.0

    def __init__(self, connector: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.connector = connector

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (f"{type(self).__module__}.{type(self).__qualname__}", {"connector": self.connector})

    async def run(self) -> AsyncIterator[TriggerEvent]:
        news = _News(self.tell_again_s, self.error_again_s)
        while True:
            try:
                waiting = await asyncio.to_thread(self._waiting)
            except Exception as error:  # also of a plug-in: one that ended the trigger would be seen by nobody
                failure = Failure.of(error)
                self.log.warning("cannot look at the source of %s: %s", self.connector, _words(error, failure))
                if news.of_failure(failure.kind, time.monotonic()):
                    yield TriggerEvent({"problem": failure.kind})
                await asyncio.sleep(self.after_an_error_s)
                continue
            if news.of_look(waiting, time.monotonic()):
                yield TriggerEvent({"partitions": len(waiting)})
            await asyncio.sleep(self.look_every_s)

    def _waiting(self) -> dict[str, int | str]:
        """What a run has to do, by the key of the partition."""
        from connect_core.service.lag import what_waits

        return what_waits(self.connector)


def _words(error: Exception, failure: Failure) -> str:
    return str(error) if isinstance(error, WaybillError) else failure.words


@dataclass
class _News:
    """What of the looks begins a run: that something else waits, or still the same after `again_s`; that looking fails,
    once in `error_again_s` for each class of failure, so that a source that comes and goes begins no run each time; and
    that a failure which was told is over."""

    again_s: float
    error_again_s: float
    waiting: Mapping[str, int | str] = field(default_factory=dict)
    told_at: float = 0.0
    failures: dict[str, float] = field(default_factory=dict)
    failing: bool = False

    def of_look(self, waiting: Mapping[str, int | str], now: float) -> bool:
        told = self.failing or bool(waiting and (waiting != self.waiting or now - self.told_at > self.again_s))
        if told:
            self.told_at = now
        self.waiting, self.failing = waiting, False
        return told

    def of_failure(self, kind: str, now: float) -> bool:
        if kind in self.failures and now - self.failures[kind] <= self.error_again_s:
            return False
        self.failures[kind] = now
        self.failing = True
        return True
