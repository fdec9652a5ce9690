"""A second broker beside the one of a cluster, on the same name server: a topic may lie on both."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from connect_core import stack
from connect_core.stack import processes
from connect_core.stack.parts import BROKER, NAME_SERVER, Site
from connect_core.stack.rocketmq import Broker
from tests.faults.kit.processes import wait_for
from tests.servers import RocketMQ, wait_until_stopped

NAME = "broker-b"


class SecondBroker:
    """Started when it is made; `close` ends it."""

    def __init__(self, beside: RocketMQ, folder: Path) -> None:
        running = stack.load(beside.home)
        assert running is not None
        options = replace(running.options, broker={**running.options.broker, "brokerName": NAME})
        neighbours = {NAME_SERVER: running.part(NAME_SERVER).ports}
        kind = Broker()
        self._site = Site(folder / ".waybill", kind.choose_ports({}, set()), neighbours, options)
        self._kind = kind
        kind.prepare(self._site, print)
        self.start()

    def start(self) -> None:
        """On the same port and store; returns when it answers and the name server knows it."""
        self._process = processes.start(self._kind.launch(self._site))
        log = self._site.log(BROKER)
        wait_for(lambda: self._kind.is_ready(self._site, log.read_text()), "the second broker")

    def kill(self) -> None:
        """SIGKILL, as a crash does."""
        processes.stop(self._process, sign=signal.SIGKILL)

    close = kill

    @contextmanager
    def killed(self) -> Iterator[None]:
        self.kill()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It stands still inside: connections stay open, nothing is answered."""
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            wait_until_stopped(self._process.pid)
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)
