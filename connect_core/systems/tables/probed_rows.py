"""What `check --probe` says of how rows are found that are to be read: by the time of their last change, or all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from connect_core.sdk.plugin import ProbeResult
from connect_core.systems.tables.named_tables import NamedTables
from connect_core.systems.tables.options import TableSourceOptions
from connect_core.systems.tables.passes import TimeWindow, second_behind

EACH_RUN_READS_ALL = "each run reads all of them again"
MANY = 1_000
"""Rows are counted up to so many."""
_LATER_S = 60


Options = TypeVar("Options", bound=TableSourceOptions)


def each_probed(
    named: NamedTables,
    there: Iterable[str],
    of_table: Callable[[str], Options],
    probed: Callable[[Options], Iterator[ProbeResult]],
) -> Iterator[ProbeResult]:
    """Of several tables: which they are now, and what is said of each."""
    found = named.now(there)
    if not found:
        yield ProbeResult(True, "no table matches yet: one that comes is read from the next run on")
    for table in found:
        for one in probed(of_table(table)):
            yield ProbeResult(one.ok, one.what if table in one.what else f"{table}: {one.what}")


def to_come(now: float) -> TimeWindow:
    """What is not in it has a time that no clock of a change can have said."""
    return TimeWindow(None, second_behind(now) + _LATER_S)


def times_probed(column: str, *, indexed: bool, future: int, zone: str) -> Iterator[ProbeResult]:
    """`future`: how many rows are not in `to_come`. `zone`: the server's, where the column does not say one."""
    yield ProbeResult(True, f"rows that were changed are found by {column}")
    if not indexed:
        yield ProbeResult(True, f"no index begins with column {column}: each look reads the whole table")
    if future:
        many = f"{MANY:,} or more" if future >= MANY else f"{future:,}"
        yield ProbeResult(True, f"rows with a time that is still to come, and which are read then: {many}")
    if zone:
        words = f"column {column} says no time zone, and has to be written in UTC; sessions begin with {zone}"
        yield ProbeResult(True, words)
