"""Which TCP ports of the loopback interface a part takes: the well-known one where it is free, else any free one.

A port is tried by binding it, on all interfaces because the broker's replication listener cannot be kept to loopback.
Between the trial and the server's own bind somebody else may take it: the server then ends, and its start says so.
"""

from __future__ import annotations

import socket
from collections.abc import Container


def is_free(port: int) -> bool:
    """Whether a server could listen there now; a connection of the past that lingers in TIME_WAIT does not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def free() -> int:
    """A port that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.bind(("0.0.0.0", 0))
        port: int = trial.getsockname()[1]
        return port


def choose(preferred: int, taken: Container[int] = (), *, with_below: int = 0) -> int:
    """`preferred` when it is free (0 is never preferred), else another; none of `taken`.

    `with_below`: that many ports below it must be free as well (the broker listens two below its own port too).
    """
    port = preferred or free()
    while any(near in taken or not is_free(near) for near in {port, port - with_below}):
        port = free()
    return port


def accepts(port: int) -> bool:
    """Whether something listens on the loopback port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
