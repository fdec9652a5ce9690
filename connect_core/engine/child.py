"""A process of the inline engine: `python -m connect_core.engine.child lane|search PARENT_PID`.

Standard input is its line to the driver (`line`): says there what its clock reads when it is ready, then answers one
lane after the other until the driver closes the line, or one search. Dies with its parent. What is printed goes to
standard error.
"""

from __future__ import annotations

import os
import socket
import sys
from importlib.abc import MetaPathFinder

from connect_core.engine.line import Line
from connect_core.engine.parent import die_with


def main(arguments: list[str]) -> None:
    kind, parent = arguments
    die_with(int(parent))
    sys.meta_path.insert(0, _WithoutPandas())
    from connect_core.engine.envelope import hello
    from connect_core.engine.worker import prepared, run_search, serve

    prepared()
    line = _private_line()
    line.send(hello())
    if kind == "lane":
        serve(line)
    else:
        line.send(run_search(line.receive()))


class _WithoutPandas(MetaPathFinder):
    """No lane uses pandas, but pyarrow imports it, where it is installed, when it makes its first array: 0.3 s of work
    in the middle of a quantum, and several seconds of a short one on a crowded machine."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("a lane's process does without pandas", name=name)


def _private_line() -> Line:
    """Standard input for the line alone; who reads it from now on finds nothing there."""
    line = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Line(line)


if __name__ == "__main__":
    main(sys.argv[1:])
