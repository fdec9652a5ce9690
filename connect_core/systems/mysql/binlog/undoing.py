"""What a transaction undoes of itself. Pure.

A server leaves rows in its log that were rolled back, where the transaction has also done what cannot be undone (a
temporary table, a table without transactions), and says ROLLBACK behind them. Rows of tables whose engine has no
transactions stand then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from enum import Enum

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.log_events import LogEvent
from connect_core.systems.mysql.binlog.statements import Does, Statement, statement
from connect_core.systems.mysql.binlog.table_names import TableName

RollsBack = Callable[[TableName], bool | None]
"""Whether the engine of a table has transactions; None where nobody can say."""


class Fate(Enum):
    STANDS = "is kept"
    UNDONE = "undone"
    UNKNOWN = "unknown"


class Undoing:
    """Of one transaction that begins at this offset. Its statements are told in the order of the log."""

    def __init__(self, begin: int, rolls_back: RollsBack) -> None:
        self.begin = begin
        self._rolls_back = rolls_back
        self._savepoints: dict[str, int] = {}
        self._from: list[int] = []
        self._until: list[int] = []
        self._is_cut_off = False

    @property
    def is_any(self) -> bool:
        return self._is_cut_off or bool(self._from)

    def tell(self, said: Statement, at: int) -> None:
        """What the statement at this offset does to what is before it."""
        if said.does is Does.SAVES:
            self._savepoints.pop(said.savepoint, None)
            self._savepoints[said.savepoint] = at
        elif said.does is Does.ROLLS_BACK:
            self._undo(self.begin, at)
        elif said.does is Does.ROLLS_BACK_A_PART:
            self._undo(self._back_to(said.savepoint), at)

    def cut_off(self) -> None:
        """The server has crashed within it."""
        self._is_cut_off = True

    def fate(self, offset: int, table: TableName) -> Fate:
        """Of a row at this offset."""
        if self._is_cut_off:
            return Fate.UNDONE
        place = bisect_right(self._from, offset) - 1
        if place < 0 or offset >= self._until[place]:
            return Fate.STANDS
        return {True: Fate.UNDONE, False: Fate.STANDS, None: Fate.UNKNOWN}[self._rolls_back(table)]

    def _back_to(self, name: str) -> int:
        """One that the log does not have was set before the first change. Later ones are gone, and it stays."""
        while self._savepoints:
            last, at = self._savepoints.popitem()
            if last == name:
                self._savepoints[name] = at
                return at
        return self.begin

    def _undo(self, begin: int, end: int) -> None:
        while self._from and self._from[-1] >= begin:
            self._from.pop()
            self._until.pop()
        self._from.append(begin)
        self._until.append(end)


_COMMITS = (log_events.XID, log_events.XA_PREPARE)
_CUTS_OFF = (log_events.ROTATE, log_events.FORMAT)
_STATEMENTS = (log_events.QUERY, log_events.QUERY_COMPRESSED)
_ENDS = (Does.COMMITS, Does.ROLLS_BACK)


def look_ahead(events: Iterator[LogEvent], undoing: Undoing, offset: Callable[[LogEvent], int]) -> Iterator[None]:
    """Tells what is left of the transaction, and decodes no row. Gives after each event, and ends where that ends.
    `offset` is of an event's begin."""
    for event in events:
        if event.kind in _CUTS_OFF:
            undoing.cut_off()
        if event.kind in (*_COMMITS, *_CUTS_OFF, *log_events.BEGINS):
            return
        if event.kind in _STATEMENTS:
            said = statement(log_events.query(event), lambda name: False)
            undoing.tell(said, offset(event))
            if said.does in _ENDS:
                return
        yield
