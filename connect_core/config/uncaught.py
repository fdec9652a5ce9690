"""Exceptions that nobody catches, in threads and finalizers of clients too: written to stderr without secrets.

Python writes them by hooks, beside everything that masks its own texts. `mask_uncaught` puts one before each of these:
an exception without a secret goes on to the hook that was there before; of another one only the masked text is written.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

from connect_core.masking import mask_secrets


@cache
def mask_uncaught() -> None:
    """Once in a process, as soon as it knows a value to mask. Processes that it forks have the hooks as well."""
    sys.excepthook = _masking(_of_process, sys.excepthook)
    sys.unraisablehook = _masking(_of_finalizer, sys.unraisablehook)
    threading.excepthook = _masking(_of_thread, threading.excepthook)
    logging.getLogger("asyncio").addFilter(_mask_record)


def _masking(described: Callable[..., str], before: Callable[..., object]) -> Callable[..., None]:
    def hook(*args: Any) -> None:
        text = described(*args)
        masked = mask_secrets(text)
        if masked == text:
            before(*args)
        elif sys.stderr is not None:
            sys.stderr.write(masked)

    return hook


def _of_process(_: object, error: BaseException, __: object) -> str:
    return _trace(error)


def _of_finalizer(failed: sys.UnraisableHookArgs) -> str:
    return f"{failed.err_msg or 'Exception ignored in'}: {_shown(failed.object)}\n{_trace(failed.exc_value)}"


def _of_thread(failed: threading.ExceptHookArgs) -> str:
    if failed.exc_type is SystemExit:
        return ""  # it ends the thread, and Python writes nothing
    name = failed.thread.name if failed.thread else threading.get_ident()
    return f"Exception in thread {name}:\n{_trace(failed.exc_value)}"


def _trace(error: BaseException | None) -> str:
    return "".join(traceback.format_exception(error))


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return "<object repr() failed>"


def _mask_record(record: logging.LogRecord) -> bool:
    """A loop of asyncio logs what a task has raised, if nobody asks the task for it."""
    trace = f"\n{_trace(record.exc_info[1])}" if record.exc_info else ""
    text = record.getMessage() + trace
    masked = mask_secrets(text)
    if masked != text:
        record.msg, record.args, record.exc_info = masked, (), None
    return True
