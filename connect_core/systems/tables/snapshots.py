"""Rows of tables that come among their changes, chunk by chunk: of which tables they are still to come, and behind
which key. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from connect_core.errors import ConfigError, Failure, Refused
from connect_core.sdk.values import Bounds, Gap, Json

Key = tuple[str, ...]
"""Of a row, as texts."""
Place = tuple[str, str]
"""Schema or database, and name of a table."""
T = TypeVar("T")
_GONE = "gone"
"""Key of the evidence."""


class DueTable(NamedTuple):
    """A table whose rows are to come. Where somebody has asked for them, `asked` is the condition that they fulfil, in
    the SQL of the server, empty for all rows. None: nobody has asked, for they are what a connector begins with, or
    what a table brings that joins it."""

    place: Place
    asked: str | None = None
    kept: Key | None = None
    """Behind which key rows come when it is read again that is read behind the others: of a condition alone. Any other
    table is read from its begin then, for it may have been altered."""

    @property
    def rows(self) -> tuple[Place, str]:
        """Which ones they are."""
        return self.place, self.where

    @property
    def where(self) -> str:
        return self.asked or ""

    @property
    def name(self) -> str:
        return ".".join(self.place)


class SnapshotProgress(NamedTuple):
    """Of which tables rows are still to come, and of the first one behind which key."""

    tables: tuple[DueTable, ...] = ()
    after: Key | None = None

    @classmethod
    def of(cls, places: Iterable[Place], after: Key | None = None) -> SnapshotProgress:
        """All rows of these tables, for which nobody has asked."""
        return cls(tuple(map(DueTable, places)), after)

    def is_due(self, tables: Sequence[DueTable], after: Key | None) -> bool:
        """Whether the rows that come next are those of this one table behind this key."""
        return after == self.after and [one.rows for one in tables] == [one.rows for one in self.tables[:1]]

    def behind(self, last: Key | None) -> SnapshotProgress:
        """When rows up to this key have come; None: when the first table has no more."""
        return self._replace(after=last) if last else _beginning(self.tables[1:])

    def later(self, count: int = 1) -> SnapshotProgress:
        """When so many tables in front are read behind the others. All: when the first one is read from its begin."""
        if not count or count >= len(self.tables):
            return self._replace(after=None) if count else self
        first, *others = self.tables[:count]
        first = first._replace(kept=self.after if first.where else None)
        return _beginning((*self.tables[count:], first, *others))

    def from_begin(self, means: Callable[[Place], bool]) -> SnapshotProgress:
        """When these tables may be others now."""
        tables = tuple(one._replace(kept=None) if means(one.place) else one for one in self.tables)
        return SnapshotProgress(tables, None if tables and means(tables[0].place) else self.after)

    def with_more(self, tables: Iterable[DueTable]) -> SnapshotProgress:
        """A table that is being read is read once more behind the others."""
        return self._replace(tables=(*self.tables, *tables))

    def asked_by(self, request: SnapshotRequest) -> SnapshotProgress:
        """What somebody has asked for of its cancelled tables comes no more; what nobody has asked for comes."""
        kept = [one.asked is None or one.place not in request.cancelled for one in self.tables]
        left = tuple(one for one, is_kept in zip(self.tables, kept, strict=True) if is_kept)
        return (SnapshotProgress(left, self.after) if all(kept[:1]) else _beginning(left)).with_more(request.tables)

    @property
    def conditions(self) -> list[str]:
        """Of which tables rows are to come that fulfil one, and which: for people."""
        return [f"{one.name} WHERE {one.where}" for one in self.tables if one.where]

    def as_json(self) -> Json:
        """Earlier versions know tables and key alone."""
        said: Json = {
            "tables": [[*one.place] for one in self.tables],
            "after": None if self.after is None else [*self.after],
        }
        asked, kept = [one.asked for one in self.tables], [one.kept for one in self.tables]
        if any(one is not None for one in asked):
            said["asked"] = asked
        if any(kept):
            said["kept"] = [one and [*one] for one in kept]
        return said

    @classmethod
    def parse(cls, given: Json) -> SnapshotProgress:
        places = [(schema, table) for schema, table in given["tables"]]
        nothing, after = [None] * len(places), given["after"]
        kept = [one and (*one,) for one in given.get("kept", nothing)]
        tables = tuple(map(DueTable, places, given.get("asked", nothing), kept))
        return cls(tables, None if after is None else (*after,))


def _beginning(tables: tuple[DueTable, ...]) -> SnapshotProgress:
    """With the first one of these."""
    if not tables:
        return SnapshotProgress()
    return SnapshotProgress((tables[0]._replace(kept=None), *tables[1:]), tables[0].kept)


class SnapshotRequest(NamedTuple):
    """What somebody has said in the log of the tables' changes: whose rows are to come once more, and of which tables
    nothing is to come of what was asked for before this place."""

    tables: tuple[DueTable, ...] = ()
    cancelled: tuple[Place, ...] = ()

    def as_json(self) -> Json:
        said = SnapshotProgress(self.tables).as_json()
        return {**said, "cancelled": [[*one] for one in self.cancelled]} if self.cancelled else said

    @classmethod
    def parse(cls, given: Json) -> SnapshotRequest:
        cancelled = [(schema, table) for schema, table in given.get("cancelled", ())]
        return cls(SnapshotProgress.parse(given).tables, tuple(cancelled))


class ChunksWritten(NamedTuple):
    """`more`: whether there is a chunk to be read. `waits`: why the next one is not written yet. `unfit`: of which
    table rows cannot be read, and why."""

    more: bool
    waits: str = ""
    unfit: Failure | None = None


class Readable(NamedTuple, Generic[T]):
    """A table whose rows can be read, and how many are due before it whose rows cannot."""

    before: int
    table: T


def first_readable(
    due: Iterable[tuple[int, DueTable]], described: Callable[[DueTable], T]
) -> tuple[Readable[T] | None, Failure | None]:
    """Of tables with their numbers; and why the first one cannot be read that is before it. None where none can."""
    unfit: Failure | None = None
    for number, one in due:
        try:
            return Readable(number, described(one)), unfit
        except (ConfigError, Refused) as error:
            unfit = unfit or Failure.of(error)
    return None, unfit


def still_to_come(progress: SnapshotProgress, why: str) -> str:
    """Of a look that could not write all."""
    first, others = progress.tables[0].name, len(progress.tables) - 1
    named = f"table {first}" + (f" and {others:,} more" if others else "")
    return f"rows of {named} are still to come: {why}; the next run goes on (how many: waybill lag)"


def told_gone(seen: Bounds, gone: Sequence[str]) -> Bounds:
    """With a gap that warns of tables which are not there any more though rows of them were to come: once, by what the
    evidence says that was told. Whether they have another name nobody knows."""
    told = seen.evidence.get(_GONE, [])
    if gone == told:
        return seen
    new, gaps = [one for one in gone if one not in told], seen.gaps
    if new:
        reason = (
            f"of table {', '.join(new)} not all rows have come, and no more do: it was dropped, or has another name now"
            " (then: waybill snapshot NAME --table THAT_NAME)"
        )
        gaps += (Gap(seen.incarnation, seen.begin, seen.begin, reason, warns=True),)
    return replace(seen, evidence={**seen.evidence, _GONE: [*gone]}, gaps=gaps, partial=seen.partial or bool(new))


def asked_of(
    tables: Sequence[str], split: Callable[[str], Place], wants: Callable[[str, str], bool], where: str, named: str
) -> list[Place]:
    """The tables of a request. Raises ConfigError for one that the connector does not read; `named` are its own."""
    asked = [split(one) for one in tables]
    if unknown := [one for one in asked if not wants(*one)]:
        raise ConfigError(
            f"The connector does not read table {'.'.join(unknown[0])}",
            where=where,
            next_step=f"Name one of its tables: {named}",
        )
    return asked


def not_given(due: DueTable, why: str, where: str, without_rows: str) -> Refused:
    """Of a table whose rows the server does not give. Its own words may quote a row, and a condition may have values:
    neither is said. `without_rows` is how the connector goes on without rows that nobody has asked for."""
    which = " that fulfil the condition of a snapshot" if due.where else ""
    step = without_rows if due.asked is None else f"cancel it: waybill snapshot NAME --table {due.name} --cancel"
    return Refused(
        f"The server does not give rows of table {due.name}{which}: {why}",
        where=where,
        next_step=f"Look into the server's log; or {step}",
    )


def to_cancel(progress: SnapshotProgress, asked: Sequence[Place], every: Sequence[Place], where: str) -> list[Place]:
    """Tables of which nothing is to come that somebody has asked for; of all where none is named. `progress` is what is
    known: a request may be in the log behind it. Raises ConfigError for one of which only rows are to come that the
    connector begins with: without them the target would lack rows."""
    there = [one.place for one in progress.tables if one.asked is not None]
    chosen = [*asked] or [*dict.fromkeys((*there, *every))]
    first = {one.place for one in progress.tables if one.asked is None}
    owed = [".".join(one) for one in chosen if one in first and one not in there]
    if owed and (asked or not there):
        raise ConfigError(
            f"Rows of table {owed[0]} are still to come for which nobody has asked: they were there when its changes"
            " began, and without them the target would lack rows",
            where=where,
            next_step="To go without them, take the table out of `tables`. What was asked for since the last run can be"
            " cancelled after the next one",
        )
    return chosen
