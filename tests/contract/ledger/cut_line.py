"""A Unix socket in front of PostgreSQL that cuts the line when a COMMIT passes: before it, or behind it, before its
answer."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

_COMMIT = b"COMMIT\0"
_CHUNK_BYTES = 1 << 16


class CutLine:
    """Listens in `folder`, forwards to the server whose socket is in `server_folder`. `cut` makes it ready to cut the
    next COMMIT, once, or that of the next transaction with a statement that begins as told; until then it only
    forwards. `struck` is set when it has."""

    def __init__(self, folder: Path, server_folder: str) -> None:
        self.folder = folder
        self._server = f"{server_folder}/.s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._cut: Literal["before", "behind"] | None = None
        self._statement = b""
        self.struck = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self, where: Literal["before", "behind"], statement: str = "") -> None:
        self._statement = statement.encode()
        self.struck.clear()
        self._cut = where

    def close(self) -> None:
        """Call it when every client has gone."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._threads.append(threading.Thread(target=self._serve, args=(client, server)))
            self._threads[-1].start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """One connection. A client of ours sends nothing before it has the answer to what it sent."""
        muted = threading.Event()
        answers = threading.Thread(target=_forward_answers, args=(server, client, muted))
        answers.start()
        seen = False
        with client, server, suppress(OSError):
            while data := client.recv(_CHUNK_BYTES):
                seen = seen or self._statement in data
                cut = self._cut if _COMMIT in data and seen else None
                seen = seen and _COMMIT not in data
                if cut:
                    self._cut = None
                    muted.set()
                    self.struck.set()
                if cut != "before":
                    server.sendall(data)
                if cut:
                    break
            # Half closed: the server still finishes what it was sent, then hangs up.
            server.shutdown(socket.SHUT_WR)
            answers.join()


def _forward_answers(server: socket.socket, client: socket.socket, muted: threading.Event) -> None:
    with suppress(OSError):
        while data := server.recv(_CHUNK_BYTES):
            if not muted.is_set():
                client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)
