"""Waits for several readers at once: whichever queue has something first ends the wait."""

from __future__ import annotations

import time
from collections.abc import Sequence

from connect_core.errors import WaybillError
from connect_core.rocketmq.connection import BrokerConnection, Pending
from connect_core.rocketmq.reading import QueueReader

_TURN_S = 0.002
"""How long each connection is listened to in turn when there are several, which is when there are several brokers."""


def wait_for_any(readers: Sequence[QueueReader], until: float) -> None:
    """Returns when one of them has an answer for `arrived` to look at, or something to raise, or may ask a broker again
    that was busy, or at that moment (monotonic)."""
    now = time.monotonic()
    resting = [reader.rests_until for reader in readers if reader.rests_until > now]
    asking = [reader for reader in readers if reader.rests_until <= now]
    until = min([until, *resting])
    while time.monotonic() < until:
        waiting: dict[BrokerConnection, list[Pending]] = {}
        for reader in asking:
            try:
                under_way = reader.pull()
                if under_way.wait(0.0):
                    return
            except WaybillError:  # the reader tells it to who asks it next: it concerns this queue, not the others
                return
            waiting.setdefault(under_way.pending.connection, []).append(under_way.pending)
        if not waiting:
            time.sleep(max(until - time.monotonic(), 0.0) if resting else 0.0)
            return
        turn = until if len(waiting) == 1 else min(until, time.monotonic() + _TURN_S)
        for connection, pending in waiting.items():
            if connection.read_for_any(pending, turn):
                return
