"""Finds the process that drives a run, by the lease it holds in the ledger, and ends it as a crash would."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import TypeVar

from connect_core.ledger import Ledger

Found = TypeVar("Found")

_POLL_S = 0.05
WAIT_LIMIT_S = 240.0


def driver(ledger: Ledger, connector: str) -> int | None:
    """The process that holds a lease of the connector's live stream while a range of it is open; None when nobody is in
    the middle of one. A holder is named `host:process:nonce`."""
    uid = ledger.connector(connector).uid
    holders = [lease.holder for lease in ledger.live_leases(uid) if lease.deadline_ns]
    if not holders or not ledger.open_ranges(uid, "live"):
        return None
    return int(holders[0].split(":")[-2])


def kill(pid: int) -> bool:
    """SIGKILL; False when it had ended by itself."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_for(look: Callable[[], Found], limit_s: float = WAIT_LIMIT_S) -> Found | None:
    """The first true answer of `look`; None when there was none in time."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if answer := look():
            return answer
        time.sleep(_POLL_S)
    return None
