"""The kernel kills this process at an absolute moment, whatever state it is in (delivery rule 2).

A POSIX timer on CLOCK_BOOTTIME that sends SIGKILL: it cannot be masked, needs no thread, does not share the one slot
of `setitimer`, and goes off after a suspend. Worker processes arm one for each lane. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from connect_core.errors import Fatal

_SIGEV_SIGNAL = 0
_TIMER_ABSTIME = 1
_SIGEVENT_BYTES = 64


class _SignalEvent(ctypes.Structure):
    """`struct sigevent` of Linux: 64 bytes, of which SIGEV_SIGNAL reads the first 16 (sigevent(7))."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * (_SIGEVENT_BYTES - ctypes.sizeof(ctypes.c_void_p) - 2 * ctypes.sizeof(ctypes.c_int))),
    )


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    """`struct itimerspec`: an interval of zero makes the timer go off once."""

    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


@contextmanager
def killed_at(deadline_ns: int) -> Iterator[None]:
    """SIGKILL to this process at `deadline_ns` of CLOCK_BOOTTIME, at once when that is over, unless left before.

    Raises Fatal when the kernel gives no timer: then nothing may be written.
    """
    timer = _created()
    try:
        _arm(timer, deadline_ns)
        yield
    finally:
        _libc().timer_delete(timer)


def _created() -> ctypes.c_void_p:
    event = _SignalEvent(value=None, signal=signal.SIGKILL, notify=_SIGEV_SIGNAL)
    timer = ctypes.c_void_p()
    if _libc().timer_create(time.CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(timer)) != 0:
        raise _refused_by_kernel("timer_create")
    return timer


def _arm(timer: ctypes.c_void_p, deadline_ns: int) -> None:
    # An absolute time of zero would disarm; the smallest value that arms is long over as well.
    seconds, nanoseconds = divmod(max(deadline_ns, 1), 1_000_000_000)
    spec = _TimerSpec(_TimeSpec(0, 0), _TimeSpec(seconds, nanoseconds))
    if _libc().timer_settime(timer, _TIMER_ABSTIME, ctypes.byref(spec), None) != 0:
        raise _refused_by_kernel("timer_settime")


def _refused_by_kernel(call: str) -> Fatal:
    return Fatal(
        f"{call} on CLOCK_BOOTTIME failed: {os.strerror(ctypes.get_errno())}",
        next_step="Lanes need Linux and a free POSIX timer (ulimit -i)",
    )


@cache
def _libc() -> ctypes.CDLL:
    """The C library with the timer calls; before glibc 2.34 they were in librt."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "timer_create"):
        library = ctypes.CDLL("librt.so.1", use_errno=True)
    library.timer_create.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    library.timer_settime.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    library.timer_delete.argtypes = [ctypes.c_void_p]
    return library
