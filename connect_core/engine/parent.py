"""A process that ends with the one that started it, by the kernel's hand. Linux only."""

from __future__ import annotations

import ctypes
import os
import signal

from connect_core.errors import Fatal

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """SIGKILL when the parent ends. It may have ended before the kernel was asked: then somebody else is the parent."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise Fatal(f"prctl failed: {os.strerror(ctypes.get_errno())}", next_step="Lanes need Linux")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
