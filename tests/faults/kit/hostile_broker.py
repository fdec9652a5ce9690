"""A broker of hand-written bytes, MQTT 5 and 3.1.1, that keeps sessions and sends the packets of a script to the one
that subscribes to something of this world: what a hostile or broken broker may send (`tests/mqtt_hostile.py`).

Like a real one it sends again, over the next connection, in order and with DUP set, what was not acknowledged. A packet
that ends its connection stays where it is until it has ended a second one; then it is dropped, as by a person who was
told.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.faults.kit.fronts import hang_up
from tests.mqtt_hostile import Fate, Said, framed

_CONNECT, _PUBACK, _SUBSCRIBE, _UNSUBSCRIBE, _PINGREQ, _DISCONNECT = 1, 4, 8, 10, 12, 14
_QOS_1, _DUP = 0x02, 0x08
_OWN = "$SYS"
BREAKS = 2
"""So many connections a packet ends that cannot be read."""
_LOOK_S = 0.02
_STAYS_S = 30.0
"""So long a client may take to see that its connection is broken."""


@dataclass
class _Sent:
    said: Said
    times: int = 0
    breaks: int = 0


@dataclass
class _Client:
    """A connection, seen from the broker."""

    line: socket.socket
    five: bool
    name: str
    unread: bytes = b""
    breaking: _Sent | None = None
    """The last packet that it gets: it ends it."""
    orderly: bool = False
    """Whether it has said DISCONNECT."""


@dataclass
class HostileBroker:
    """`window` packets of QoS 1 are under way at most. `broken` counts the packets that have ended a connection and
    were dropped, `cuts` those that were cut in their middle."""

    script: Sequence[Said]
    window: int
    broken: int = 0
    cuts: int = 0
    ignored: list[Said] = field(default_factory=list)
    """Packets that had to end their connection and did not."""

    def __post_init__(self) -> None:
        self._queue = deque(_Sent(one) for one in self.script)
        self._under_way: list[_Sent] = []
        self._sessions: set[str] = set()
        self._subscribed: set[str] = set()
        self._lock = threading.Lock()
        self._lines: dict[str, socket.socket] = {}
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self._start(self._accept)

    @property
    def left(self) -> int:
        """How many packets are not acknowledged, or not sent."""
        with self._lock:
            return len(self._queue) + len(self._under_way)

    def close(self) -> None:
        hang_up(self._listener)
        self._threads[0].join()
        self._listener.close()
        for line in [*self._lines.values()]:
            hang_up(line)
        for thread in self._threads:
            thread.join()

    def _start(self, work: object, *words: object) -> None:
        thread = threading.Thread(target=work, args=words, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start(self._serve, line)

    # ------------------------------------------------------------------------------------------------------ one client

    def _serve(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError, EOFError):
            head, body = _packet(line)
            assert head >> 4 == _CONNECT
            client = self._let_in(line, body)
            try:
                self._talk(client)
            finally:
                with self._lock:
                    if self._lines.get(client.name) is line:
                        del self._lines[client.name]
                        self._gone(client)

    def _let_in(self, line: socket.socket, body: bytes) -> _Client:
        """Of CONNECT: protocol name, level, flags, keep-alive, properties (5), client id. Here no will, no user."""
        five, clean, at = body[6] == 5, bool(body[7] & 2), 10
        if five:
            at += 1 + body[at]  # shorter than 128 bytes
        size = int.from_bytes(body[at : at + 2], "big")
        client = _Client(line, five, body[at + 2 : at + 2 + size].decode())
        with self._lock:
            if (before := self._lines.pop(client.name, None)) is not None:
                hang_up(before)
            if clean:
                self._sessions.discard(client.name)
            kept = client.name in self._sessions
            self._sessions.add(client.name)
            self._lines[client.name] = line
            if client.name in self._subscribed:
                self._queue.extendleft(reversed(self._under_way))
                self._under_way = []
        line.sendall(framed(0x20, bytes([kept, 0]) + (b"\0" if five else b"")))
        return client

    def _talk(self, client: _Client) -> None:
        broken_for_s = 0.0
        while True:
            if client.name in self._subscribed:
                self._send(client)
            if select.select([client.line], [], [], _LOOK_S)[0]:
                head, body = _packet(client.line)
                self._answer(client, head, body)
            elif client.breaking is not None:
                broken_for_s += _LOOK_S
                if broken_for_s > _STAYS_S:
                    self.ignored.append(client.breaking.said)
                    return

    def _answer(self, client: _Client, head: int, body: bytes) -> None:
        kind = head >> 4
        if kind == _PUBACK:
            self._acknowledged(int.from_bytes(body[:2], "big"))
        elif kind == _PINGREQ:
            client.line.sendall(b"\xd0\x00")
        elif kind in (_SUBSCRIBE, _UNSUBSCRIBE):
            filters = _filters(body, five=client.five, with_qos=kind == _SUBSCRIBE)
            granted = bytes(qos & 3 for _, qos in filters) if kind == _SUBSCRIBE else bytes(len(filters))
            granted = granted if client.five or kind == _SUBSCRIBE else b""
            properties = b"\0" if client.five else b""
            client.line.sendall(framed((kind + 1) << 4, body[:2] + properties + granted))
            if kind == _SUBSCRIBE and not any(one.startswith(_OWN) for one, _ in filters):
                self._subscribed.add(client.name)
        elif kind == _DISCONNECT:
            client.orderly = True
            if b"\x11\x00\x00\x00\x00" in body:  # an expiry of 0 s: the session ends
                with self._lock:
                    self._sessions.discard(client.name)

    def _acknowledged(self, packet_id: int) -> None:
        """Acknowledgements come in the order of the packets."""
        with self._lock:
            for place, sent in enumerate(self._under_way):
                if sent.said.expected.packet_id == packet_id:
                    del self._under_way[place]
                    return

    def _send(self, client: _Client) -> None:
        """As much as the window allows; nothing behind a packet that ends the connection."""
        while client.breaking is None:
            with self._lock:
                if not self._queue or len(self._under_way) >= self.window:
                    return
                sent = self._queue.popleft()
                said, sent.times = sent.said, sent.times + 1
                if said.expected.fate is Fate.BREAK:
                    client.breaking = sent
                elif said.expected.qos:
                    self._under_way.append(sent)
            if said.cut and sent.times == 1:
                self.cuts += 1
                client.line.sendall(said.frame[: said.cut])
                raise EOFError
            again = _DUP if sent.times > 1 and said.frame[0] & _QOS_1 else 0
            client.line.sendall(bytes([said.frame[0] | again]) + said.frame[1:])

    def _gone(self, client: _Client) -> None:
        """A client that has said DISCONNECT has not met what would have ended its connection."""
        if client.breaking is None:
            return
        client.breaking.breaks += not client.orderly
        if client.breaking.breaks == BREAKS:
            self.broken += 1
        else:
            self._queue.appendleft(client.breaking)


def _packet(line: socket.socket) -> tuple[int, bytes]:
    head, length, place = _exactly(line, 1)[0], 0, 0
    while (byte := _exactly(line, 1)[0]) >= 0x80:
        length, place = length + ((byte & 0x7F) << 7 * place), place + 1
    return head, _exactly(line, length + (byte << 7 * place))


def _exactly(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _filters(body: bytes, *, five: bool, with_qos: bool) -> list[tuple[str, int]]:
    at, found = 2, []
    if five:
        at += 1 + body[at]
    while at < len(body):
        size = int.from_bytes(body[at : at + 2], "big")
        name, at = body[at + 2 : at + 2 + size].decode(), at + 2 + size
        found.append((name, body[at] if with_qos else 0))
        at += with_qos
    return found
