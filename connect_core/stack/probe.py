"""One RocketMQ request over a fresh connection, for readiness only: is that server there and does it answer?

Speaks the JSON form of the remoting protocol with the standard library alone, so that the stack can be started where
the rest of the product is not installed yet. Bodies are given as bytes: nothing here decodes them.
"""

from __future__ import annotations

import json
import socket
import struct

BROKER_CLUSTER_INFO = 106
"""To a name server: which brokers it knows."""
BROKER_RUNTIME_INFO = 28
"""To a broker: its counters."""
UPDATE_BROKER_CONFIG = 25
"""To a broker: its body is properties, as in a settings file."""
_SUCCESS = 0
_TIMEOUT_S = 3.0


def ask(port: int, code: int, body: bytes = b"") -> bytes | None:
    """The body of the answer of the server on that loopback port; None when it does not answer or refuses."""
    header = json.dumps({"code": code, "language": "OTHER", "version": 453, "opaque": 1, "flag": 0}).encode()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body)
            (total,) = struct.unpack(">I", _exactly(connection, 4))
            frame = _exactly(connection, total)
    except OSError:
        return None
    length = struct.unpack(">I", frame[:4])[0] & 0xFFFFFF
    answered = json.loads(frame[4 : 4 + length])
    return frame[4 + length :] if answered["code"] == _SUCCESS else None


def _exactly(connection: socket.socket, wanted: int) -> bytes:
    parts = bytearray()
    while len(parts) < wanted:
        chunk = connection.recv(wanted - len(parts))
        if not chunk:
            raise ConnectionError("the peer closed the connection inside an answer")
        parts += chunk
    return bytes(parts)
