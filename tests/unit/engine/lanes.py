"""Lanes and searches of the drill system, as a driver would make them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from connect_core.clock import now_ns
from connect_core.replication.host import boot_id
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Scan
from connect_core.sdk.values import Attempt, OpenRange, Pins, Range
from connect_core.version import code_version
from connect_core.work import Engine, Lane, Outcome, ScanTask, Side

DRILL = Path(__file__).parent / "drill"
"""To be put on the workers' path."""


def lane(home: Path, *, index: int = 0, left_s: float = 20, ranges: int = 1, **options: Any) -> Lane:
    """A lane with one open range or more, whose driver has made its lock file. `options` are those of the drill."""
    lock = home / "locks" / "lease.1"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    side = Side("drill", {name: _plain(value) for name, value in options.items()})
    return Lane(
        connector="c",
        uid="u",
        task=0,
        epoch=1,
        source=side,
        sink=side,
        pipeline={},
        tolerance=0,
        ranges=tuple(open_range(100 * index + number) for number in range(ranges)),
        quantum_s=left_s,
        boot_id=boot_id(),
        deadline_ns=now_ns() + int(left_s * 1e9),
        lock_paths=(str(lock),),
        code=code_version(),
    )


def meeting(home: Path, party: int) -> list[Lane]:
    """Lanes that all must run at once, or fail."""
    folder = home / "meeting"
    folder.mkdir()
    return [
        lane(home, index=index, left_s=60, act="meet", seconds=40, party=party, note=folder / str(index))
        for index in range(party)
    ]


def executed_three_times(engine: Engine, home: Path) -> list[Outcome]:
    """Two lanes each time."""
    pairs = [[lane(home, index=index), lane(home, index=index + 10)] for index in range(3)]
    return [outcome for pair in pairs for outcome in engine.execute(pair)]


def scan_task(**options: Any) -> ScanTask:
    side = Side("drill", {name: _plain(value) for name, value in options.items()})
    return ScanTask(side, Scan(Attempt("u", 1), (open_range(7),), limit_s=20), code=code_version())


def open_range(number: int) -> OpenRange:
    pins = Pins(revision=1, pipeline="p", target={}, code="x")
    wanted = Range("live", Partition(f"p{number}"), number, 0, 0, 1000, 1000, 1_000_000, {}, pins)
    return OpenRange(number, wanted, ())


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, Path) else value
