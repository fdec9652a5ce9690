"""A source that is asked for what comes behind a checkpoint: an API with pages, a table with a growing column.

Records are numbered as they come, from 0. The evidence of a position is the last checkpoint at or before it, with the
number of the record that comes behind that checkpoint, and a digest of the records between it and the position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from xxhash import xxh3_64

from connect_core import clock
from connect_core.errors import ConfigError, Failure, OffsetGone, Retriable, WaybillError
from connect_core.sdk.batches import record_batch, value_lengths
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits.contract import broken, method_of, must_be, must_be_json
from connect_core.sdk.records import Partition, Record
from connect_core.sdk.source import Followed
from connect_core.sdk.values import STOPPED_WITHIN_S, Bounds, Json, Limit, Position, Range, SourceBatch

_AHEAD, _LOOK_S = 1_000, 5.0
"""A look ahead ends after so many pages, or so long: a run moves what it has seen, and the next look continues behind
it. Pages count that have no records and a checkpoint that moves."""


class Polled(NamedTuple):
    """What one poll brought, in order, and the checkpoint behind it, which JSON can hold, and which is another one
    wherever there are records. No records and the same checkpoint: there are none now. No records and another one: the
    page had none, and the next poll may bring some."""

    records: Sequence[Record]
    checkpoint: Json


@dataclass(frozen=True)
class _Page:
    """The records that came behind `checkpoint`, numbered from `at`; `next` is the checkpoint behind them."""

    at: int
    checkpoint: Json
    records: Sequence[Record]
    next: Json

    @property
    def is_last(self) -> bool:
        """Whether nothing is behind it now."""
        return not self.records and self.next == self.checkpoint

    @property
    def end(self) -> int:
        return self.at + len(self.records)

    def evidence(self, offset: int) -> Json:
        """Of a position on this page, or right behind it."""
        if offset == self.end:
            return _evidence(self.end, self.next)
        digest = xxh3_64()
        _add(digest, self.records[: offset - self.at])
        return {**_evidence(self.at, self.checkpoint), "until": offset, "seen": digest.hexdigest()}


class PolledSource(ABC):
    """A partition is whatever is polled by itself; there is one unless `names` says otherwise.

    Guarantee: exactly once where the same checkpoint brings the same records again, in the same order, with new ones
    only behind them. Where it does not, a record may be taken for another one that was delivered: a source that cannot
    promise it is none for this kit.

    A table with a growing column does not promise it by itself: a transaction may take number 3 and commit after
    another one has committed number 4. A poll that has returned 4 never asks for 3 again, and nobody notices. Ask only
    for rows that no running transaction can come before (docs/write-a-source.md, "A table with a growing column").
    """

    guarantee = Guarantee(
        "exactly once",
        (
            "The same checkpoint brings the same records again, in the same order, and new ones only behind them.",
            "Nothing becomes visible before a place that was read, as a row of a table whose transaction ends late.",
        ),
        order="each partition",
    )
    every_s = 1.0
    """The pause after a poll that brought nothing, while a run stays in its window."""

    def __init__(self) -> None:
        self._pages: dict[Partition, _Page] = {}
        """The last one that was read of each partition."""

    def names(self) -> Sequence[str]:
        """What is polled, each by itself."""
        return ("all",)

    @abstractmethod
    def poll(self, name: str, checkpoint: Json) -> Polled:
        """What comes behind the checkpoint, {} for the first time. Raises Unreachable when there is no answer."""

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return [Partition(name) for name in self.names()]

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        until = clock.monotonic() + _LOOK_S
        return {partition: self._bounds(partition, at or Position(0, 0), until) for partition, at in known.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError(
            "This source does not know when its records were stored", next_step="Name offsets instead of a time"
        )

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        place, left, left_bytes = wanted.begin, wanted.max_records, wanted.max_bytes
        pages = self._from(wanted.partition, wanted.begin, wanted.evidence)
        while place < wanted.end and left > 0 and left_bytes > 0 and limit.quantum_left_s() > 0:
            page = next(pages)
            if not page.records and not page.is_last:
                continue
            if page.is_last:
                raise Retriable(
                    f"The source gives no record {place:,}, and had records up to {wanted.end:,} before",
                    where=f"partition {wanted.partition.key}",
                    next_step="The next run checks what the source still has",
                )
            batch = self._batch(page, wanted, most=left)
            yield batch
            place, left = batch.next_offset, left - len(batch.records)
            left_bytes -= int(value_lengths(batch.records.column("value")).sum())

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        until = clock.monotonic() + limit_s
        while (left_s := until - clock.monotonic()) > 0:
            clock.sleep(min(self.every_s, left_s))
            if any(self._grew(partition, one) for partition, one in seen.items()):
                return

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        followed = [_Followed(one, self._from(one.partition, one.begin, one.evidence)) for one in wanted]
        came_at = clock.monotonic()
        while followed and limit.quantum_left_s() > 0:
            came = [(one, batch) for one in followed if (batch := self._next(one)) is not None]
            for one, batch in came:
                came_at = clock.monotonic()
                yield one.wanted, batch
            failed = {one.wanted.partition for one, batch in came if isinstance(batch, Failure)}
            followed = [one for one in followed if one.wanted.partition not in failed]
            left_s = min(idle_timeout_s - (clock.monotonic() - came_at), limit.quantum_left_s())
            if not came and left_s <= 0:
                return
            until = clock.monotonic() + (0.0 if came else min(self.every_s, left_s))
            while (wait_s := until - clock.monotonic()) > 0 and limit.quantum_left_s() > 0:
                clock.sleep(min(wait_s, STOPPED_WITHIN_S))

    def evidence(self, wanted: Range, end: int) -> Json:
        page = self._pages.get(wanted.partition)
        if end == wanted.begin or page is None or not page.at <= end <= page.end:
            return wanted.evidence
        return page.evidence(end)

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """Nobody is told: what is polled does not know its readers."""
        return

    def _grew(self, partition: Partition, seen: Bounds) -> bool:
        """Whether something stands behind the end that was seen; also where nobody can say now."""
        page = self._pages.get(partition)
        evidence = page.evidence(seen.end) if page and page.at <= seen.end <= page.end else seen.evidence
        try:
            return bool(next(self._from(partition, seen.end, evidence)).records)
        except WaybillError:
            return True

    def _next(self, one: _Followed) -> SourceBatch | Failure | None:
        """What one poll brought; None for nothing."""
        try:
            page = next(one.pages)
        except WaybillError as error:
            return Failure.of(error)
        return self._batch(page, one.wanted) if page.records else None

    def _batch(self, page: _Page, wanted: Range, most: int | None = None) -> SourceBatch:
        first, end = max(page.at, wanted.begin), min(page.end, wanted.end)
        end = end if most is None else min(end, first + most)
        return SourceBatch(record_batch(page.records[first - page.at : end - page.at], range(first, end)), end)

    def _bounds(self, partition: Partition, at: Position, until: float) -> Bounds:
        end, moved = at.offset, False
        try:
            for page in islice(self._from(partition, at.offset, at.evidence), _AHEAD):
                end, moved = page.end, moved or not page.is_last
                if page.is_last or clock.monotonic() >= until:
                    break
        except WaybillError as error:
            return Bounds.unread(at, Failure.of(error))
        if moved and end == at.offset:  # only pages without records
            return Bounds(at.incarnation, end, 0, end, page.evidence(end), chosen=True)
        return Bounds(at.incarnation, at.offset, 0, end, at.evidence)

    def _from(self, partition: Partition, begin: int, evidence: Json) -> Iterator[_Page]:
        """Pages with what is at or behind `begin`, for ever; empty ones where there is nothing now. Raises OffsetGone
        when what came before `begin` is not what comes now."""
        known = evidence if evidence and evidence["at"] <= begin else _evidence(0, {})
        at, checkpoint, passed, empty = int(known["at"]), known["checkpoint"], _Passed(known, begin), 0
        while True:
            polled = self._polled(partition.key, checkpoint)
            page = _Page(at, checkpoint, polled.records, polled.checkpoint)
            if at < begin:
                passed.add(page)
                empty = 0 if page.records else empty + 1
                if page.is_last or empty == _AHEAD or (page.end >= begin and not passed.as_before):
                    raise _changed(partition, at, begin)
            if page.end > begin or (at == begin and not page.records):
                self._pages[partition] = page
                yield page
            at, checkpoint = page.end, page.next

    def _polled(self, name: str, checkpoint: Json) -> Polled:
        """One poll. A checkpoint that does not move while records come would bring them again for ever. Authors get,
        and give, copies: one who changes a checkpoint or a list later would change what a position means."""
        polled, method = self.poll(name, deepcopy(checkpoint)), method_of(self, "poll")
        must_be(Polled, polled, f"The answer of {method}")
        must_be(Sequence, polled.records, f"What has the records of {method}")
        must_be_json(polled.checkpoint, f"The checkpoint of {method}")
        if polled.records and polled.checkpoint == checkpoint:
            raise broken(
                f"The checkpoint of {method} must move, and {len(polled.records)} records came with the one that it was"
                " asked with: they would come again and again"
            )
        return Polled(tuple(polled.records), deepcopy(polled.checkpoint))


@dataclass(frozen=True)
class _Followed:
    wanted: Range
    pages: Iterator[_Page]


class _Passed:
    """The records that come between a checkpoint and a position, compared with those that came there before."""

    def __init__(self, evidence: Json, begin: int) -> None:
        self._until = int(evidence.get("until", 0))
        self._seen = evidence.get("seen") if self._until <= begin else None
        self._digest = xxh3_64()

    def add(self, page: _Page) -> None:
        _add(self._digest, page.records[: max(self._until - page.at, 0)])

    @property
    def as_before(self) -> bool:
        return self._seen is None or self._digest.hexdigest() == self._seen


def _evidence(at: int, checkpoint: Json) -> Json:
    return {"at": at, "checkpoint": checkpoint}


def _add(digest: Any, records: Sequence[Record]) -> None:
    for record in records:
        digest.update(repr((record.key, record.headers)).encode())
        digest.update(record.value or b"")


def _changed(partition: Partition, at: int, begin: int) -> OffsetGone:
    return OffsetGone(
        f"The source gives other records than before from {at:,} on, or fewer: it is unknown where {begin:,} is",
        where=f"partition {partition.key}",
        next_step="Find out what happened to them. To read on from another place: waybill offsets set",
    )
