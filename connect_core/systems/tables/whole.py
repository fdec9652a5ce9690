"""Rows of a table, all of them, again and again.

A pass reads the rows that are there, in the order of their numbers, and these are its offsets; it is an incarnation of
its own. A run finishes the pass that another one has begun, and begins one more. While it lasts it begins the next one
when its document says so. Each row comes as it is when its page is read.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple, Self

from connect_core import clock
from connect_core.errors import ConfigError
from connect_core.sdk.values import ORIGIN, Bounds, Gap, Json, Position, Range
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.options import TableSourceOptions
from connect_core.systems.tables.pages import unfit_numbers
from connect_core.systems.tables.queries import why_another
from connect_core.systems.tables.reading import T, TableRows

_TABLE, _TOKEN, _FIRST, _END = "table", "pass", "first", "end"


class WholePass(NamedTuple):
    """Rows have numbers in [first, end). `table` is the origin of the table that they are of; `token` tells the pass
    from all others: a ledger that was restored counts other ones by the same numbers."""

    table: str
    token: str
    first: int
    end: int

    @classmethod
    def of(cls, evidence: Json) -> Self | None:
        """None of a position that knows none: nothing was read yet, or in another mode."""
        if _TOKEN not in evidence:
            return None
        return cls(evidence[_TABLE], evidence[_TOKEN], evidence[_FIRST], evidence[_END])

    @property
    def evidence(self) -> Json:
        named = f"{self.table}/{self.token}"
        return {
            ORIGIN: hashlib.blake2b(named.encode(), digest_size=8).hexdigest(),
            _TABLE: self.table,
            _TOKEN: self.token,
            _FIRST: self.first,
            _END: self.end,
        }


class WholeTable(TableRows[T]):
    def __init__(
        self,
        options: TableSourceOptions,
        table: str,
        where: str,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        super().__init__(options, table, where, resources, database)
        self._found: WholePass | None = None
        """The pass that was the last one when this was asked first."""
        self._asked = False
        self._done: tuple[str, float] = ("", 0.0)
        """The token of the last pass that was seen to be done, and when, by the monotonic clock."""

    def _bounds(self, at: Position | None) -> Bounds:
        with self._database.asking() as asking:
            table = self.table(asking)
            first, last = self.extent(asking, table)
        last_pass = WholePass.of(at.evidence) if at else None
        if not self._asked:
            self._asked, self._found = True, last_pass
        if at and last_pass and at.offset < last_pass.end:
            if last_pass.table == table.origin:
                return _rest_of(last_pass, at)
            reason = why_another(last_pass.table, table.origin, is_query=table.is_query)
            lost = Gap(at.incarnation, at.offset, None, reason)
            return Bounds(at.incarnation + 1, 0, 0, 0, gaps=(lost,), grows=False)
        if first is None or last is None or not self._is_due(last_pass):
            return Bounds.unread(at)
        if wrong := unfit_numbers(first, last + 1):
            raise ConfigError(wrong, where=self._where, next_step="Name another column as incrementing")
        begun = WholePass(table.origin, secrets.token_hex(8), first, last + 1)
        there = _rest_of(begun, Position(at.incarnation + 1 if at else 0, first, begun.evidence))
        return replace(there, later=last_pass != self._found)

    def _is_due(self, last_pass: WholePass | None) -> bool:
        """The first one of this run is."""
        if last_pass is None or last_pass == self._found:
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


def _rest_of(begun: WholePass, at: Position) -> Bounds:
    end = max(at.offset, begun.end)
    return Bounds(at.incarnation, at.offset, min(begun.first, at.offset), end, at.evidence, grows=False)
