"""Cuts a byte stream into frames: 4 bytes total length, 1 byte header encoding, 3 bytes header length, header, body.

Called by `session` with whatever the socket gave. "Not enough bytes yet" is an empty list, not an error. The limit is
checked as soon as a length is known, before memory is reserved for it; memory held is at most one frame and one chunk.
A large frame is received straight into its own buffer (`room`, `filled`), so that its bytes are not copied twice.
After a `WireFormatError` the stream has no meaning any more and the framer must not be used again.
"""

from __future__ import annotations

from dataclasses import dataclass

from connect_core.errors import WireFormatError

DEFAULT_MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The servers' own limit; they close the connection when a frame is larger."""

_LENGTH_BYTES = 4
_MARK_BYTES = 4
_NO_ROOM = memoryview(bytearray())


@dataclass(frozen=True, slots=True)
class Frame:
    """One whole frame. `encoding` is the first byte of the mark: 0 JSON, 1 RocketMQ binary."""

    encoding: int
    header: bytes
    body: memoryview


class Framer:
    """One direction of one connection; not thread-safe."""

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._length = bytearray()
        self._frame: bytearray | None = None
        self._filled = 0

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """The frames that these bytes complete, in order. Raises `WireFormatError`."""
        frames = []
        view = memoryview(data)
        at = 0
        while at < len(view):
            if self._frame is None:
                at += self._take_length(view[at:])
                continue
            part = view[at : at + len(self._frame) - self._filled]
            self._frame[self._filled : self._filled + len(part)] = part
            at += len(part)
            frames += self.filled(len(part))
        return frames

    def room(self) -> memoryview:
        """Where the rest of the frame under way goes; empty between frames. Fill it from the front, then `filled`."""
        if self._frame is None:
            return _NO_ROOM
        return memoryview(self._frame)[self._filled :]

    def filled(self, count: int) -> list[Frame]:
        """The frame that is complete now that `count` bytes were put into `room`, else nothing."""
        if self._frame is None:
            raise ValueError("filled without room")
        self._filled += count
        if self._filled < len(self._frame):
            return []
        whole, self._frame = self._frame, None
        return [_split(memoryview(whole))]

    @property
    def between_frames(self) -> bool:
        """True when no byte of an unfinished frame was received: the only place where a peer may close."""
        return self._frame is None and not self._length

    def _take_length(self, view: memoryview) -> int:
        taken = view[: _LENGTH_BYTES - len(self._length)]
        self._length += taken
        if len(self._length) == _LENGTH_BYTES:
            total = int.from_bytes(self._length, "big")
            if not _MARK_BYTES <= total <= self._max_frame_bytes:
                raise WireFormatError(
                    f"Frame of {total} bytes, allowed are {_MARK_BYTES} to {self._max_frame_bytes}",
                    next_step="Check that the address is of a RocketMQ server",
                )
            self._length.clear()
            self._frame, self._filled = bytearray(total), 0
        return len(taken)


def _split(whole: memoryview) -> Frame:
    header_end = _MARK_BYTES + int.from_bytes(whole[1:_MARK_BYTES], "big")
    if header_end > len(whole):
        raise WireFormatError(f"Header ends at byte {header_end} of a frame of {len(whole)}")
    return Frame(whole[0], bytes(whole[_MARK_BYTES:header_end]), whole[header_end:].toreadonly())


def encode_frame(encoding: int, header: bytes, body: bytes | memoryview = b"") -> bytes:
    """The whole frame. Whoever sends keeps it within the limit of the peer."""
    total = _MARK_BYTES + len(header) + len(body)
    mark = encoding << 24 | len(header)
    return b"".join((total.to_bytes(4, "big"), mark.to_bytes(4, "big"), header, body))
