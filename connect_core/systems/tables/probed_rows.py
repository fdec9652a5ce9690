"""What `check --probe` says of how rows are found that are to be read: by the time of their last change, or all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from connect_core.sdk.plugin import ProbeResult
from connect_core.systems.tables.named_tables import NO_PARENTS, NamedTables, Parents, fits, read_twice, whole_name
from connect_core.systems.tables.passes import TimeWindow, second_behind

EACH_RUN_READS_ALL = "each run reads all of them again"
MANY = 1_000
"""Rows are counted up to so many."""
_LATER_S = 60
_MOST_NAMED = 5
"""Tables that a finding names."""
POINT = "a name with a point cannot be written in a document"


class TablesThere(NamedTuple):
    """`tables` as `NamedTables` has them; `others` are what is no such table: schema, name and why."""

    tables: Sequence[str]
    others: Sequence[tuple[str, str, str]]
    parents: Parents = NO_PARENTS


Options = TypeVar("Options")


def each_probed(
    named: NamedTables,
    there: TablesThere,
    of_table: Callable[[str], Options],
    probed: Callable[[Options], Iterator[ProbeResult]],
) -> Iterator[ProbeResult]:
    """Of several tables: which they are now, and what is said of each; and those that a pattern does not mean though
    they have such names."""
    found = named.now(there.tables, there.parents)
    if not found:
        yield ProbeResult(True, "no table matches yet: one that comes is read from the next run on")
    for table in found:
        if parent := named.parent_of(table, there.parents):
            wrong = read_twice(table, parent)
            yield ProbeResult(False, f"table {table}: {wrong.what}: {wrong.next_step}")
            continue
        for one in probed(of_table(table)):
            yield ProbeResult(one.ok, one.what if table in one.what else f"{table}: {one.what}")
    yield from _left_out(named, there)
    yield from _matching_nothing(named, there)


def _matching_nothing(named: NamedTables, there: TablesThere) -> Iterator[ProbeResult]:
    """Patterns that were perhaps meant otherwise."""
    names = sorted([*there.tables, *(whole_name(within, name) for within, name, _ in there.others)])
    for pattern in named.patterns():
        if any(fits(name, pattern) for name in names):
            continue
        alike = [name for name in names if fits(name.lower(), pattern.lower())]
        but = f"; {alike[0]} is there, in other capitals" if alike else ""
        yield ProbeResult(True, f"{pattern} matches no table yet{but}")


def _left_out(named: NamedTables, there: TablesThere) -> Iterator[ProbeResult]:
    why: dict[str, list[str]] = {}
    for within, name, reason in there.others:
        if named.match(within, name) and (table := whole_name(within, name)) not in named.exactly():
            why.setdefault(reason, []).append(table)
    for table in there.tables:
        if named.mean(table) and table not in named.exactly() and (of := named.parent_of(table, there.parents)):
            why.setdefault(f"its rows come with those of {of}", []).append(table)
    for reason, tables in sorted(why.items()):
        more = f" and {len(tables) - _MOST_NAMED} more" if len(tables) > _MOST_NAMED else ""
        yield ProbeResult(True, f"left out, {reason}: {', '.join(sorted(tables)[:_MOST_NAMED])}{more}")


def told_apart(number: str, keys: Sequence[str]) -> str:
    return (
        f"its rows are distinguished by their keys: {', '.join(keys)}" if keys else f"its rows are numbered by {number}"
    )


def to_come(now: float) -> TimeWindow:
    """What is not in it has a time that no clock of a change can have said."""
    return TimeWindow(None, second_behind(now) + _LATER_S)


def times_probed(column: str, *, indexed: bool, future: int, zone: str) -> Iterator[ProbeResult]:
    """`future`: how many rows are not in `to_come`. `zone`: the server's, where the column does not say one."""
    yield ProbeResult(True, f"rows that were changed are found by {column}")
    if not indexed:
        yield ProbeResult(True, f"no index begins with column {column}: each look reads the whole table")
    yield from times_to_come(future)
    if zone:
        words = f"column {column} says no time zone, and has to be written in UTC; sessions begin with {zone}"
        yield ProbeResult(True, words)


def times_to_come(future: int) -> Iterator[ProbeResult]:
    if future:
        many = f"{MANY:,} or more" if future >= MANY else f"{future:,}"
        yield ProbeResult(True, f"rows with a time that is still to come, and which are read then: {many}")
