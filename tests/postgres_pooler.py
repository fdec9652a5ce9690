"""A connection pooler in front of PostgreSQL, in the one thing in which it differs: it leaves out what a session is
begun with, as PgBouncer does with `ignore_startup_parameters = options`."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

_ASKS_FOR_TLS = 80877103
_LEFT_OUT = b"options"


@contextmanager
def pooled(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options with which its server is reached through the pooler."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=_serve, args=(listener, options), daemon=True)
        serving.start()
        yield {**options, "host": "127.0.0.1", "port": listener.getsockname()[1]}
        listener.shutdown(socket.SHUT_RDWR)
        serving.join(10)


def _serve(listener: socket.socket, options: dict[str, Any]) -> None:
    """One session after the other."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:  # it was shut down
            return
        _session(client, _server(options))


def _server(options: dict[str, Any]) -> socket.socket:
    if not str(options["host"]).startswith("/"):
        return socket.create_connection((options["host"], options["port"]))
    server = socket.socket(socket.AF_UNIX)
    server.connect(f"{options['host']}/.s.PGSQL.{options.get('port', 5432)}")
    return server


def _session(client: socket.socket, server: socket.socket) -> None:
    with closing(client), closing(server):
        body = _packet(client)
        if struct.unpack("!I", body[:4])[0] == _ASKS_FOR_TLS:
            client.sendall(b"N")
            body = _packet(client)
        words = body[4:].rstrip(b"\0").split(b"\0")
        kept = [word for pair in zip(words[::2], words[1::2], strict=True) if pair[0] != _LEFT_OUT for word in pair]
        said = body[:4] + b"\0".join(kept) + b"\0\0"
        server.sendall(struct.pack("!I", len(said) + 4) + said)
        answers = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        answers.start()
        _pass_on(client, server)
        answers.join(10)


def _packet(client: socket.socket) -> bytes:
    [size] = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))
    return client.recv(size - 4, socket.MSG_WAITALL)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one of both has gone
        return
