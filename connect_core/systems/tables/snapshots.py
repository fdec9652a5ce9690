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


class SnapshotProgress(NamedTuple):
    """Of which tables rows are still to come, and of the first one behind which key."""

    tables: tuple[Place, ...] = ()
    after: Key | None = None

    def behind(self, last: Key | None) -> SnapshotProgress:
        """When rows up to this key have come; None: when the first table has no more."""
        return SnapshotProgress(self.tables if last else self.tables[1:], last)

    def later(self, count: int = 1) -> SnapshotProgress:
        """When so many tables in front are read behind the others, from their begin."""
        return SnapshotProgress((*self.tables[count:], *self.tables[:count])) if count else self

    def with_more(self, tables: tuple[Place, ...]) -> SnapshotProgress:
        """A table that is being read is read once more behind the others."""
        return self._replace(tables=(*self.tables, *tables))

    def as_json(self) -> Json:
        return {"tables": [[*one] for one in self.tables], "after": None if self.after is None else [*self.after]}

    @classmethod
    def parse(cls, given: Json) -> SnapshotProgress:
        after = given["after"]
        return cls(tuple((schema, table) for schema, table in given["tables"]), None if after is None else (*after,))


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
    due: Iterable[tuple[int, Place]], described: Callable[[Place], T]
) -> tuple[Readable[T] | None, Failure | None]:
    """Of tables with their numbers; and why the first one cannot be read that is before it. None where none can."""
    unfit: Failure | None = None
    for number, place in due:
        try:
            return Readable(number, described(place)), unfit
        except (ConfigError, Refused) as error:
            unfit = unfit or Failure.of(error)
    return None, unfit


def still_to_come(progress: SnapshotProgress, why: str) -> str:
    """Of a look that could not write all."""
    first, others = ".".join(progress.tables[0]), len(progress.tables) - 1
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
