"""The `waybill` command with one thing changed, as a program of its own: `python -m tests.faults.kit.programs CHANGE …`

`queued NOTE run NAME` writes the file NOTE when its lanes are at the engine and none of them has started.
`trusting run NAME` does not ask the engine whether it tries a task twice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from connect_core.cli import main
from connect_core.engine import spark_session


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


if __name__ == "__main__":
    if sys.argv[1] == "queued":
        noting(Path(sys.argv.pop(2)))
    else:
        trusting()
    del sys.argv[1]
    main()
