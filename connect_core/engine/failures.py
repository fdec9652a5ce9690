"""What a crash of lanes left to read: kept in a file of the home, which the one line that people see names.

Spark's stack traces and what a dying worker has printed are pages of text, and may quote data: only the owner of the
home can read the file, and no part of it is in a message.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import traceback
from pathlib import Path

from connect_core.errors import EngineFailed
from connect_core.masking import mask_secrets

_LARGEST_BYTES = 8 * 1024 * 1024

LOOKED_UP = "The next attempt checks the target for written records"
OUT_OF_TIME = f"{LOOKED_UP}. If each attempt ends so, a record takes longer than a lease: raise WAYBILL_LEASE_TTL_S"


def log_of(home: Path) -> Path:
    return home / "logs" / "engine-failures.log"


def text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def ended_by(signal_number: int, deadline_ns: int | None, now_ns: int) -> str:
    """Who may have killed a lane's process with this signal, noticed now, as the end of a sentence. `deadline_ns` is
    None for a process that has none."""
    if signal_number != signal.SIGKILL:
        return ""
    if deadline_ns is None:
        return ", by the system (out of memory?) or by a person"
    late_s = (now_ns - deadline_ns) / 1e9
    if late_s < 0:
        return (
            f", {-late_s:.0f} s before its deadline: not by Waybill, but by the system (out of memory?) or by a person"
        )
    return (
        ": its deadline has passed, at which Waybill kills what still runs, so that something in it took too long."
        " If it was killed before that, it was by the system (out of memory?) or by a person"
    )


def next_step_after(signal_number: int, deadline_ns: int | None, now_ns: int) -> str:
    """Of a process that was ended by this signal, noticed now."""
    was_late = signal_number == signal.SIGKILL and deadline_ns is not None and now_ns >= deadline_ns
    return OUT_OF_TIME if was_late else LOOKED_UP


def kept(error: EngineFailed, text: str, log: Path | None) -> EngineFailed:
    """The error, which names the file once `text` is in it; as it was where there is no file to write to."""
    if log is None:
        return error
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    entry = f"{now} pid {os.getpid()}: {error.what} [{error.where}]\n{mask_secrets(text)}\n"
    with contextlib.suppress(OSError):
        _append(log, entry)
        step = f"{error.next_step}; " if error.next_step else ""
        return type(error)(error.what, where=error.where, next_step=f"{step}details: {log}")
    return error


def _append(log: Path, entry: str) -> None:
    """Kept over runs; begun anew, with the one before it beside it, when it has grown large."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LARGEST_BYTES:
        log.replace(log.with_suffix(".old.log"))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(entry)
