"""What a server sends without being asked again, packet by packet. The driver reads each packet with two calls of its
own, which costs more than what is in it.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html
"""

from __future__ import annotations

import socket

from pymysql.constants import CR
from pymysql.err import Error, InternalError, OperationalError, raise_mysql_exception

_HEAD = 4
_LARGEST = 0xFFFFFF
"""A packet of this size goes on in the next one."""
_AT_ONCE, _MOST = 1 << 18, 1 << 22
_ENDED, _ENDED_BELOW, _FAILED = b"\xfe", 9, b"\xff"


class StreamedPackets:
    """Of a connection whose last command is answered by a stream. `waits_s` is how long nothing may come. Raises what
    the driver raises."""

    def __init__(self, connection: socket.socket, waits_s: float) -> None:
        connection.settimeout(waits_s)
        self._connection, self._waits_s = connection, waits_s
        self._held, self._at = b"", 0
        self._next = 1  # the command itself was 0

    def packet(self) -> bytes | None:
        """The next one behind its first byte; None where the server has ended the stream."""
        parts = [self._part()]
        while len(parts[-1]) == _LARGEST:
            parts.append(self._part())
        whole = parts[0] if len(parts) == 1 else b"".join(parts)
        if whole[:1] == _FAILED:
            raise_mysql_exception(whole)
        if whole[:1] == _ENDED and len(whole) < _ENDED_BELOW:
            return None
        return whole[1:]

    def has_more(self) -> bool:
        """Whether something has come already, which is read then. What is wrong, the next packet says."""
        if self._at < len(self._held):
            return True
        self._connection.settimeout(0)
        try:
            self._held, self._at = self._connection.recv(_AT_ONCE), 0
        except OSError:  # mostly that nothing is there
            return False
        finally:
            self._connection.settimeout(self._waits_s)
        return bool(self._held)

    def _part(self) -> bytes:
        if len(self._held) - self._at < _HEAD:
            self._wait_for(_HEAD)
        head = int.from_bytes(self._held[self._at : self._at + _HEAD], "little")
        size, number = head & _LARGEST, head >> 24
        end = self._at + _HEAD + size
        if len(self._held) < end:
            self._wait_for(_HEAD + size)
            end = self._at + _HEAD + size
        if number != self._next:
            raise self._other_than_expected(number)
        self._next = (number + 1) & 0xFF
        part = self._held[self._at + _HEAD : end]
        self._at = end
        return part

    def _other_than_expected(self, number: int) -> Error:
        if number == 0:  # MariaDB says so that it is being stopped
            return _lost()
        return InternalError(f"Packet {self._next} of the server was expected, and {number} has come")

    def _wait_for(self, size: int) -> None:
        """Until so much is held."""
        parts, held = [self._held[self._at :]], len(self._held) - self._at
        while held < size:
            parts.append(self._received(min(max(size - held, _AT_ONCE), _MOST)))
            held += len(parts[-1])
        self._held, self._at = b"".join(parts), 0

    def _received(self, most: int) -> bytes:
        try:
            found = self._connection.recv(most)
        except OSError as error:
            raise _lost(f" ({error})") from None
        if not found:
            raise _lost()
        return found


def _lost(why: str = "") -> OperationalError:
    return OperationalError(CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query{why}")
