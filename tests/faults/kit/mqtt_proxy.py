"""A line in front of an MQTT broker that a test can break at any packet: cut before, behind or in the middle of it, or
the process that sends it killed. `seconds_a_packet` makes the broker slow to hear, `seconds_back` slow to be heard.

Everything else is forwarded as it came, packet by packet. What happens to a packet is said before it comes: a `Strike`
waits for it. Threads block on sockets; `close` ends them all.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from tests.faults.kit.fronts import Front, Line
from tests.faults.kit.processes import kill

CONNECT, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 3, 4, 5, 6, 7
_CHUNK_BYTES = 1 << 16
Action = Literal["cut before", "cut behind", "cut within", "kill before", "kill behind"]


@dataclass
class Strike:
    """What is done at a packet of that type, after `passes` others of it, whoever sends it."""

    packet: int
    action: Action
    passes: int = 0
    struck: threading.Event = field(default_factory=threading.Event)

    def matches(self, packet: bytes) -> bool:
        if packet[0] >> 4 != self.packet or self.struck.is_set():
            return False
        self.passes -= 1
        return self.passes < 0

    def forwarded(self, packet: bytes) -> bytes:
        if self.action == "cut within":
            return packet[: len(packet) // 2]
        return packet if self.action.endswith("behind") else b""


class MqttProxy:
    """`host` and `port` are what a connector is given."""

    def __init__(self, host: str, port: int) -> None:
        self.seconds_a_packet = self.seconds_back = 0.0
        self._strike: Strike | None = None
        self._lock = threading.Lock()
        self._front = Front((host, port), self._ways)
        self.host, self.port = self._front.host, self._front.port

    def set(self, strike: Strike) -> Strike:
        self._strike = strike
        return strike

    def close(self) -> None:
        self._front.close()

    def _ways(self, line: Line) -> Iterator[Callable[[], None]]:
        yield partial(self._pump, line, line.client, line.server, slow=True)
        yield partial(self._pump, line, line.server, line.client, slow=False)

    def _pump(self, line: Line, origin: socket.socket, target: socket.socket, slow: bool) -> None:
        with contextlib.suppress(OSError):
            for packet in _packets(origin):
                if pause_s := self.seconds_a_packet if slow else self.seconds_back:
                    time.sleep(pause_s)
                strike = self._strike_at(packet)
                if strike is None:
                    target.sendall(packet)
                    continue
                self._do(strike, packet, line, target)
                return
        line.hang_up()

    def _strike_at(self, packet: bytes) -> Strike | None:
        with self._lock:
            strike = self._strike
            return strike if strike is not None and strike.matches(packet) else None

    def _do(self, strike: Strike, packet: bytes, line: Line, target: socket.socket) -> None:
        """The line is cut in any case; what a broker had to say behind that gets lost."""
        killed = line.sender() if strike.action.startswith("kill") else None
        target.sendall(strike.forwarded(packet))
        if killed is not None:
            kill(killed)
        strike.struck.set()
        line.hang_up()


def _packets(origin: socket.socket) -> Iterator[bytes]:
    """Whole packets, until the line ends. A packet is a byte, its length in one to four bytes of seven bits, and that
    many bytes (MQTT 5, section 2.1)."""
    buffer = b""
    while data := origin.recv(_CHUNK_BYTES):
        buffer += data
        while (size := _size(buffer)) and len(buffer) >= size:
            yield buffer[:size]
            buffer = buffer[size:]


def _size(buffer: bytes) -> int:
    """Of the first packet; 0 when it is not known yet."""
    length = shift = 0
    for index, byte in enumerate(buffer[1:5]):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return 2 + index + length
    return 0
