"""What long work looks like: a progress bar on a terminal, plain lines elsewhere. On stderr; stdout is for results."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from connect_core.cli import output

if TYPE_CHECKING:
    from connect_core.service.run_report import Progress, RunListener


@contextmanager
def listening(quiet: bool = False) -> Iterator[RunListener]:
    """A listener for one run; its tasks may call it from several threads."""
    if quiet or not sys.stderr.isatty():
        yield _lines(quiet)
    else:
        with _bar() as listener:
            yield listener


def _lines(quiet: bool) -> RunListener:
    from connect_core.service.run_report import listener

    told = listener(output.notice)
    return replace(told, progress=lambda _: None) if quiet else told


@contextmanager
def _bar() -> Iterator[RunListener]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from connect_core.service.run_report import RunListener, TaskSpeed

    columns = (
        TextColumn("task {task.description}"),
        BarColumn(),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        shown: dict[int, TaskID] = {}
        speeds: dict[int, TaskSpeed] = {}

        def progress(now: Progress) -> None:
            moment = time.monotonic()
            speed = speeds.setdefault(now.task, TaskSpeed(now, moment))
            if now.task not in shown:
                shown[now.task] = bars.add_task(str(now.task), total=now.planned, words="")
            bars.update(shown[now.task], total=now.planned, completed=now.done, words=speed.words(now, moment))

        yield RunListener(lambda text: bars.console.print(output.printable(text), markup=False), progress)
