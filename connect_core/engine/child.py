"""One lane or one search of the inline engine: `python -m connect_core.engine.child lane|search PARENT_PID`.

Standard input is a socket: says there with one byte that it is ready, reads the request to its end, and writes 8 bytes
of length (big endian) and the answer to standard output. Dies with its parent. Whatever else is printed goes to
standard error.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from typing import BinaryIO

from connect_core.engine.parent import die_with

LENGTH_BYTES = 8
READY = b"r"


def main(arguments: list[str]) -> None:
    kind, parent = arguments
    die_with(int(parent))
    answers = _private_output()
    sys.meta_path.insert(0, _WithoutPandas())
    from connect_core.engine.worker import prepared, run_lane, run_search

    prepared()
    os.write(0, READY)
    request = sys.stdin.buffer.read()
    answer = run_lane(request, attempt_number=0) if kind == "lane" else run_search(request)
    with answers:
        answers.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)


class _WithoutPandas(MetaPathFinder):
    """No lane uses pandas, but pyarrow imports it, where it is installed, when it makes its first array: 0.3 s of work
    in the middle of a quantum, and several seconds of a short one on a crowded machine."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("a lane's process does without pandas", name=name)


def _private_output() -> BinaryIO:
    """Standard output for the answer alone; what prints to it from now on comes out at standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(answers, "wb")


if __name__ == "__main__":
    main(sys.argv[1:])
