"""One connection's worth of protocol, without the connection: requests become bytes, bytes become events.

Replies are matched by `opaque`, in whatever order they come. A reply that nobody waits for any more is dropped. Servers
send requests too, with opaques that overlap with ours; those come out as `ServerRequest`. Not thread-safe, no clock:
whoever owns the deadline calls `forget`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connect_core.rocketmq.wire.frame import DEFAULT_MAX_FRAME_BYTES, Frame, Framer
from connect_core.rocketmq.wire.header import RESPONSE_FLAG, Command, decode, encode

_OPAQUE_MASK = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the request with this opaque. A refusal is an answer too: look at `command.code`."""

    opaque: int
    command: Command


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """Something the server wants of us; `answer` it unless it is one-way."""

    command: Command


Event = Reply | ServerRequest


class WireSession:
    def __init__(self, *, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._framer = Framer(max_frame_bytes)
        self._waited_for: set[int] = set()
        self._last_opaque = 0

    def request(self, command: Command) -> tuple[int, bytes]:
        """The opaque to wait for, and the bytes to send. The command's own opaque is not looked at."""
        opaque = (self._last_opaque + 1) & _OPAQUE_MASK
        while opaque in self._waited_for:
            opaque = (opaque + 1) & _OPAQUE_MASK
        frame = encode(replace(command, opaque=opaque))
        self._last_opaque = opaque
        self._waited_for.add(opaque)
        return opaque, frame

    def receive(self, data: bytes | memoryview) -> list[Event]:
        """The events that these bytes complete. After a `WireFormatError` the connection is of no use any more."""
        return self._events(self._framer.feed(data))

    def room(self) -> memoryview:
        """Where the rest of a frame under way may be received straight into; empty between frames."""
        return self._framer.room()

    def filled(self, count: int) -> list[Event]:
        """The events that are complete now that `count` bytes were put into `room`."""
        return self._events(self._framer.filled(count))

    def forget(self, opaque: int) -> None:
        """Nobody waits for this reply any more; when it comes it is dropped."""
        self._waited_for.discard(opaque)

    def _events(self, frames: list[Frame]) -> list[Event]:
        events: list[Event] = []
        for command in map(decode, frames):
            if not command.is_response:
                events.append(ServerRequest(command))
            elif command.opaque in self._waited_for:
                self._waited_for.discard(command.opaque)
                events.append(Reply(command.opaque, command))
        return events


def answer(request: Command, code: int, remark: str = "") -> bytes:
    """The bytes that answer a server's request with nothing but a code."""
    return encode(Command(code=code, opaque=request.opaque, flag=RESPONSE_FLAG, remark=remark))
