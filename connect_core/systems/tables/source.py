"""Rows of a table, each once, by a column of ascending numbers.

An offset is such a number; one without a row is no loss. A row may be changed or deleted after it was read, so nothing
of it is evidence: a position knows which table it is of, and no more. Up to where there is nothing that may still come:
`finality`. How one asks is the system's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from connect_core import clock
from connect_core.errors import ConfigError, DataError, Retriable, WaybillError
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.values import (
    ORIGIN,
    Bounds,
    Gap,
    Json,
    Limit,
    Position,
    Range,
    SourceBatch,
)
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.finality import Finality, OpenTransaction
from connect_core.systems.tables.options import TableSourceOptions
from connect_core.systems.tables.pages import MOST_BYTES, MOST_ROWS, Page, batch_of, unfit_numbers

NUMBERING = "numbering"
"""In the evidence of a position: `NumberedTable.numbering` when it was reached."""
_AGAIN_S = 0.05
"""Between two looks whether transactions have ended."""


class TableChanged(Retriable):
    """The table is not the one that the range was planned for. Nothing of it was delivered; the next plan looks at
    it."""


class NumberedTable(Protocol):
    @property
    def origin(self) -> str:
        """Names this column of this table, and nothing that replaces one of them (`sdk.values.ORIGIN`)."""

    @property
    def id(self) -> str:
        """The column by which new rows are found."""

    @property
    def numbering(self) -> str:
        """Another text when the numbers are given out by another sequence, or by one that was restarted."""


T = TypeVar("T", bound=NumberedTable)


class NumberedRows(ABC, Generic[T]):
    """A `sdk.source.Source`. What asks the database raises what is raised within `understood`."""

    def __init__(self, options: TableSourceOptions, table: str, where: str, resources: ExitStack | None = None) -> None:
        self._looks = options
        self._partition = Partition(table)
        self._where = where
        self._database = KeptConnection(self.connect, self.understood)
        self._final: tuple[str, Finality] = ("", Finality())
        """Of the table with this origin."""
        if resources is not None:
            resources.callback(self._database.close)

    @abstractmethod
    def connect(self) -> Any:
        """A connection of the database's driver."""

    @abstractmethod
    def understood(self) -> AbstractContextManager[None]:
        """Raises what driver and worker know instead of what the driver of the database raises."""

    @abstractmethod
    def table(self, asking: Any) -> T:
        """The table now, if rows of it can be read and none is lost."""

    @abstractmethod
    def as_it_is(self, asking: Any) -> AbstractContextManager[T]:
        """The table at one moment: it is neither dropped nor changed meanwhile."""

    @abstractmethod
    def extent(self, asking: Any, table: T) -> tuple[int | None, int | None]:
        """The lowest and the highest number that are committed; None of an empty table."""

    @abstractmethod
    def writers(self, asking: Any, table: T) -> list[OpenTransaction]:
        """Transactions that may bring a row with a number that was given out before this is asked."""

    @abstractmethod
    def stands_at(self, asking: Any, table: T) -> int | None:
        """The highest number that was given out; None where nobody can say."""

    @abstractmethod
    def set_back(self, table: T, stands_at: int, end: int) -> DataError:
        """What is said where numbers before `end` were read, or are there, and lower ones come next."""

    @abstractmethod
    def page(self, asking: Any, table: T, begin: int, end: int, most: int, most_bytes: int) -> Page:
        """Rows of [begin, end) in the order of their numbers, until there are `most`, or their bytes reach
        `most_bytes`."""

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return [self._partition]

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """Waits for transactions that are open. A partition of another table is retired.

        Nothing grows: up to where a live range was read, only its reader would know, and a later process may know less
        (a transaction is open, the newest rows are deleted). So each range has an end below which nothing comes."""
        return {one: self._bounds(at) if one == self._partition else Bounds.unread(at) for one, at in known.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError("A table does not say when its rows came", next_step="Name numbers of rows instead of a time")

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        place, left, left_bytes = wanted.begin, wanted.max_records, wanted.max_bytes
        while place < wanted.end and left > 0 and left_bytes > 0 and limit.quantum_left_s() > 0:
            batch = self._page(wanted, place, wanted.end, left, left_bytes)
            yield batch
            place = batch.next_offset
            left -= len(batch.records)
            left_bytes -= int(value_lengths(batch.records.column("value")).sum())

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        until = clock.monotonic() + limit_s
        before = [one for partition, one in seen.items() if partition == self._partition]
        while (left_s := until - clock.monotonic()) > 0:
            clock.sleep(min(self._looks.every_s, left_s))
            if any(map(self._moved, before)):
                return

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """Never asked for: no range of a table is live (`Bounds.grows`)."""
        return iter(())

    def evidence(self, wanted: Range, end: int) -> Json:
        return wanted.evidence

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """A table keeps no account of its readers."""

    def _bounds(self, at: Position | None) -> Bounds:
        table, final = self._settled()
        with self._database.asking() as asking:
            lowest, _ = self.extent(asking, table)
            stands_at = self.stands_at(asking, table)
        if wrong := unfit_numbers(lowest, final.end):
            raise ConfigError(wrong, where=self._where, next_step="Name another column as incrementing")
        incarnation, begin, gaps = _continued(table, at, min(lowest or 0, final.end))
        end = max(begin, final.end)
        self._check_numbers(table, stands_at, end)
        oldest = begin if lowest is None else min(lowest, begin)
        partial = begin == end and final.end < final.newest  # of what has something, the rest is for the next run
        evidence = {ORIGIN: table.origin, NUMBERING: table.numbering}
        return Bounds(incarnation, begin, oldest, end, evidence, gaps, grows=False, partial=partial)

    def _settled(self) -> tuple[T, Finality]:
        """Waits until nothing may come any more below what is there now, or for as long as the document says."""
        until = clock.monotonic() + self._looks.open_transactions_s
        table, final = self._look()
        newest = final.newest
        while final.end < newest and clock.monotonic() < until:
            clock.sleep(_AGAIN_S)
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
        """Whether there is more now, or another table; also where nobody can say."""
        try:
            table, final = self._look()
        except WaybillError:
            return True
        return final.end > seen.end or table.origin != seen.evidence.get(ORIGIN)

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        with self._database.asking() as asking, self.as_it_is(asking) as table:
            if table.origin != wanted.origin or not _numbered_as_before(table, wanted.evidence):
                raise TableChanged(
                    "The table was made again, or its numbers were restarted, after this range was planned",
                    where=f"{self._where}, {table.id} {begin:,}",
                    next_step="The next run reports what was lost",
                )
            sizes = (min(most, MOST_ROWS), min(most_bytes, MOST_BYTES))
            found = self.page(asking, table, begin, end, *sizes)
        return batch_of(found, begin, end, self._where)

    def _check_numbers(self, table: T, stands_at: int | None, end: int) -> None:
        """The next rows would come where nobody looks any more."""
        if stands_at is not None and stands_at < end - 1:
            raise self.set_back(table, stands_at, end)


def _continued(table: NumberedTable, at: Position | None, first: int) -> tuple[int, int, tuple[Gap, ...]]:
    """The incarnation, where reading continues, and what was lost with a former table, or its former rows."""
    if at is None:
        return 0, first, ()
    if at.evidence.get(ORIGIN, table.origin) != table.origin:
        return at.incarnation + 1, first, (Gap(at.incarnation, at.offset, None, "recreated"),)
    if not _numbered_as_before(table, at.evidence):
        reason = f"the sequence of column {table.id} was restarted or altered"
        return at.incarnation + 1, first, (Gap(at.incarnation, at.offset, None, reason),)
    return at.incarnation, at.offset, ()


def _numbered_as_before(table: NumberedTable, evidence: Json) -> bool:
    """Where a sequence was restarted (TRUNCATE … RESTART IDENTITY), more new rows than were read may be there by now:
    no number tells."""
    return bool(evidence.get(NUMBERING, table.numbering) == table.numbering)
