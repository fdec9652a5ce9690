"""A line in front of an MQTT broker that a test can break: it keeps the broker's answers back, cuts them off in the
middle of a packet, or says something of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial

from tests.faults.kit.fronts import Front, Line, hang_up
from tests.mqtt_brokers import MqttBroker

_CHUNK_BYTES = 1 << 16


class MqttLine:
    """`port` is what clients are given. While `holding`, nothing that the broker says gets through, and `held` tells
    that it has said something. `cut_after` counts the bytes until a connection is cut; below 0: never. `slipped_in` is
    said behind what the broker says next, once."""

    def __init__(self, broker: MqttBroker) -> None:
        self.holding, self.held = threading.Event(), threading.Event()
        self.cut_after, self.slipped_in = -1, b""
        self._front = Front((broker.host, broker.port), self._ways)
        self.host, self.port = self._front.host, self._front.port

    def __enter__(self) -> MqttLine:
        return self

    def __exit__(self, *_: object) -> None:
        self._front.close()

    def _ways(self, line: Line) -> Iterator[Callable[[], None]]:
        yield partial(self._to_server, line)
        yield partial(self._to_client, line)

    def _to_server(self, line: Line) -> None:
        with contextlib.suppress(OSError):
            while data := line.client.recv(_CHUNK_BYTES):
                line.server.sendall(data)
        hang_up(line.server)

    def _to_client(self, line: Line) -> None:
        with contextlib.suppress(OSError):
            while data := line.server.recv(_CHUNK_BYTES):
                if self.holding.is_set():
                    self.held.set()
                    continue
                if 0 <= self.cut_after < len(data):
                    line.client.sendall(data[: self.cut_after])
                    self.cut_after = -1
                    break
                self.cut_after -= len(data) if self.cut_after >= 0 else 0
                slipped_in, self.slipped_in = self.slipped_in, b""
                line.client.sendall(data + slipped_in)
        line.hang_up()
