"""A sink that can only write: at least once, and what may be there twice is counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import pyarrow as pa

from connect_core.sdk.batches import value_lengths
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits.contract import perform
from connect_core.sdk.kits.one_target import OneTarget, settled, spans
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan
from connect_core.sdk.values import Attempt, Delivered, Limit, OpenRange


class SimpleConnection(Protocol):
    """The author's way into the target."""

    def write(self, records: pa.RecordBatch) -> None:
        """Returns when the target has these rows for good. Raises when that cannot be said of all of them."""


class SimpleSink(OneTarget, ABC):
    """A sink that writes and cannot tell afterwards what it has written.

    Guarantee: at least once. What an attempt left open is written again, all of it, and the receipts up to its planned
    end count it as possible duplicates. Behind a source that pushes it comes again in the next range, which counts it.
    A ledger that was restored from a backup has forgotten receipts: what they told of is written again, and only the
    range that begins there counts it.
    """

    guarantee = Guarantee("at least once")

    @abstractmethod
    def connect(self) -> AbstractContextManager[SimpleConnection]:
        """Worker: opens the target for one range. Raises Unreachable when it does not answer."""

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        return {
            item.id: ScanResult({self.target: settled(item, self.target)}, complete=True, unknown=True)
            for item in wanted.ranges
        }

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[_Writer]:
        with self.connect() as connection:
            again = wanted.inherited or wanted.found is not None or wanted.comes_again
            yield _Writer(connection, self.target, settled(wanted, self.target), again)


class _Writer:
    """`settled` is how many rows of the partition the ledger knows to be there; `again` says that an attempt before may
    have written any of those to come."""

    def __init__(self, connection: SimpleConnection, target: str, settled: int, again: bool) -> None:
        self._connection, self._target, self._settled, self._again = connection, target, settled, again
        self._rows = self._bytes = 0

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        if limit.quantum_left_s() <= 0:
            return 0
        perform(self._connection.write, records)
        self._rows += len(records)
        self._bytes += int(value_lengths(records.column("value")).sum())
        return len(records)

    def flush(self, limit: Limit) -> Delivered:
        behind = self._settled + self._rows
        return Delivered(
            records=self._rows,
            bytes=self._bytes,
            behind={self._target: behind},
            where=spans(self._target, self._settled, behind),
            possible_duplicates=self._rows if self._again else 0,
        )
