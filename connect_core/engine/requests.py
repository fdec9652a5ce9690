"""What a driver sends to a worker that stays: lanes, one after the other, and that the one at work is to end early."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from connect_core.engine.line import Line, LineEnded

STOP = b""
"""Ends the quantum of the lane at work; means nothing when it has ended."""


class Lanes:
    """The requests of one line, in their order, until it ends. A thread of its own listens while a lane is at work."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._sent: queue.SimpleQueue[tuple[bytes, threading.Event] | None] = queue.SimpleQueue()
        self.stopped = threading.Event()
        """Of the request that was given last."""

    def __iter__(self) -> Iterator[bytes]:
        threading.Thread(target=self._listen, name="driver-line", daemon=True).start()
        while (sent := self._sent.get()) is not None:
            request, self.stopped = sent
            yield request

    def _listen(self) -> None:
        stopped = self.stopped
        try:
            while True:
                message = self._line.receive()
                if message == STOP:
                    stopped.set()
                else:
                    stopped = threading.Event()
                    self._sent.put((message, stopped))
        except LineEnded:
            self._sent.put(None)
