"""The `waybill` command with one thing changed, as a program of its own: `python -m tests.faults.kit.programs CHANGE …`

`queued NOTE run NAME` writes the file NOTE when its lanes are at the engine and none of them has started.
`trusting run NAME` does not ask the engine whether it tries a task twice.
`cutting WHEN LANE run NAME` cuts its line to a worker when it sends that lane, the first is 1: `before` anything of it
is sent, `halfway`, `meanwhile` (a moment later, while the worker is at work), or before it takes the `answer`.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from connect_core.cli import main
from connect_core.engine import spark_session
from connect_core.engine.line import Line, LineEnded


def noting(note: Path) -> None:
    connected = spark_session.connected

    def watch(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        if not inflight_tasks and not done and any(stage.num_tasks for stage in stages or ()):
            note.touch()

    def watched(remote: str) -> Any:
        session = connected(remote)
        session.registerProgressHandler(watch)
        return session

    spark_session.connected = watched


def trusting() -> None:
    spark_session.check_retries = lambda *settings: None


def cutting(when: str, number: int) -> None:
    send, arrived, sent = Line.send, Line.arrived, count(1)
    last: list[Line] = []

    def cut(line: Line) -> None:
        line._stream.shutdown(socket.SHUT_RDWR)

    def sending(line: Line, message: bytes, limit_s: float | None = None) -> None:
        if not message or next(sent) != number:
            return send(line, message, limit_s)
        if when == "before":
            cut(line)
        elif when == "halfway":
            line._stream.sendall(len(message).to_bytes(8, "big") + message[: len(message) // 2])
            cut(line)
        elif when == "meanwhile":
            threading.Timer(0.05, cut, [line]).start()
        last.append(line)
        return send(line, message, limit_s)

    def arriving(line: Line) -> bytes | None:
        if when == "answer" and line in last:
            cut(line)
            line._arrived.clear()
            raise LineEnded
        return arrived(line)

    setattr(Line, "send", sending)  # noqa: B010  mypy lets nobody assign to a method
    setattr(Line, "arrived", arriving)  # noqa: B010


if __name__ == "__main__":
    if sys.argv[1] == "cutting":
        cutting(sys.argv.pop(2), int(sys.argv.pop(2)))
    elif sys.argv[1] == "queued":
        noting(Path(sys.argv.pop(2)))
    else:
        trusting()
    del sys.argv[1]
    main()
