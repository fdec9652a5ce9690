"""A line in front of RocketMQ that a test can break: it delays, cuts, swallows an answer, or holds a request and
forwards it later.

It stands in front of the broker and of the name server, because clients take the broker's address from the name
server's answers: there it puts its own in. A connector that is given the proxy as its name server never sees another
address. Everything else is forwarded as it came, frame by frame. What happens to a request is said before it comes: a
`Trap` waits for it, and the test waits for the trap. Threads block on sockets; `close` ends them all.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.frame import Frame, Framer, encode_frame
from connect_core.rocketmq.wire.header import Command, decode
from tests.faults.kit import processes
from tests.faults.kit.fronts import Front, Line, hang_up

_CHUNK_BYTES = 1 << 16
_LIMIT_S = 150.0


@dataclass
class Trap:
    """What is done to the first request to the broker that `matches`, after `passes` others that did.

    `first` is called before anything else happens; where its line is gone by then, the next such request is meant.
    `forward`: the broker gets it at once; else it is held until
    `release`. `answer`: the client gets the answer; else it is swallowed. `cut`: the client's connection is closed.
    """

    matches: Callable[[Command], bool]
    passes: int = 0
    first: Callable[[Line], object] = lambda line: None
    forward: bool = True
    answer: bool = True
    cut: bool = False
    _held: tuple[Line, Frame] | None = None
    _caught: threading.Event = field(default_factory=threading.Event)
    _answered: threading.Event = field(default_factory=threading.Event)

    @property
    def caught(self) -> bool:
        """A request was caught, and what was to be done to it has been done."""
        return self._caught.is_set()

    def release(self) -> None:
        """Forwards the request that was held; returns when the broker has answered it."""
        assert self._held is not None
        line, frame = self._held
        _to_server(line, frame)
        self.wait_for_answer()

    def wait_for_answer(self) -> None:
        """Returns when the broker has answered, whether anybody got to know or not."""
        assert self._answered.wait(_LIMIT_S), "the broker did not answer"

    def catch(self, line: Line, frame: Frame) -> None:
        if self.forward:
            _to_server(line, frame)
        else:
            self._held = (line, frame)
        if self.cut:
            hang_up(line.client)
        self._caught.set()

    def pass_answer(self, line: Line, frame: Frame) -> None:
        if self.answer:
            _to_client(line, frame)
        self._answered.set()


def kill_sender(line: Line) -> None:
    processes.kill(line.sender())


def sends_to(topic: str) -> Callable[[Command], bool]:
    """Batches for that topic: not those of others, nor barriers."""
    return lambda command: command.code == RequestCode.SEND_BATCH_MESSAGE and command.fields["b"] == topic


def pulls_of(topic: str) -> Callable[[Command], bool]:
    return lambda command: command.code == RequestCode.PULL_MESSAGE and command.fields["topic"] == topic


class RocketMQProxy:
    """`address` is what clients are given as their name server, `broker_address` where that one sends them.
    `seconds_a_record` makes the broker slow: it holds the answer to a batch for so long, one batch after the other.
    """

    def __init__(self, name_server: str, broker: str) -> None:
        self.seconds_a_record = 0.0
        self._traps: list[Trap] = []
        self._lock = threading.Lock()
        self._in_turn = threading.Lock()
        self._broker = broker
        self._trapped: dict[tuple[Line, int], Trap] = {}
        self._fronts = (
            Front(_parsed(broker), partial(_ways, request=self._request, answer=self._answer)),
            Front(_parsed(name_server), partial(_ways, request=_to_server, answer=self._address_changed)),
        )
        self.broker_address, self.address = (f"{one.host}:{one.port}" for one in self._fronts)

    def set(self, trap: Trap) -> Trap:
        with self._lock:
            self._traps.append(trap)
        return trap

    def close(self) -> None:
        for front in self._fronts:
            front.close()

    def _request(self, line: Line, frame: Frame) -> None:
        command = decode(frame)
        trap = self._trap_for(command)
        if trap is None:
            _to_server(line, frame)
        else:
            self._first_of(trap, line)
            self._trapped[line, command.opaque] = trap
            trap.catch(line, frame)

    def _first_of(self, trap: Trap, line: Line) -> None:
        """A sender that gave up before it was found is not what the trap is for: it waits for the next one."""
        try:
            trap.first(line)
        except OSError:
            self.set(trap)
            raise

    def _trap_for(self, command: Command) -> Trap | None:
        with self._lock:
            for trap in [trap for trap in self._traps if trap.matches(command)]:
                if not trap.passes:
                    self._traps.remove(trap)
                    return trap
                trap.passes -= 1
        return None

    def _answer(self, line: Line, frame: Frame) -> None:
        command = decode(frame)
        trap = self._trapped.pop((line, command.opaque), None) if command.is_response else None
        if trap is not None:
            trap.pass_answer(line, frame)
            return
        if self.seconds_a_record and "msgId" in command.fields:
            with self._in_turn:
                time.sleep(self.seconds_a_record * len(command.fields["msgId"].split(",")))
        _to_client(line, frame)

    def _address_changed(self, line: Line, frame: Frame) -> None:
        """Routes name the proxy instead of the broker."""
        body = bytes(frame.body).replace(self._broker.encode(), self.broker_address.encode())
        _to_client(line, Frame(frame.encoding, frame.header, memoryview(body)))


Pass = Callable[[Line, Frame], None]


def _parsed(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _ways(line: Line, request: Pass, answer: Pass) -> Iterator[Callable[[], None]]:
    """A client that has gone leaves the way to the server open: what is held may still be forwarded."""
    yield partial(_pump, line.client, line, request, behind=lambda: None)
    yield partial(_pump, line.server, line, answer, behind=lambda: hang_up(line.client))


def _to_server(line: Line, frame: Frame) -> None:
    line.server.sendall(encode_frame(frame.encoding, frame.header, frame.body))


def _to_client(line: Line, frame: Frame) -> None:
    """A client that has gone gets nothing."""
    with contextlib.suppress(OSError):
        line.client.sendall(encode_frame(frame.encoding, frame.header, frame.body))


def _pump(origin: socket.socket, line: Line, take: Pass, behind: Callable[[], None]) -> None:
    """Frames from one side until it ends."""
    framer = Framer()
    with contextlib.suppress(OSError, WireFormatError):
        while data := origin.recv(_CHUNK_BYTES):
            for frame in framer.feed(data):
                take(line, frame)
    behind()
