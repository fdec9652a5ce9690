"""What stands in front of a server: a port of its own, and for each client a line to the server behind it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable

import psutil

from connect_core.stack.processes import wait_until

_LIMIT_S = 10.0
_CLOSED = psutil.CONN_CLOSE_WAIT


class Line:
    """One client's connection and the one that was made for it to the server, which outlives it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server

    def sender(self) -> int:
        """The process at the client's end, which waits for an answer.

        Looks again until one alone is found: the kernel's list of connections misses some while others come and go,
        and a child has the socket too between fork and exec. `OSError`: the client has closed the connection.
        """
        found: list[int] = []

        def found_one() -> bool:
            here, there = self.client.getsockname(), self.client.getpeername()
            connections = psutil.net_connections("tcp4")
            if any(one.laddr == here and one.raddr == there and one.status == _CLOSED for one in connections):
                raise ConnectionAbortedError("the client has closed its connection")
            found[:] = {int(one.pid) for one in connections if one.laddr == there and one.pid}
            return len(found) == 1

        assert wait_until(found_one, _LIMIT_S), f"processes at the other end of a connection: {found}"
        return found[0]

    def hang_up(self) -> None:
        for one in (self.client, self.server):
            hang_up(one)

    def close(self) -> None:
        self.hang_up()
        self.client.close()
        self.server.close()


class Front:
    """`ways` gives what is done with a new line, each in a thread of its own that blocks on sockets; `close` ends them
    all. While the server is down, clients are hung up on."""

    def __init__(self, server: tuple[str, int], ways: Callable[[Line], Iterable[Callable[[], None]]]) -> None:
        self._server, self._ways = server, ways
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self._lines: list[Line] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def lead_to(self, server: tuple[str, int]) -> None:
        """From now on new clients come to this server."""
        self._server = server

    def close(self) -> None:
        hang_up(self._listener)
        self._threads[0].join()
        for line in self._lines:
            line.close()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            line = Line(client, server)
            self._lines.append(line)
            for way in self._ways(line):
                self._start(way)

    def _start(self, way: Callable[[], None]) -> None:
        thread = threading.Thread(target=way)
        self._threads.append(thread)
        thread.start()


def both_ways(line: Line) -> tuple[Callable[[], None], Callable[[], None]]:
    """Of a front that only passes on."""
    return lambda: _pass_on(line, line.client, line.server), lambda: _pass_on(line, line.server, line.client)


def _pass_on(line: Line, source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    line.hang_up()


def hang_up(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
