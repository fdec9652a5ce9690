"""Rows of a table, all of them, again and again.

A pass reads the rows that are there, in the order of their numbers, and these are its offsets; it is an incarnation of
its own. Of a table without numbers each of its stretches is one (`stretches`). A run finishes the pass that another one
has begun, and begins one more. While it lasts it begins the next one when its document says so. Each row comes as it is
when its page is read.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple, Self

from connect_core import clock
from connect_core.sdk.values import ORIGIN, Bounds, Gap, Json, Position, Range
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.passes import Among
from connect_core.systems.tables.queries import why_another
from connect_core.systems.tables.reading import Looks, T, TableRows
from connect_core.systems.tables.stretches import PassStretch

_TABLE, _TOKEN = "table", "pass"


class WholePass(NamedTuple):
    """`table` is the origin of the table that its rows are of; `token` tells the pass from all others: a ledger that
    was restored counts other ones by the same numbers. `stretch` are the rows that it reads now."""

    table: str
    token: str
    stretch: PassStretch

    @classmethod
    def of(cls, evidence: Json) -> Self | None:
        """None of a position that knows none: nothing was read yet, or in another mode."""
        if _TOKEN not in evidence:
            return None
        return cls(evidence[_TABLE], evidence[_TOKEN], PassStretch.of(evidence))

    @property
    def evidence(self) -> Json:
        named = f"{self.table}/{self.token}{self.stretch.named}"
        return {
            ORIGIN: hashlib.blake2b(named.encode(), digest_size=8).hexdigest(),
            _TABLE: self.table,
            _TOKEN: self.token,
            **self.stretch.evidence,
        }

    def is_over(self, at: Position) -> bool:
        return at.offset >= self.stretch.end and not self.stretch.has_more_behind


class WholeTable(TableRows[T]):
    def __init__(
        self,
        options: Looks,
        table: str,
        where: str,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        super().__init__(options, table, where, resources, database)
        self._found = ""
        """The token of the pass that was the last one when this was asked first."""
        self._asked = False
        self._done: tuple[str, float] = ("", 0.0)
        """The token of the last pass that was seen to be done, and when, by the monotonic clock."""

    def _bounds(self, at: Position | None) -> Bounds:
        last_pass = WholePass.of(at.evidence) if at else None
        if not self._asked:
            self._asked, self._found = True, _token(last_pass)
        with self._database.asking() as asking:
            table = self.table(asking)
            if at and last_pass and not last_pass.is_over(at):
                if last_pass.table != table.origin:
                    reason = why_another(last_pass.table, table.origin, is_query=table.is_query)
                    lost = Gap(at.incarnation, at.offset, None, reason)
                    return Bounds(at.incarnation + 1, 0, 0, 0, gaps=(lost,), grows=False)
                if rest := self._rest_of(asking, table, last_pass, at):
                    return rest
            first = self._stretch(asking, table)
        if first is None or not self._is_due(last_pass):
            return Bounds.unread(at)
        begun = _bounds_of(WholePass(table.origin, secrets.token_hex(8), first), at)
        return replace(begun, later=_token(last_pass) != self._found)

    def _rest_of(self, asking: Any, table: T, last_pass: WholePass, at: Position) -> Bounds | None:
        """None where it has come to its end: the rows that it had left were deleted."""
        if at.offset < last_pass.stretch.end:
            return last_pass.stretch.bounds(at)
        following = self._stretch(asking, table, None, last_pass.stretch.until)
        return following and _bounds_of(last_pass._replace(stretch=following), at)

    def _is_due(self, last_pass: WholePass | None) -> bool:
        """The first one of this run is."""
        if last_pass is None or last_pass.token == self._found:
            return True
        if last_pass.token != self._done[0]:
            self._done = last_pass.token, clock.monotonic()
        return clock.monotonic() - self._done[1] >= self._looks.every_s

    def _moved(self, seen: Bounds) -> bool:
        """Whoever asks has waited for `every_s`."""
        return True

    def _is_as_planned(self, table: T, wanted: Range) -> bool:
        planned = WholePass.of(wanted.evidence)
        return planned is not None and planned.table == table.origin

    def _among(self, wanted: Range) -> Among:
        planned = WholePass.of(wanted.evidence)
        return Among(stretch=planned.stretch if planned else None)


def _token(one: WholePass | None) -> str:
    return one.token if one else ""


def _bounds_of(begun: WholePass, at: Position | None) -> Bounds:
    """Of a stretch that is an incarnation of its own, behind what was read before."""
    return begun.stretch.bounds(Position(at.incarnation + 1 if at else 0, begun.stretch.first, begun.evidence))
