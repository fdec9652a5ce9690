"""A line between a driver and one of its workers: whole messages over a stream socket, each behind its length.

The driver sends requests, and takes the answers of several workers as they arrive. A worker has one line, and waits at
it.
"""

from __future__ import annotations

from typing import Protocol

_LENGTH_BYTES = 8
_PIECE_BYTES = 256 * 1024


class LineEnded(Exception):
    """The other side has closed its end, or has died."""


class ByteStream(Protocol):
    """What a line needs of a socket, or of TLS over one. Errors are those of sockets."""

    def fileno(self) -> int: ...

    def settimeout(self, limit_s: float | None, /) -> None: ...

    def recv(self, most_bytes: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


class Line:
    """One end. Used in one thread; of a worker one thread may receive while another one sends, both without a limit:
    that is the socket's, which the two share."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._arrived = bytearray()

    def fileno(self) -> int:
        return self._stream.fileno()

    def send(self, message: bytes, limit_s: float | None = None) -> None:
        """Raises TimeoutError when the other side has not taken it within `limit_s`, LineEnded when it has ended."""
        self._stream.settimeout(limit_s)
        try:
            self._stream.sendall(len(message).to_bytes(_LENGTH_BYTES, "big") + message)
        except TimeoutError:
            raise
        except OSError as error:
            raise LineEnded from error

    def receive(self, limit_s: float | None = None) -> bytes:
        """The next message, which is waited for. Raises TimeoutError when nothing has come for `limit_s`, LineEnded
        when the other side has ended."""
        self._stream.settimeout(limit_s)
        while (message := self._whole()) is None:
            self._take()
        return message

    def arrived(self) -> bytes | None:
        """The next message if all of it is there by now. Waits for nothing. Raises LineEnded when the other side has
        ended, and nothing of it is left."""
        self._stream.settimeout(0)
        while (message := self._whole()) is None:
            try:
                self._take()
            except BlockingIOError:
                return None
        return message

    def close(self) -> None:
        self._stream.close()

    def _take(self) -> None:
        try:
            piece = self._stream.recv(_PIECE_BYTES)
        except (TimeoutError, BlockingIOError):
            raise
        except OSError as error:
            raise LineEnded from error
        if not piece:
            raise LineEnded
        self._arrived += piece

    def _whole(self) -> bytes | None:
        end = _LENGTH_BYTES + int.from_bytes(self._arrived[:_LENGTH_BYTES], "big")
        if len(self._arrived) < max(end, _LENGTH_BYTES):
            return None
        message = bytes(self._arrived[_LENGTH_BYTES:end])
        del self._arrived[:end]
        return message
