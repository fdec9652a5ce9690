"""Which TCP ports of the loopback interface a part takes: the well-known one where it is free, else any free one.

A port is tried by binding it, on all interfaces because the broker's replication listener cannot be kept to loopback.
Between the trial and the server's own bind another program may take it: the server then ends, and its start says so.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Set

# Below what systems give to connections that go out (from 32768 on Linux, 49152 by RFC 6335), and below the node ports
# of Kubernetes: a server that is started again finds its port as it left it.
_FOR_SERVERS = range(20_000, 30_000)


def is_free(port: int) -> bool:
    """Whether a server could listen there now; a connection of the past that lingers in TIME_WAIT does not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def free(*, with_below: int = 0) -> int:
    """A port that nobody has now, and that nobody else is given while this process lives.

    `with_below`: the same holds for the port that far below it (the broker listens two below its own port too).
    """
    port = random.choice(_FOR_SERVERS)
    while not all(_hold(near) for near in {port, port - with_below}):
        port = random.choice(_FOR_SERVERS)
    return port


def _hold(port: int) -> bool:
    """Whether nobody had it. It is ours then until this process ends: bound, but not listening.

    A server can listen there nevertheless, as both have SO_REUSEADDR (socket(7); every server that we start sets it).
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.bind(("0.0.0.0", port))
    except OSError:
        held.close()
        return False
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.detach()
    return True


def choose(preferred: int, taken: Set[int] = frozenset(), *, with_below: int = 0) -> int:
    """`preferred` when it is free (0 is never preferred), else another; none of `taken`. `with_below`: as in `free`."""
    port = preferred or free(with_below=with_below)
    while any(near in taken or not is_free(near) for near in {port, port - with_below}):
        port = free(with_below=with_below)
    return port
