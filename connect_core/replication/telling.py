"""What a run tells: sentences and progress while it goes on, a summary when it is done.

The same for the command, a scheduler's log and a Spark job. Pure but for the clock by which progress is thinned out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from connect_core.replication.run import RunSummary
from connect_core.replication.task import Listener, Progress

COUNTS = (
    "read",
    "absent",
    "filtered",
    "rejected",
    "passed",
    "emitted",
    "delivered",
    "already",
    "surplus",
    "possible_repeats",
)

_NOTEWORTHY = ("absent", "filtered", "rejected", "surplus", "possible_repeats")
_LINE_EVERY_S = 5.0


def listener(write: Callable[[str], None]) -> Listener:
    """Writes each sentence, and a task's progress at most every five seconds and at its end. For several threads."""
    told: dict[int, float] = {}

    def progress(now: Progress) -> None:
        finished = now.done >= now.planned
        if not finished and time.monotonic() - told.get(now.task, 0.0) < _LINE_EVERY_S:
            return
        told[now.task] = time.monotonic()
        write(f"task {now.task}: {now.records:,} records, {_percent(now)}")

    return Listener(write, progress)


def told(summary: RunSummary, seconds: float) -> dict[str, Any]:
    """The receipts of a run added up, ready for JSON."""
    receipts = summary.receipts()
    return {
        "connector": summary.connector,
        "seconds": round(seconds, 3),
        "ranges": len(receipts),
        **{name: sum(getattr(receipt, name) or 0 for receipt in receipts) for name in COUNTS},
        "gaps": sum(len(receipt.gaps) for receipt in receipts),
        "bytes_read": sum(receipt.bytes_read or 0 for receipt in receipts),
        "bytes_written": sum(receipt.bytes_written for receipt in receipts),
        "tasks": [
            {"task": task.task, "run": task.run_id, "ranges": len(task.receipts), "seconds": task.seconds_by_part}
            for task in summary.tasks
        ],
    }


def lines(told: dict[str, Any]) -> list[str]:
    """One line of what counts, then what a person must look at. From `told`."""
    name, seconds = told["connector"], told["seconds"]
    if not told["ranges"]:
        return [f"{name}: nothing to move ({seconds:.1f} s)"]
    ranges = f"{told['ranges']:,} range" + ("" if told["ranges"] == 1 else "s")
    shown = [
        f"{name}: {told['delivered']:,} records delivered, {told['already']:,} were there already;"
        f" {told['read']:,} read in {ranges} ({seconds:.1f} s)"
    ]
    shown += [f"  {count.replace('_', ' ')}: {told[count]:,}" for count in _NOTEWORTHY if told[count]]
    if told["gaps"]:
        shown.append(f"  gaps: {told['gaps']:,} (waybill gaps {name})")
    shown.append(f"  receipts: waybill receipts {name} --run {told['tasks'][0]['run']}")
    return shown


def _percent(now: Progress) -> str:
    return f"{100 * now.done // now.planned}%" if now.planned else "100%"
