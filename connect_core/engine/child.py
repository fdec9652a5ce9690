"""One lane or one search of the inline engine: `python -m connect_core.engine.child lane|search PARENT_PID`.

Reads the request from standard input to its end and writes 8 bytes of length (big endian) and the answer to standard
output. Dies with its parent. Whatever else is printed goes to standard error.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import BinaryIO

from connect_core.errors import Fatal

LENGTH_BYTES = 8

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    kind, parent = arguments
    _die_with(int(parent))
    answers = _private_output()
    request = sys.stdin.buffer.read()
    from connect_core.engine.worker import run_lane, run_search

    answer = run_lane(request, attempt_number=0) if kind == "lane" else run_search(request)
    with answers:
        answers.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)


def _die_with(parent: int) -> None:
    """SIGKILL when the parent ends. It may have ended before the kernel was asked: then somebody else is the parent."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise Fatal(f"prctl failed: {os.strerror(ctypes.get_errno())}", next_step="the inline engine needs Linux")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _private_output() -> BinaryIO:
    """Standard output for the answer alone; what prints to it from now on comes out at standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(answers, "wb")


if __name__ == "__main__":
    main(sys.argv[1:])
