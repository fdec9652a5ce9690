"""Where workers of a cluster dial in. Each is invited with an address and a token, which is good for one of them, once.

Whoever else connects gets nothing and holds nothing up. Listens on the loopback interface: workers on other hosts do
not reach it, and their driver learns that from the end of the job.
"""

from __future__ import annotations

import hmac
import json
import secrets
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from connect_core.engine.line import Line

_HOST = "127.0.0.1"
_TOKEN_BYTES = 32
_DIAL_S = 5.0
_LOOK_S = 0.1
"""How often the driver looks whether the job that is to dial goes on."""


class DialIn:
    """Of one job. Leaving the context turns away whoever comes later. The lines stay, if all have come."""

    def __init__(self, workers: int) -> None:
        self._listening = socket.create_server((_HOST, 0), backlog=max(workers, 16))
        self._listening.setblocking(False)
        self._tokens = [secrets.token_hex(_TOKEN_BYTES // 2).encode() for _ in range(workers)]
        self._lines: dict[int, Line] = {}
        self._unknown: dict[int, tuple[socket.socket, bytearray]] = {}

    def invitations(self) -> list[bytes]:
        """One for each worker."""
        host, port = self._listening.getsockname()
        return [json.dumps({"host": host, "port": port, "token": token.decode()}).encode() for token in self._tokens]

    def lines(self, limit_s: float, expected: Callable[[], bool]) -> list[Line]:
        """A line to each, in the order of the invitations. Empty when not all have dialled within `limit_s`, or before
        they are `expected` no longer."""
        until = time.monotonic() + limit_s
        poll = select.poll()
        poll.register(self._listening, select.POLLIN)
        while len(self._lines) < len(self._tokens):
            if time.monotonic() >= until or not expected():
                return []
            for descriptor, _ in poll.poll(_LOOK_S * 1000):
                if descriptor == self._listening.fileno():
                    stream, _ = self._listening.accept()
                    stream.setblocking(False)
                    self._unknown[stream.fileno()] = stream, bytearray()
                    poll.register(stream, select.POLLIN)
                elif self._has_told(descriptor):
                    poll.unregister(descriptor)
        return [self._lines[number] for number in range(len(self._tokens))]

    def _has_told(self, descriptor: int) -> bool:
        """Whether one who has connected has said who it is, or never will."""
        stream, said = self._unknown[descriptor]
        try:
            piece = stream.recv(_TOKEN_BYTES - len(said))
        except OSError:
            piece = b""
        said.extend(piece)
        if piece and len(said) < _TOKEN_BYTES:
            return False
        del self._unknown[descriptor]
        number = next((n for n, token in enumerate(self._tokens) if hmac.compare_digest(token, said)), None)
        if number is None or number in self._lines:
            stream.close()
        else:
            self._lines[number] = _line(stream)
        return True

    def __enter__(self) -> DialIn:
        return self

    def __exit__(self, *error: object) -> None:
        self._listening.close()
        for stream, _ in self._unknown.values():
            stream.close()
        if len(self._lines) < len(self._tokens):
            for line in self._lines.values():
                line.close()


@contextmanager
def dialled(invitation: bytes) -> Iterator[Line]:
    """The line of a worker that was invited. Raises OSError when the driver is out of reach."""
    told = json.loads(invitation)
    with socket.create_connection((told["host"], told["port"]), _DIAL_S) as stream:
        stream.sendall(told["token"].encode())
        yield _line(stream)


def _line(stream: socket.socket) -> Line:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Line(stream)
