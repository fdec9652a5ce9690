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
    """Returns when one of them has an answer for `arrived` to look at, or something to raise, or at that moment
    (monotonic)."""
    while time.monotonic() < until:
        waiting: dict[BrokerConnection, list[Pending]] = {}
        for reader in readers:
            try:
                under_way = reader.pull()
                if under_way.wait(0.0):
                    return
            except WaybillError:  # the reader tells it to who asks it next: it concerns this queue, not the others
                return
            waiting.setdefault(under_way.pending.connection, []).append(under_way.pending)
        if not waiting:
            return
        turn = until if len(waiting) == 1 else min(until, time.monotonic() + _TURN_S)
        for connection, pending in waiting.items():
            if connection.read_for_any(pending, turn):
                return
