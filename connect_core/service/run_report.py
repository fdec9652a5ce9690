"""What a run tells: sentences and progress while it goes on, a summary when it is done.

The same for the command, a scheduler's log and a Spark job. Pure but for the clock by which progress is thinned out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_core.replication.driver import found_before
from connect_core.replication.driver.context import Progress, RunListener
from connect_core.replication.driver.run import RunSummary
from connect_core.replication.driver.set_aside import sentence, set_aside
from connect_core.replication.driver.summary import TaskSummary
from connect_core.work import COUNTS, Receipt

__all__ = [
    "Progress",
    "RunListener",
    "TaskSpeed",
    "added",
    "counts",
    "lines",
    "listener",
    "noteworthy",
    "percent",
    "reported",
    "span",
    "total",
]

_NOTEWORTHY = ("absent", "filtered", "rejected", "duplicates", "possible_duplicates")
_LINE_EVERY_S = 5.0


def listener(write: Callable[[str], None]) -> RunListener:
    """Writes each sentence, and a task's progress at most every five seconds and at its end. For several threads."""
    speeds: dict[int, TaskSpeed] = {}
    told: dict[int, float] = {}

    def progress(now: Progress) -> None:
        moment = time.monotonic()
        speed = speeds.setdefault(now.task, TaskSpeed(now, moment))
        if now.done < now.planned and moment - told.get(now.task, 0.0) < _LINE_EVERY_S:
            return
        told[now.task] = moment
        write(f"task {now.task}: {speed.words(now, moment)}")

    return RunListener(write, progress)


@dataclass(frozen=True)
class TaskSpeed:
    """How fast a task gets on: `first` is what it told first, at `since` (seconds of any clock)."""

    first: Progress
    since: float

    def words(self, now: Progress, moment: float) -> str:
        """Share of what is planned, records, and once there is something to measure by how fast and how long still."""
        words = [f"{percent(now)}%", f"{now.records:,} records"]
        seconds = moment - self.since
        if seconds > 0 and now.records > self.first.records:
            words.append(f"{(now.records - self.first.records) / seconds:,.0f}/s")
        left = self.left_s(now, moment)
        return ", ".join([*words, f"about {span(left)} left"] if left else words)

    def left_s(self, now: Progress, moment: float) -> float | None:
        """Seconds until what is planned is done, at the pace so far; None as long as there is none."""
        moved, seconds = now.done - self.first.done, moment - self.since
        return (now.planned - now.done) * seconds / moved if moved > 0 and seconds > 0 else None


def percent(now: Progress) -> int:
    """Whole ones; 100 only when everything is done."""
    return 100 * now.done // now.planned if now.planned else 100


def span(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 5 min`: as exact as an estimate is."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def total(receipts: Sequence[Receipt]) -> dict[str, Any]:
    """Receipts added up, ready for JSON; a count that nobody can know adds nothing."""
    return {
        "ranges": len(receipts),
        **{name: sum(getattr(receipt, name) or 0 for receipt in receipts) for name in COUNTS},
        "gaps": sum(len(receipt.gaps) for receipt in receipts),
        "bytes_read": sum(receipt.bytes_read or 0 for receipt in receipts),
        "bytes_written": sum(receipt.bytes_written for receipt in receipts),
        "set_aside": set_aside(receipts),
        "found_before": found_before.found_before(receipts),
    }


def reported(summary: RunSummary, seconds: float) -> dict[str, Any]:
    """The receipts of a run added up, ready for JSON; and how many dead letters went to the second target, or could
    not."""
    receipts = summary.receipts()
    return {
        "connector": summary.connector,
        "seconds": round(seconds, 3),
        **total(receipts),
        "sent_to_errors_sink": sum(one.emitted for one in summary.sent),
        "refused_by_errors_sink": sum(one.rejected or 0 for one in summary.sent),
        "tasks": [_of_task(task) for task in summary.tasks],
    }


def _of_task(task: TaskSummary) -> dict[str, Any]:
    told = {"task": task.task, "run": task.run_id, "ranges": len(task.receipts), "seconds": task.seconds_by_part}
    return told | ({"ended_by": task.ended_by} if task.ended_by else {})


def ended_by(told: dict[str, Any]) -> str:
    """From `reported`: paused, stopped or deleted where that has ended the run before everything was moved."""
    return next((str(task["ended_by"]) for task in told.get("tasks", ()) if "ended_by" in task), "")


def added(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several of `reported` for one connector as one; at least one."""
    first, *others = several
    return {
        name: value if name == "connector" else sum((one[name] for one in others), value)
        for name, value in first.items()
    }


def lines(told: dict[str, Any]) -> list[str]:
    """One line of what counts, then what a person must look at. From `reported`."""
    name, seconds = told["connector"], told["seconds"]
    if not told["ranges"]:
        return [f"{name}: nothing to move ({seconds:.1f} s)"]
    return [
        f"{name}: {counts(told)} ({seconds:.1f} s)",
        *noteworthy(told),
        f"  receipts: waybill receipts {name} --run {told['tasks'][0]['run']}",
    ]


def counts(total: Mapping[str, Any]) -> str:
    """What became of the records. From `total`, as the next one."""
    ranges = f"{total['ranges']:,} range" + ("" if total["ranges"] == 1 else "s")
    return (
        f"{total['delivered']:,} delivered, {total['deduplicated']:,} already in the target;"
        f" {total['read']:,} read in {ranges}"
    )


def noteworthy(total: Mapping[str, Any]) -> list[str]:
    """A line for each count that is not usual."""
    found = [f"  {count.replace('_', ' ')}: {total[count]:,}" for count in _NOTEWORTHY if total[count]]
    if total["gaps"]:
        found.append(f"  gaps: {total['gaps']:,} (waybill gaps {total['connector']})")
    if total["found_before"]:
        found.append(f"  {found_before.sentence(total['found_before'])}")
    return found + [f"  {sentence(aside)}" for aside in total["set_aside"]]
