"""Rows of a table, new ones and those that were changed, by a column with the time of their last change.

They are read in passes (`passes`). Up to which time a pass may go is what the database's clock says, less a delay, once
all transactions have ended that were open then: `finality`, which counts seconds here. What it says never goes back,
and nor may the clock.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from connect_core import clock
from connect_core.sdk.values import Bounds, Gap, Position, Range
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.finality import Finality
from connect_core.systems.tables.passes import Among, Pass, TimeWindow, second_behind, settled_second
from connect_core.systems.tables.queries import why_another
from connect_core.systems.tables.reading import Looks, T, TableRows
from connect_core.systems.tables.source import AGAIN_S, HELD_UP

_CLOCK_WENT_BACK = (
    "the clock of the database went back behind times of rows that were read: all rows are read again, since some may"
    " have been changed with times before those"
)


class DelayedLooks(Looks, Protocol):
    @property
    def delay_s(self) -> float:
        """Seconds for which a time may be older than what shows that its writer writes."""


class _Look(NamedTuple):
    now: float
    """What the clock of the database said."""
    final: int
    """Before this second no time is written any more."""


class ChangedRows(TableRows[T]):
    def __init__(
        self,
        options: DelayedLooks,
        table: str,
        where: str,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        super().__init__(options, table, where, resources, database)
        self._delay_s = options.delay_s
        self._final, self._last_origin, self._last_now = Finality(), "", 0.0
        self._began = 0
        """The second at which this was asked first: what has a later time came after that."""

    @abstractmethod
    def now(self, asking: Any, table: T) -> float:
        """Seconds since 1970 by the clock of the database. Whoever waits for a lock of the table then, as its writers
        must, has it when this returns."""

    def _bounds(self, at: Position | None) -> Bounds:
        table, look = self._look()
        done = Pass.of(at.evidence) if at else None
        if at and done and done.table != table.origin:
            reason = why_another(done.table, table.origin, is_query=table.is_query)
            lost = Gap(at.incarnation, at.offset, None, reason)
            return replace(self._next(at, None, *self._settled(table, look)), gaps=(lost,))
        if at and done and at.offset < done.stretch.end:
            return done.stretch.bounds(at)
        if at and done and done.stretch.has_more_behind and (rest := self._rest_of(table, done, at)):
            return rest
        if at and done and look.now < done.window.end:
            told = Gap(at.incarnation, at.offset, at.offset, _CLOCK_WENT_BACK, warns=True)
            return Bounds(at.incarnation + 1, 0, 0, 0, gaps=(told,), grows=False)
        return self._next(at, done, *self._settled(table, look))

    def _next(self, at: Position | None, done: Pass | None, table: T, look: _Look, held: bool) -> Bounds:
        """The pass behind the one that is done, if there is a row for it."""
        window, waits = TimeWindow(done.window.end if done else None, look.final), HELD_UP if held else ""
        with self._database.asking() as asking:
            first = self._stretch(asking, table, window)
        if first is None:
            place = at or Position(0, 0)
            return replace(Bounds.unread(place), partial=held, waits=waits)
        return replace(self._begun(Pass(table.origin, window, first), at), waits=waits)

    def _rest_of(self, table: T, done: Pass, at: Position) -> Bounds | None:
        """Of the window that is read: None where there is no row of it any more behind the stretch that is done."""
        with self._database.asking() as asking:
            following = self._stretch(asking, table, done.window, done.stretch.until)
        return following and self._begun(done._replace(stretch=following), at)

    def _begun(self, begun: Pass, at: Position | None) -> Bounds:
        there = begun.stretch.bounds(Position(at.incarnation + 1 if at else 0, begun.stretch.first, begun.evidence))
        return replace(there, later=begun.window.begin is not None and begun.window.begin >= self._began)

    def _settled(self, table: T, look: _Look) -> tuple[T, _Look, bool]:
        """Waits until no time is written any more before this was asked first, or for as long as the document says. And
        whether that holds rows up."""
        if look.final >= self._began or self._extent(table, TimeWindow(look.final, self._began))[0] is None:
            return table, look, False
        until = min(self.patient_until, clock.monotonic() + self._looks.patience_s)
        while look.final < self._began and clock.monotonic() < until:
            clock.sleep(AGAIN_S)
            table, look = self._look()
        return table, look, look.final < self._began

    def _look(self) -> tuple[T, _Look]:
        with self._database.asking() as asking:
            table = self.table(asking)
            now = self.now(asking, table)
            if table.origin != self._last_origin or now < self._last_now - self._delay_s:
                self._final = Finality()
            self._last_origin, self._last_now = table.origin, now
            self._began = self._began or second_behind(now)
            final = settled_second(now, self._delay_s)
            self._final.look(final - 1, self.writers(asking, table))  # behind what the clock said
        return table, _Look(now, self._final.end)

    def _extent(self, table: T, window: TimeWindow) -> tuple[int | None, int | None]:
        with self._database.asking() as asking:
            return self.extent(asking, table, window)

    def _moved(self, seen: Bounds) -> bool:
        table, look = self._look()
        done = Pass.of(seen.evidence)
        if done and (table.origin != done.table or look.now < done.window.end or done.stretch.has_more_behind):
            return True
        return self._extent(table, TimeWindow(done.window.end if done else None, look.final))[0] is not None

    def _is_as_planned(self, table: T, wanted: Range) -> bool:
        planned = Pass.of(wanted.evidence)
        return planned is not None and planned.table == table.origin

    def _among(self, wanted: Range) -> Among:
        planned = Pass.of(wanted.evidence)
        return Among(planned.window, planned.stretch) if planned else Among()
