"""A sink that stores rows by their identity: what is stored again changes nothing, and what is old is not stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core import clock
from connect_core.errors import DataError, Retriable
from connect_core.sdk.batches import ordinals, value_lengths
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits.contract import method_of, must_be_each
from connect_core.sdk.kits.one_target import OneTarget, settled, spans
from connect_core.sdk.records import Lineage
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import OnRefused, Scan
from connect_core.sdk.values import Attempt, Delivered, Floor, Limit, OpenRange, Range

_MARGIN_S = 0.5
"""So long before the deadline nothing is sent any more."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
"""Between two puts of which the target took nothing."""
_OFFSETS, _INCARNATIONS = 1 << 46, 1 << 17
"""Versions of one incarnation, and how many there can be; each begins behind the one before. A file may have 64 TiB.
They were 2^40 once: rows that were stored then have lower versions than the same place has now."""


class Answer(NamedTuple):
    """What the target says to one row. `refused` is the class of a refusal for good; its message says nothing of
    what is in the record. A row that is neither stored nor refused is sent again."""

    stored: bool
    refused: str = ""
    message: str = ""


STORED = Answer(True)
"""It is there, in this version or a later one."""
AGAIN = Answer(False)
"""Not now: the target is busy. The row is sent again."""


class KeyedConnection(Protocol):
    """The author's way into the target."""

    def put(self, ids: Sequence[str], versions: Sequence[int], records: pa.RecordBatch) -> Sequence[Answer]:
        """Stores each row under its id unless what is stored there has a higher version; answers row by row, when what
        it says is durable. A row that is not stored because a later version is there is STORED as well.

        A row without a value deletes what has its id. The deletion keeps its version, as a tombstone: where nothing is
        left of it, a late writer brings an older row back."""


class KeyedSink(OneTarget, ABC):
    """A row's id is its record's key (`by_key`), or else its coordinates; its version grows within a partition.

    Guarantee: what is written again changes nothing, so each record counts once. By key it needs all records of a key
    to come from one partition: versions of two partitions say nothing of each other. A source that pushes is refused.
    """

    guarantee = Guarantee(
        "exactly once",
        (
            "The target never replaces a row with an older version of it.",
            "Where rows are stored by key, all records of a key come from one partition.",
        ),
    )
    by_key = False
    by_offset: Literal[True] = True

    @abstractmethod
    def connect(self) -> AbstractContextManager[KeyedConnection]:
        """Worker: opens the target for one range. Raises Unreachable when it does not answer."""

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """The position of a floor counts settled rows, for people: there is nothing to look for."""
        standing = tuple(floor for floor in known if floor.target == self.target)
        return standing or (Floor(wanted.partition.id, self.target, 0),)

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        return {item.id: ScanResult(complete=True) for item in wanted.ranges}

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        far = (records.column("offset").to_numpy() >= _OFFSETS).nonzero()[0]
        invalid = [(int(row), "OffsetTooHigh", f"Offsets from {_OFFSETS:,} on have no version") for row in far]
        if self.by_key and records.column("key").null_count:
            rows = records.column("key").is_null().to_numpy(zero_copy_only=False).nonzero()[0]
            no_key = "The record has no key, and the target stores records by key"
            invalid += [(int(row), "NoKey", no_key) for row in rows]
        return invalid

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[_Writer]:
        if wanted.range.incarnation >= _INCARNATIONS:
            raise DataError(
                f"What is read was replaced {wanted.range.incarnation:,} times, and versions end there",
                where=f"{self.target}, partition {wanted.range.partition.key}",
                next_step="Store into a new target, with a new connector",
            )
        with self.connect() as connection:
            lineage = None if self.by_key else wanted.range.lineage(attempt.uid)
            yield _Writer(connection, self.target, settled(wanted, self.target), lineage, wanted.range.incarnation)


class _Writer:
    """A `sdk.sink.Writer`, and `Refusable`. Without a `lineage` rows are stored by key."""

    def __init__(
        self, connection: KeyedConnection, target: str, known: int, lineage: Lineage | None, incarnation: int
    ) -> None:
        self._connection, self._target, self._known = connection, target, known
        self._prefix = lineage.prefix() if lineage else None
        self._first_version = incarnation * _OFFSETS
        self._rows = self._bytes = 0
        self.on_refused: OnRefused | None = None

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        if limit.quantum_left_s() <= 0:
            return 0
        rest, pause_s = records, _FIRST_PAUSE_S
        while len(rest):
            again = self._put(rest)
            if len(again) == len(rest):
                self._pause(pause_s, limit)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            rest = rest.take(pa.array(again, pa.int64()))
        return len(records)

    def flush(self, limit: Limit) -> Delivered:
        behind = self._known + self._rows
        return Delivered(self._rows, self._bytes, {self._target: behind}, spans(self._target, self._known, behind))

    def _put(self, records: pa.RecordBatch) -> list[int]:
        """The rows that are to be sent again: those that were not taken, and what stands behind them under the same id.
        Outputs of one record may have one id and one version, so whichever comes last stands."""
        ids = self._ids(records)
        answers = self._connection.put(ids, self._versions(records).tolist(), records)
        must_be_each(Answer, answers, records, f"The answer of {method_of(self._connection, 'put')}")
        stored, again, waiting = list[int](), list[int](), set[str]()
        for row, (id_, answer) in enumerate(zip(ids, answers, strict=True)):
            if answer.refused:
                self._refuse(records.slice(row, 1), answer)
            elif answer.stored and id_ not in waiting:
                stored.append(row)
            else:
                again.append(row)
                waiting.add(id_)
        self._rows += len(stored)
        self._bytes += int(value_lengths(records.column("value"))[stored].sum())
        return again

    def _refuse(self, row: pa.RecordBatch, answer: Answer) -> None:
        if self.on_refused is None:
            raise DataError(answer.message, where=f"{self._target}, offset {row.column('offset')[0].as_py()}")
        self.on_refused(row, answer.refused, answer.message)

    def _ids(self, records: pa.RecordBatch) -> list[str]:
        if self._prefix is None:
            keys: list[str] = records.column("key").to_pylist()
            return keys
        numbers = ordinals(records)
        offsets = records.column("offset").to_pylist()
        outputs = numbers.tolist() if numbers is not None else [0] * len(offsets)
        return [f"{self._prefix}{offset}:{one}" for offset, one in zip(offsets, outputs, strict=True)]

    def _versions(self, records: pa.RecordBatch) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = records.column("offset").to_numpy()
        return self._first_version + offsets

    def _pause(self, seconds: float, limit: Limit) -> None:
        if limit.left_s() - seconds <= _MARGIN_S:
            raise Retriable(
                "The target was busy until no time was left",
                where=self._target,
                next_step="The next attempt sends these rows again. Give the target more room, or the connector less",
            )
        clock.sleep(seconds)
