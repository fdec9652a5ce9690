"""What is planned, read and written, as values: positions, ranges, batches, floors.

Positions are half-open: a range covers `[begin, end)`. Times named `_ns` are nanoseconds of CLOCK_BOOTTIME on the boot
named beside them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.clock import now_ns
from connect_core.errors import Failure
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.scan import ScanResult

Json = dict[str, Any]
"""A JSON object: what is stored in the ledger as it is and means something only to its owner."""

ORIGIN = "origin"
"""The only thing in a source's evidence that others read: up to 16 letters, digits, `-` and `_`, the name of what is
read under this incarnation. It stays the same however incarnations are counted, as they may be anew by a ledger that
was restored. Missing or empty where a source has no such name."""

LIVE = "live"
"""The stream of the ordinary runs; every backfill and replay has one of its own."""

OPEN_END = 1 << 62
"""The end of a live range, which nobody knows when it is planned. Behind every offset that there can be."""


@dataclass(frozen=True)
class Position:
    """The place in a partition that is read next. `evidence` is what the source saw there; only the source reads it."""

    incarnation: int
    offset: int
    evidence: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """What a backfill or a replay moves of one partition: `[begin, end)` of one incarnation. `evidence` is what the
    source saw at `begin`."""

    partition: Partition
    incarnation: int
    begin: int
    end: int
    evidence: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Gap:
    """Records of `[begin, end)` that cannot be had any more; `end` is None where nobody can know it.

    An empty one says that a partition has ended, and that no record of it is known to be lost. One that `warns` says in
    its reason what was noticed there, and that nobody can know whether it concerns this partition: it stops nothing.
    """

    incarnation: int
    begin: int
    end: int | None
    reason: str
    warns: bool = False

    @property
    def loses(self) -> bool:
        """Whether records are lost, or may be."""
        return not self.warns and (self.end is None or self.end > self.begin)


@dataclass(frozen=True)
class Bounds:
    """What can be read of a partition now, from `begin` (where reading goes on) to `end`, exclusive.

    `oldest` is the lowest readable offset. `evidence` lets the reader recognise what was seen here. `gaps` are told
    when the committed position could not be continued; then `begin` is where reading could go on behind them.
    `grows` says that whatever comes next is appended right behind `end`, so that a live range may follow it: not of a
    file that was renamed, nor of a part that ends. `pushes` says that availability is known only by following
    (`PushSource`): it has no end, and always something. `waiting` counts what stands behind `end` and is no whole
    record yet, in the unit of positions: the bytes of a last line without its line feed. `chosen` says that this look
    has chosen where an unread partition begins, or has seen where it stands what a later one cannot see: it is kept.
    `later` says that what is here came when the source had begun to look: a run that ends when all is moved that was
    there when it began leaves it to the next one. `failure` says why this partition cannot be read now though the
    others can: then nothing else here counts.
    """

    incarnation: int
    begin: int
    oldest: int
    end: int
    evidence: Json = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    grows: bool = True
    pushes: bool = False
    waiting: int = 0
    chosen: bool = False
    later: bool = False
    failure: Failure | None = None

    @classmethod
    def unread(cls, at: Position | None, failure: Failure | None = None) -> Bounds:
        """Of a partition that nobody looks at, or that cannot be looked at: nothing of it is to be read."""
        place = at or Position(0, 0)
        where = place.offset
        return cls(place.incarnation, where, where, where, place.evidence, grows=False, failure=failure)


@dataclass(frozen=True)
class Pins:
    """What all attempts of a range share (delivery rule 8): document revision, pipeline digest, target, who planned it,
    and by end (`source`, `sink`) what the file of its connection said then, references not resolved."""

    revision: int
    pipeline: str
    target: Json
    code: str
    connections: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Range:
    """What is planned: one stretch of one partition in one stream, at most `max_records` and about `max_bytes` long.

    `slot` numbers the partitions of a connector in order of appearance and never changes: 1:1 routing uses it. A live
    range has no end (`OPEN_END`): its worker follows the source, and its receipt says how far it got.
    """

    stream: str
    partition: Partition
    slot: int
    incarnation: int
    begin: int
    end: int
    max_records: int
    max_bytes: int
    evidence: Json
    pins: Pins
    gaps: tuple[Gap, ...] = ()

    @property
    def live(self) -> bool:
        return self.end >= OPEN_END

    def lineage(self, uid: str) -> Lineage:
        return Lineage(uid, self.stream, self.partition.id, self.incarnation, self.origin)

    @property
    def give_up(self) -> str:
        """The command by which a person gives it up while it is open."""
        return "waybill offsets set --abandon" if self.stream == LIVE else "waybill backfills cancel"

    @property
    def origin(self) -> str:
        """See `ORIGIN`; empty where there is none."""
        return str(self.evidence.get(ORIGIN, ""))


class Floor(NamedTuple):
    """Delivery rule 6: the lowest position of `target` at which a record of ours that is not settled can stand.

    `ahead` says that such a record was seen, so that nothing may be written before `scan` has looked. `partition_id`
    is empty where a target has one position for all partitions (a file: its settled length). `evidence` is the
    sink's: what it recognises the target by.
    """

    partition_id: str
    target: str
    position: int
    ahead: bool = False
    evidence: Json = {}  # noqa: RUF012  never changed: a NamedTuple's default cannot be made by a factory


class FloorMove(NamedTuple):
    """Delivery rule 6: a floor as a receipt leaves it, and the position `begin` that it moves from. The ledger moves it
    only when it stands there.

    Of one partition's floor `begin` is where it stood when its range was planned. Of a floor that all partitions share
    it is where the range's writer began; those of one settle adjoin.
    """

    begin: int
    floor: Floor


@dataclass(frozen=True)
class OpenRange:
    """A range as it stands in the ledger. `inherited` ranges were planned by an earlier attempt; `found` is what
    `scan` has seen so far, None when nothing was looked for."""

    id: int
    range: Range
    floors: tuple[Floor, ...]
    inherited: bool = False
    found: ScanResult | None = None


@dataclass(frozen=True)
class Attempt:
    """Who looks into a target or writes to it. `uid` is the connector's, a part of the coordinates of its records. Of
    two attempts at one task the one with the higher `epoch` is the later, and the only one that may write.
    `deadline_ns`: see `Limit`; 0 for none, which no run has. `holder` is who has the lease: a process, and a nonce."""

    uid: str
    epoch: int
    deadline_ns: int = 0
    holder: str = ""

    @property
    def id(self) -> str:
        """Of this attempt and no other: a task that has another number counts its epochs for itself."""
        return f"{self.holder} epoch {self.epoch}".strip()


class Limit(NamedTuple):
    """When a lane stops taking on records (`quantum_end_ns`) and the moment after which it may not write at all
    (`deadline_ns`, delivery rule 1). Both on this host's CLOCK_BOOTTIME. `idle_s` is how long a source that pushes is
    listened to, from when it is connected, while nothing comes at all."""

    quantum_end_ns: int
    deadline_ns: int
    idle_s: float = math.inf

    def quantum_left_s(self) -> float:
        return (self.quantum_end_ns - now_ns()) / 1e9

    def left_s(self) -> float:
        return (self.deadline_ns - now_ns()) / 1e9


@dataclass(frozen=True)
class Reject:
    """A record that failed: `original` holds its bytes as read (cut at a limit), `offset` and `ordinal` say which."""

    offset: int
    ordinal: int
    stage: str
    kind: str
    message: str
    original: bytes
    topic: str | None = None


@dataclass(frozen=True)
class SourceBatch:
    """Records of RECORD_SCHEMA in offset order, each with one output. `next_offset` is the place to read on behind
    them; `holes` are the stretches `[begin, end)` of offsets that held no record, in order, as the source met them;
    `rejects` are records that could not even be read into a row; `filtered` are the offsets of those that the source
    was told to leave out, in order; `doubtful` those of rows that may have been delivered before, where nobody can
    tell, in order: one as often as there are such records that it stands for. `places` is int64 of shape (n, 2), in
    order: where each record that was met begins, rows, rejects and filtered ones alike, and how many positions it
    takes, as counted from what was read; None where a record takes one position."""

    records: pa.RecordBatch
    next_offset: int
    holes: tuple[tuple[int, int], ...] = ()
    rejects: tuple[Reject, ...] = ()
    filtered: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()
    places: NDArray[np.int64] | None = None

    def absent_before(self, end: int) -> int:
        """How many offsets before `end` held no record."""
        return sum(min(behind, end) - begin for begin, behind in self.holes if begin < end)


@dataclass(frozen=True)
class Delivered:
    """What a writer made durable of the range it was given.

    `behind` is, for each target, the position behind everything written there. `began` is, for each of them that has
    one floor for all partitions, the position at which this writer began: where the one before it ended. Writers that
    share what they flush began at the same position. `where` is for the receipt: which queues and offsets, which file
    and bytes. `digest` is set by sinks whose stored form is not the record form.
    `evidence` is what every target written is recognised by, `stands` what each of them is: what stands there last.
    """

    records: int
    bytes: int
    behind: Mapping[str, int]
    where: Json
    duplicates: int = 0
    possible_duplicates: int = 0
    digest: str | None = None
    evidence: Json = field(default_factory=dict)
    began: Mapping[str, int] = field(default_factory=dict)
    stands: Mapping[str, Json] = field(default_factory=dict)
