"""The trigger of `schedule: {on_change: true}`: looks at a source every second and says when something waits there.

Read-only: it asks source and ledger what the next run would move, writes nothing and takes no lease. An event is a hint
to look; the run reads the true positions. What waits is told once, and again after a minute while it still waits (its
run may have failed).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from connect_core.errors import WaybillError


class SourceTrigger(BaseEventTrigger):
    look_every_s = 1.0
    after_an_error_s = 5.0
    tell_again_s = 60.0

    def __init__(self, connector: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.connector = connector

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (f"{type(self).__module__}.{type(self).__qualname__}", {"connector": self.connector})

    async def run(self) -> AsyncIterator[TriggerEvent]:
        told: dict[str, int] = {}
        told_at = 0.0
        while True:
            try:
                waiting = await asyncio.to_thread(self._waiting)
            except WaybillError as error:
                self.log.warning("cannot look at the source of %s: %s", self.connector, error)
                await asyncio.sleep(self.after_an_error_s)
                continue
            if not waiting:
                told = waiting
            elif waiting != told or time.monotonic() - told_at > self.tell_again_s:
                told, told_at = waiting, time.monotonic()
                yield TriggerEvent({"partitions": len(waiting)})
            await asyncio.sleep(self.look_every_s)

    def _waiting(self) -> dict[str, int]:
        """The end of each partition that has something to move, by its key."""
        from connect_core.service.lag import ends_waiting

        return ends_waiting(self.connector)
