"""Several tables of a database as one source: each is a partition, and is read as a table alone is read.

Which ones there are is looked up by each run: tables that came since are read from then on. What is wrong with one of
them keeps it from being read, and no other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from typing import Any

from connect_core import clock
from connect_core.errors import Failure, Unreachable, WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Json, Limit, Position, Range, SourceBatch
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.named_tables import NO_PARENTS, NamedTables, Parents, read_twice
from connect_core.systems.tables.reading import Looks, SourceOfTables, TableRows


class SeveralTables(SourceOfTables, ABC):
    """A `sdk.source.Source`. How one asks is the system's. The tables share one connection."""

    def __init__(self, options: Looks, named: NamedTables, resources: ExitStack | None = None) -> None:
        self._looks, self._named = options, named
        self._database = KeptConnection(self.connect, self.understood)
        self._opened: dict[str, TableRows[Any]] = {}
        self._parents: Parents = NO_PARENTS
        if resources is not None:
            resources.callback(self._database.close)

    @abstractmethod
    def connect(self) -> Any:
        """A connection of the database's driver."""

    @abstractmethod
    def understood(self) -> AbstractContextManager[None]:
        """Raises what driver and worker know instead of what the driver of the database raises."""

    @abstractmethod
    def there(self, asking: Any) -> Iterable[str]:
        """Every table that the account sees, as `NamedTables` has them."""

    @abstractmethod
    def answer(self, asking: Any) -> None:
        """Asks for nothing but an answer of the database."""

    def parents(self, asking: Any) -> Parents:
        """A database whose tables inherit from others says it."""
        return NO_PARENTS

    @abstractmethod
    def opened(self, table: str, database: KeptConnection) -> TableRows[Any]:
        """The source of one of them, which asks by this connection."""

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """Those that were read before stay until the document excludes them: that one is gone is told."""
        with self._database.asking() as asking:
            self._parents = self.parents(asking)
            found = self._named.now(self.there(asking), self._parents)
        before = [one.key for one in known if self._means(one.key)]
        return [Partition(key) for key in dict.fromkeys([*found, *before])]

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """For transactions that are open all of them wait no longer than one alone does."""
        until = clock.monotonic() + self._looks.patience_s
        with self._database.asking() as asking:
            self._parents = self.parents(asking)
        return {one: self._bounds(one, at, until) for one, at in known.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        return {one: self._of(one).offsets_for_time([one], moment)[one] for one in partitions}

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        return self._of(wanted.partition).read(wanted, limit)

    def evidence(self, wanted: Range, end: int) -> Json:
        return self._of(wanted.partition).evidence(wanted, end)

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        until = clock.monotonic() + limit_s
        while (left_s := until - clock.monotonic()) > 0:
            clock.sleep(min(self._looks.every_s, left_s))
            if self._has_moved(seen):
                return

    def _of(self, partition: Partition) -> TableRows[Any]:
        if partition.key not in self._opened:
            self._opened[partition.key] = self.opened(partition.key, self._database)
        return self._opened[partition.key]

    def _means(self, table: str) -> bool:
        """A part of another one has to be named itself; then it is told why it cannot be read."""
        if self._named.parent_of(table, self._parents) and table not in self._named.exactly():
            return False
        return self._named.mean(table)

    def _bounds(self, one: Partition, at: Position | None, until: float) -> Bounds:
        if not self._means(one.key):
            return Bounds.unread(at)
        if parent := self._named.parent_of(one.key, self._parents):
            return Bounds.unread(at, Failure.of(read_twice(one.key, parent)))
        table = self._of(one)
        table.patient_until = until
        try:
            return table.available_offsets({one: at})[one]
        except Unreachable as error:
            self._require_an_answer()
            return Bounds.unread(at, Failure.of(error))
        except WaybillError as error:
            return Bounds.unread(at, Failure.of(error))

    def _require_an_answer(self) -> None:
        """Raises Unreachable where it is the database that is away, and not a table of it."""
        with self._database.asking() as asking:
            self.answer(asking)

    def _has_moved(self, seen: Mapping[Partition, Bounds]) -> bool:
        try:
            if set(self.partitions([])) - seen.keys():
                return True
        except WaybillError:
            return True
        return any(self._of(one).may_have_moved(bounds) for one, bounds in self._readable(seen))

    def _readable(self, seen: Mapping[Partition, Bounds]) -> Iterator[tuple[Partition, Bounds]]:
        """What is wrong with the others is told by each run."""
        for one, bounds in seen.items():
            if bounds.failure is None and self._means(one.key):
                yield one, bounds
