"""What a driver sends to a worker that stays: lanes, one after the other, that the one at work is to end early, and
between two lanes the question what the worker's clock reads."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.engine.line import Line, LineEnded

STOP = b""
"""Ends the quantum of the lane at work; means nothing when it has ended."""

CLOCK = b"clock\n"
"""Answered with `envelope.hello`."""


class Lanes:
    """The requests of one line, in their order, until it ends. A thread of its own listens while a lane is at work."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._sent: queue.SimpleQueue[tuple[bytes, threading.Event] | None] = queue.SimpleQueue()
        self.stopped = threading.Event()
        """Of the request that was given last."""
        self._ended = self._mortal = False

    @contextmanager
    def ending_with_line(self) -> Iterator[None]:
        """SIGKILL to this process when the line ends meanwhile: of a driver on another host it is all that tells of its
        end. Raises LineEnded when it has ended before."""
        self._mortal = True
        try:
            if self._ended:
                raise LineEnded
            yield
        finally:
            self._mortal = False

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
            self._ended = True
            if self._mortal:
                os.kill(os.getpid(), signal.SIGKILL)
            self._sent.put(None)
