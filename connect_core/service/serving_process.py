"""Which process of a server does a piece of work, and proof that it is gone: a lock that the kernel drops with it.

Only who shares the locks of a home on the same boot has proof (`replication.host`). Of another host's nothing is known,
and what it does is left to it.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

from connect_core.replication.host import host_identity
from connect_core.replication.locks import held_alone

_one = Lock()
_held: dict[Path, str] = {}
_locks = ExitStack()
"""Never closed: they end with this process."""


def this_process(home: Path) -> str:
    """Its name, once it holds its lock in this home."""
    with _one:
        if home not in _held:
            number = secrets.token_hex(6)
            _locks.enter_context(held_alone(home, _file(number)))
            _held[home] = f"{socket.gethostname()} {host_identity(home)} {number}"
        return _held[home]


def is_gone(home: Path | None, process: str) -> bool:
    """Whether a process of this name has ended for sure. A boot that is over has ended all of its host."""
    host, identity, number = process.split(" ")
    here = host_identity(home) if home else ""
    if home is None or identity.partition(":")[2] != here.partition(":")[2]:
        return False
    if identity != here:
        return host == socket.gethostname()
    with held_alone(home, _file(number)) as alone:
        if alone:
            (home / "locks" / _file(number)).unlink(missing_ok=True)
        return alone


def _file(number: str) -> str:
    return f"server-{number}"
