"""What sources of changes have in common: one log, so one partition, which is read and followed in the same way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from connect_core import clock
from connect_core.errors import Failure, WaybillError
from connect_core.sdk.kits.one_partition import failure_of_one
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.values import Bounds, Limit, Position, Range, SourceBatch
from connect_core.systems.tables.connections import KeptConnection

_FOREVER_S = 1e9


class ChangesOptions(Protocol):
    @property
    def database(self) -> str: ...
    @property
    def every_s(self) -> float: ...


class ChangeSource(ABC):
    """The partition is the database of the connection."""

    def __init__(self, options: ChangesOptions, database: KeptConnection, resources: ExitStack | None) -> None:
        self._database, self._every_s = database, options.every_s
        self._partition = Partition(options.database)
        if resources is not None:
            resources.callback(database.close)

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return [self._partition]

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """A partition of another database is retired."""
        return {one: self._bounds(at) if one == self._partition else Bounds.unread(at) for one, at in known.items()}

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        return self._batches(wanted, limit, _FOREVER_S)

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """The log may grow for other tables: the next look moves past that. Raises where the server does not answer:
        the window may be over before there is another look."""
        until = clock.monotonic() + limit_s
        began = self._end_in(seen[self._partition]) if self._partition in seen else None
        while (left_s := until - clock.monotonic()) > 0:
            clock.sleep(min(self._every_s, left_s))
            if began is None or self._end_of_log() != began:
                return

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        [one] = wanted
        try:
            for batch in self._batches(one, limit, idle_timeout_s):
                yield one, batch
        except WaybillError as error:
            yield one, Failure.of(error)

    def _bounds(self, at: Position | None) -> Bounds:
        try:
            with self._database.asking() as asking:
                return self._look(asking, at)
        except WaybillError as error:
            return Bounds.unread(at, failure_of_one(error))

    def _end_of_log(self) -> object:
        with self._database.asking() as asking:
            return self._end(asking)

    @abstractmethod
    def _look(self, asking: Any, at: Position | None) -> Bounds:
        """What can be read behind this position; None: nothing was read yet."""

    @abstractmethod
    def _batches(self, wanted: Range, limit: Limit, idle_s: float) -> Iterator[SourceBatch]:
        """Whole transactions, as far as the range may hold them: the next range begins with the one that does not fit.
        One that is larger than a range, or than a batch, is torn. Ends when nothing has come for so many seconds."""

    @abstractmethod
    def _end(self, asking: Any) -> object:
        """Where the log ends now."""

    @abstractmethod
    def _end_in(self, seen: Bounds) -> object:
        """Where it ended at that look; None where nobody can say."""
