"""Rows of a table as records, whichever of them are new: what the modes of a table source have in common.

An offset is the number of a row; one without a row is no loss. How one asks is the system's (`TableRows`), and so is
what of a table is read: new rows (`source`), or those that were changed (`changed`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from connect_core import clock
from connect_core.errors import ConfigError, Retriable, WaybillError
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.values import Bounds, Gap, Json, Limit, Position, Range, SourceBatch
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.pages import (
    MOST_BYTES,
    MOST_ROWS,
    Page,
    Row,
    RowsOf,
    batch_of,
    record_batch,
    unfit_numbers,
)
from connect_core.systems.tables.passes import Among, TimeWindow
from connect_core.systems.tables.snapshots import Key
from connect_core.systems.tables.stretches import STRETCH_BYTES, STRETCH_ROWS, PassStretch


class TableChanged(Retriable):
    """The table is not the one that the range was planned for. Nothing of it was delivered; the next plan looks at
    it."""


class NumberedTable(Protocol):
    @property
    def origin(self) -> str:
        """Names what is read of this table, by which columns, and nothing that replaces one of them
        (`sdk.values.ORIGIN`)."""

    @property
    def id(self) -> str:
        """The column that numbers its rows; empty where their keys do."""

    @property
    def is_query(self) -> bool:
        """Whether its rows are those of a query."""

    @property
    def is_keyed(self) -> bool:
        """Whether digests of their keys are the numbers of its rows (`stretches`)."""

    @property
    def numbering(self) -> str:
        """Another text when the numbers are given out by another sequence, or by one that was restarted."""


class Looks(Protocol):
    """When one looks for rows."""

    @property
    def every_s(self) -> float:
        """Seconds between two looks."""

    @property
    def patience_s(self) -> float:
        """For so long a run waits for transactions that are open."""


T = TypeVar("T", bound=NumberedTable)
_SERVER = "server"
"""In the evidence of a position: `ServerNames` when it was reached."""


class ServerNames(NamedTuple):
    """By what a server is told from another one whose tables look alike. It is the same one while it has one of both: a
    standby takes over under the address of the former server, and a server gets another address."""

    address: str
    uid: str
    """As the server calls itself; empty: it does not."""

    def are_of(self, evidence: Json) -> bool:
        """Whether a position was reached there; an earlier version did not note it."""
        said = evidence.get(_SERVER)
        if said is None:
            return True
        before = ServerNames(*said)
        return self.address == before.address or bool(self.uid and self.uid == before.uid)


class _Place(NamedTuple):
    """Where the next page of a range begins, and what the range may still hold."""

    offset: int
    records: int
    bytes: int

    def is_in(self, wanted: Range) -> bool:
        return self.offset < wanted.end and self.records > 0 and self.bytes > 0

    def behind(self, batch: SourceBatch) -> _Place:
        taken = int(value_lengths(batch.records.column("value")).sum())
        records = self.records - len(batch.records) - len(batch.rejects)
        return _Place(batch.next_offset, records, self.bytes - taken)


class _TimedPage(NamedTuple):
    batch: SourceBatch
    took_s: float


class SourceOfTables:
    """What each of them answers. A partition is SCHEMA.TABLE, the topic of its records TABLE, and none of its ranges
    grows."""

    def topic(self, partition: Partition) -> str:
        return partition.key.rpartition(".")[2]

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """Never asked for: no range of a table is live (`Bounds.grows`)."""
        return iter(())

    def evidence(self, wanted: Range, end: int) -> Json:
        return wanted.evidence

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """A table keeps no account of its readers."""


class TableRows(SourceOfTables, ABC, Generic[T]):
    """A `sdk.source.Source`. What asks the database raises what is raised within `understood`."""

    def __init__(
        self,
        options: Looks,
        table: str,
        where: str,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        self._looks = options
        self._partition = Partition(table)
        self._where = where
        self._database = database or KeptConnection(self.connect, self.understood)
        self.patient_until = math.inf
        """By the monotonic clock: then it waits for no open transaction any more."""
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

    def server(self, asking: Any) -> ServerNames | None:
        """None where tables of two servers are told apart by themselves."""
        return None

    @abstractmethod
    def as_it_is(self, asking: Any) -> AbstractContextManager[T]:
        """The table at one moment: it is neither dropped nor changed meanwhile."""

    @abstractmethod
    def extent(self, asking: Any, table: T, window: TimeWindow | None = None) -> tuple[int | None, int | None]:
        """The lowest and the highest number that are committed, of rows in `window`; None where there is no row. Of
        rows that are numbered by their keys it only says whether there is one."""

    def key_stretch(
        self, asking: Any, table: T, window: TimeWindow | None, after: Key | None, most: int
    ) -> PassStretch | None:
        """Of rows that are numbered by their keys, and in `window`, the next ones with a key behind `after`, so many;
        None where there are none. Not asked for where no table `is_keyed`."""
        return None

    def are_apart(self, asking: Any, table: T, among: Among) -> bool:
        """Whether no two of these rows have one number, of rows that are numbered by their keys."""
        return True

    @abstractmethod
    def writers(self, asking: Any, table: T) -> list[OpenTransaction]:
        """Transactions that may bring a row with a number, or a time, that was given out before this is asked."""

    @abstractmethod
    def page(self, asking: Any, table: T, begin: int, end: int, most: int, most_bytes: int, among: Among) -> Page:
        """Of the rows that are meant those of [begin, end) in the order of their numbers, until there are `most`, or
        their bytes reach `most_bytes`."""

    @abstractmethod
    def _bounds(self, at: Position | None) -> Bounds:
        """What can be read of the table from there on."""

    @abstractmethod
    def _moved(self, seen: Bounds) -> bool:
        """Whether there is more now, or another table. Raises where nobody can say."""

    @abstractmethod
    def _is_as_planned(self, table: T, wanted: Range) -> bool:
        """Whether this is the table that the range was planned for."""

    def _among(self, wanted: Range) -> Among:
        """Among which rows those of a range are."""
        return Among()

    def _stretch(
        self, asking: Any, table: T, window: TimeWindow | None = None, after: Key | None = None
    ) -> PassStretch | None:
        """The rows that a pass reads first, or next; None where there are none. Raises ConfigError where their numbers
        cannot be offsets."""
        if table.is_keyed:
            return self._stretch_of_keys(asking, table, window, after)
        first, last = self.extent(asking, table, window)
        if first is None or last is None:
            return None
        if wrong := unfit_numbers(first, last + 1):
            raise ConfigError(wrong, where=self._where, next_step="Name another column as incrementing")
        return PassStretch(first, last + 1)

    def _stretch_of_keys(
        self, asking: Any, table: T, window: TimeWindow | None, after: Key | None
    ) -> PassStretch | None:
        """One with the same number as another one is left to the next stretch: who comes so late that it is here all
        the same, is noticed by the page."""
        most = STRETCH_ROWS
        found = self.key_stretch(asking, table, window, after, most)
        while found and most > 1 and not self.are_apart(asking, table, Among(window, found)):
            most //= 2
            found = self.key_stretch(asking, table, window, after, most)
        return found

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return [self._partition]

    def of_topic(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Records, for people."""
        return record_batch(rows, self.topic(self._partition))

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """Waits for transactions that are open. A partition of another table is retired.

        Nothing grows: up to where a live range was read, only its reader would know, and a later process may know less
        (a transaction is open, the newest rows are deleted). So each range has an end below which nothing comes."""
        return {one: self._looked_at(at) if one == self._partition else Bounds.unread(at) for one, at in known.items()}

    def _looked_at(self, at: Position | None) -> Bounds:
        names = self._names()
        if names is None:
            return self._bounds(at)
        if at is None or names.are_of(at.evidence):
            seen = self._bounds(at)
        else:
            lost = Gap(at.incarnation, at.offset, None, f"this is another server: it was {at.evidence[_SERVER][0]}")
            seen = replace(self._bounds(None), incarnation=at.incarnation + 1, gaps=(lost,))
        return replace(seen, evidence={**seen.evidence, _SERVER: [*names]})

    def _names(self) -> ServerNames | None:
        with self._database.asking() as asking:
            return self.server(asking)

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError("A table does not say when its rows came", next_step="Name numbers of rows instead of a time")

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        """The database is asked for the next page while the caller works on the last one, unless the quantum might be
        over before it comes."""
        place = _Place(wanted.begin, wanted.max_records, wanted.max_bytes)
        coming: Future[_TimedPage] | None = None
        with ThreadPoolExecutor(1) as aside:
            while place.is_in(wanted) and limit.quantum_left_s() > 0:
                page = coming.result() if coming else self._timed_page(wanted, place)
                place, coming = place.behind(page.batch), None
                if place.is_in(wanted) and limit.quantum_left_s() > page.took_s:
                    coming = aside.submit(self._timed_page, wanted, place)
                yield page.batch

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        until = clock.monotonic() + limit_s
        before = [one for partition, one in seen.items() if partition == self._partition]
        while (left_s := until - clock.monotonic()) > 0:
            clock.sleep(min(self._looks.every_s, left_s))
            if any(map(self.may_have_moved, before)):
                return

    def may_have_moved(self, seen: Bounds) -> bool:
        """Whether a run should look."""
        try:
            return self._moved(seen)
        except WaybillError:
            return True

    def _timed_page(self, wanted: Range, place: _Place) -> _TimedPage:
        began = clock.monotonic()
        batch = self._page(wanted, place.offset, wanted.end, place.records, place.bytes)
        return _TimedPage(batch, clock.monotonic() - began)

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        with self._database.asking() as asking, self.as_it_is(asking) as table:
            names = self.server(asking)
            if not self._is_as_planned(table, wanted) or (names and not names.are_of(wanted.evidence)):
                raise TableChanged(
                    "The table was made again, or its numbers were restarted, after this range was planned",
                    where=f"{self._where}, {table.id or 'number'} {begin:,}",
                    next_step="The next run reports what was lost",
                )
            rows, size = (STRETCH_ROWS, STRETCH_BYTES) if table.is_keyed else (MOST_ROWS, MOST_BYTES)
            among = self._among(wanted)
            found = self.page(asking, table, begin, end, min(most, rows), min(most_bytes, size), among)
        rows_of: RowsOf = "keys" if table.is_keyed else "query" if table.is_query else "table"
        return batch_of(found, begin, end, self._where, self.topic(self._partition), rows_of)
