"""Rows of a table, each once, by a column of ascending numbers.

An offset is such a number. A row may be changed or deleted after it was read, so nothing of it is evidence: a position
knows which table it is of, and what was seen of its numbers (`set_back`). Up to where there is nothing that may still
come: `finality`.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack
from typing import Any

from connect_core import clock
from connect_core.errors import ConfigError, DataError
from connect_core.sdk.values import ORIGIN, Bounds, Gap, Json, Position, Range
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.finality import Finality
from connect_core.systems.tables.pages import unfit_numbers
from connect_core.systems.tables.passes import Among
from connect_core.systems.tables.queries import why_another
from connect_core.systems.tables.reading import Looks, NumberedTable, T, TableRows
from connect_core.systems.tables.set_back import SetBack, reached

NUMBERING = "numbering"
"""In the evidence of a position: `NumberedTable.numbering` when it was reached."""
HELD_UP = (
    "rows that are there wait for transactions that are still open, which may bring others before them; a later run"
    " brings them (how many transactions: waybill check --probe)"
)
AGAIN_S = 0.05
"""Between two looks whether transactions have ended."""


class NumberedRows(TableRows[T]):
    def __init__(
        self,
        options: Looks,
        table: str,
        where: str,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        super().__init__(options, table, where, resources, database)
        self._final: tuple[str, Finality] = ("", Finality())
        """Of the table with this origin."""

    @abstractmethod
    def stands_at(self, asking: Any, table: T) -> int | None:
        """The highest number that was given out; None where nobody can say."""

    @abstractmethod
    def set_back(self, table: T, stands_at: int, end: int) -> DataError:
        """What is said where numbers before `end` were read, or are there, and lower ones come next."""

    def _bounds(self, at: Position | None) -> Bounds:
        table, final = self._settled()
        with self._database.asking() as asking:
            lowest, highest = self.extent(asking, table)
            stands_at = self.stands_at(asking, table)
        if wrong := unfit_numbers(lowest, final.end):
            raise ConfigError(wrong, where=self._where, next_step="Name another column as incrementing")
        incarnation, begin, gaps = _continued(table, at, min(lowest or 0, final.end))
        if at and not gaps and stands_at is not None:
            if seen := SetBack.seen(at, max(stands_at, highest or 0)):
                return seen.kept(at, table.id)
            self._check_passed_over(table, at, stands_at)
        end = max(begin, final.end)
        self._check_numbers(table, stands_at, end)
        oldest = begin if lowest is None else min(lowest, begin)
        partial = begin == end and final.end < final.newest  # of what has something, the rest is for the next run
        evidence = {ORIGIN: table.origin, NUMBERING: table.numbering}
        waits = HELD_UP if end < final.newest else ""
        return Bounds(incarnation, begin, oldest, end, evidence, gaps, grows=False, partial=partial, waits=waits)

    def _settled(self) -> tuple[T, Finality]:
        """Waits until nothing may come any more below what is there now, or for as long as the document says."""
        until = min(self.patient_until, clock.monotonic() + self._looks.patience_s)
        table, final = self._look()
        newest = final.newest
        while final.end < newest and clock.monotonic() < until:
            clock.sleep(AGAIN_S)
            table, final = self._look()
        return table, final

    def _look(self) -> tuple[T, Finality]:
        with self._database.asking() as asking:
            table = self.table(asking)
            if self._final[0] != table.origin:
                self._final = (table.origin, Finality())
            final = self._final[1]
            _, highest = self.extent(asking, table)  # first, in a statement of its own
            final.look(highest, self.writers(asking, table))
        return table, final

    def _moved(self, seen: Bounds) -> bool:
        table, final = self._look()
        return final.end > seen.end or table.origin != seen.evidence.get(ORIGIN)

    def _is_as_planned(self, table: T, wanted: Range) -> bool:
        return table.origin == wanted.origin and _numbered_as_before(table, wanted.evidence)

    def evidence(self, wanted: Range, end: int) -> Json:
        return reached(wanted.evidence, end) if end > wanted.begin else wanted.evidence

    def _check_passed_over(self, table: T, at: Position, stands_at: int) -> None:
        """Whether a row came below the position since the numbers went back, which they show no more."""
        noted = SetBack.of(at)
        if noted is None or stands_at < at.offset - 1:
            return
        with self._database.asking() as asking, self.as_it_is(asking) as now:
            found = self.page(asking, now, noted.stood_at + 1, at.offset, 1, 1, Among())
        if numbers := [row[0] for row in found.rows] + [row.id for row in found.unfit]:
            raise noted.passed_over(table.id, min(numbers), self._where)

    def _check_numbers(self, table: T, stands_at: int | None, end: int) -> None:
        """The next rows would come where nobody looks any more."""
        if stands_at is not None and stands_at < end - 1:
            raise self.set_back(table, stands_at, end)


def _continued(table: NumberedTable, at: Position | None, first: int) -> tuple[int, int, tuple[Gap, ...]]:
    """The incarnation, where reading continues, and what was lost with a former table, or its former rows."""
    if at is None:
        return 0, first, ()
    if (before := at.evidence.get(ORIGIN, table.origin)) != table.origin:
        reason = why_another(before, table.origin, is_query=table.is_query)
        return at.incarnation + 1, first, (Gap(at.incarnation, at.offset, None, reason),)
    if not _numbered_as_before(table, at.evidence):
        reason = f"the sequence of column {table.id} was restarted or altered"
        return at.incarnation + 1, first, (Gap(at.incarnation, at.offset, None, reason),)
    return at.incarnation, at.offset, ()


def _numbered_as_before(table: NumberedTable, evidence: Json) -> bool:
    """Where a sequence was restarted (TRUNCATE … RESTART IDENTITY), more new rows than were read may be there by now:
    no number tells."""
    return bool(evidence.get(NUMBERING, table.numbering) == table.numbering)
