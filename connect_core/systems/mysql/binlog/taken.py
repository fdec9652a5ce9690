"""Changes that were read, and that no batch has yet. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.binlog.undoing import Fate, Undoing
from connect_core.systems.tables.change_events import Event
from connect_core.systems.tables.taken_events import TakenEvents

_UNKNOWN = (
    "Its transaction was rolled back. Whether that undid it depends on the engine of its table, which cannot be seen"
)


@dataclass
class TakenChanges(TakenEvents):
    """`tables` are those of rows of the open transaction, by the offset of the first one of each event."""

    tables: list[tuple[int, TableName | None]] = field(default_factory=list)

    def belongs(self, number: int, table: TableName | None) -> None:
        """From this offset on changes are of that table; None: of what is no row."""
        if number < self.first:
            self.tables.clear()  # it was delivered before
        self.tables.append((number, table))

    def begins(self) -> None:
        """A transaction."""
        self.tables.clear()

    def leave_out(self, undoing: Undoing) -> None:
        """What the transaction has undone."""
        if undoing.is_any:
            begin = self.before(undoing.begin)
            numbers, events = self.numbers[begin:], self.events[begin:]
            self.forget(undoing.begin)
            for number, event in zip(numbers, events, strict=True):
                if (kept := as_it_stands(undoing, number, self._table_at(number), event)) is not None:
                    self.add(number, kept)
        self.tables.clear()

    def _table_at(self, number: int) -> TableName | None:
        place = bisect_right(self.tables, number, key=lambda one: one[0]) - 1
        return self.tables[place][1] if place >= 0 else None


def as_it_stands(undoing: Undoing, number: int, table: TableName | None, event: Event) -> Event | None:
    """None for a change that was undone."""
    fate = undoing.fate(number, table) if table is not None else Fate.STANDS
    if fate is Fate.UNDONE:
        return None
    return event if fate is Fate.STANDS else event._replace(unfit=_UNKNOWN)
