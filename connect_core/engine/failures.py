"""What a crash of lanes left to read: kept in a file of the home, which the one line that people see names.

Spark's stack traces and what a dying worker has printed are pages of text, and may quote data: only the owner of the
home can read the file, and no part of it is in a message.
"""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from pathlib import Path

from connect_core.errors import EngineFailed
from connect_core.masking import mask_secrets

_LARGEST_BYTES = 8 * 1024 * 1024


def log_of(home: Path) -> Path:
    return home / "logs" / "engine-failures.log"


def text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


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
