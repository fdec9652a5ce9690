"""Where workers of a cluster dial in. Each is invited with an address and a token, which is good for one of them, once.

Whoever else connects gets nothing and holds nothing up. Listens on the loopback interface, or on the address of this
host that the setting `driver_address` says: then over TLS (`tls_stream`). Workers that do not reach it are no error
here: their driver learns that from the end of the job.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from connect_core.clock import now_ns
from connect_core.engine.line import ByteStream, Line
from connect_core.engine.tls_stream import RunCertificate, calling
from connect_core.errors import ConfigError

LOOPBACK = "127.0.0.1"
_TOKEN_BYTES = 32
_DIAL_S = 5.0
_LOOK_S = 0.1
"""How often the driver looks whether the job that is to dial goes on."""


class DialIn:
    """Of one job. Leaving the context turns away whoever comes later. The lines stay, if all have come."""

    def __init__(self, workers: int, address: str = LOOPBACK, identity: RunCertificate | None = None) -> None:
        """Over TLS with an `identity`. Raises ConfigError when `address` is none of this host."""
        self.asked_ns = now_ns()
        """No worker that was invited has said anything before this moment of CLOCK_BOOTTIME."""
        self._identity = identity
        self._listening = _listening_at(ipaddress.ip_address(address), max(workers, 16))
        self._listening.setblocking(False)
        self._tokens = [secrets.token_hex(_TOKEN_BYTES // 2).encode() for _ in range(workers)]
        self._lines: dict[int, Line] = {}
        self._unknown: dict[int, tuple[ByteStream, bytearray]] = {}

    def invitations(self) -> list[bytes]:
        """One for each worker."""
        host, port = self._listening.getsockname()[:2]
        told = {"host": host, "port": port, "certificate": self._identity and self._identity.certificate}
        return [json.dumps({**told, "token": token.decode()}).encode() for token in self._tokens]

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
                    poll.register(self._met(), select.POLLIN)
                elif self._has_told(descriptor):
                    poll.unregister(descriptor)
        return [self._lines[number] for number in range(len(self._tokens))]

    def _met(self) -> int:
        """The descriptor of one who has connected."""
        stream, _ = self._listening.accept()
        stream.setblocking(False)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unknown[stream.fileno()] = self._identity.answering(stream) if self._identity else stream, bytearray()
        return stream.fileno()

    def _has_told(self, descriptor: int) -> bool:
        """Whether one who has connected has said who it is, or never will."""
        stream, said = self._unknown[descriptor]
        try:
            while len(said) < _TOKEN_BYTES and (piece := stream.recv(_TOKEN_BYTES - len(said))):
                said.extend(piece)
        except BlockingIOError:
            return False
        except OSError:
            said.clear()
        del self._unknown[descriptor]
        number = next((n for n, token in enumerate(self._tokens) if hmac.compare_digest(token, said)), None)
        if number is None or number in self._lines:
            stream.close()
        else:
            self._lines[number] = Line(stream)
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


def dial_in(workers: int, address: str) -> DialIn:
    """At the address that a setting says: in plain text on the loopback interface only. Raises ConfigError when it is
    none of this host, or the package is missing that TLS needs."""
    return DialIn(workers, address, None if ipaddress.ip_address(address).is_loopback else RunCertificate())


def _listening_at(address: ipaddress.IPv4Address | ipaddress.IPv6Address, backlog: int) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        return socket.create_server((str(address), 0), family=family, backlog=backlog)
    except OSError as error:
        raise ConfigError(
            f"The driver cannot listen at the address of the setting driver_address: {error.strerror}",
            where=str(address),
            next_step="Give an address that this host has, and that the hosts of its workers reach",
        ) from error


@contextmanager
def dialled(invitation: bytes) -> Iterator[Line]:
    """The line of a worker that was invited. Raises OSError when the driver is out of reach, or is not the one that the
    invitation is from."""
    told = json.loads(invitation)
    with socket.create_connection((told["host"], told["port"]), _DIAL_S) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        secured: ByteStream = stream
        if told["certificate"]:
            secured = tls = calling(stream, told["certificate"])
            tls.handshake()
        secured.sendall(told["token"].encode())
        yield Line(secured)
