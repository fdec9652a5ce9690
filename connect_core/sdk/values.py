"""What is planned, read and written, as values: positions, ranges, batches, floors.

Positions are half-open: a range covers `[begin, end)`. Times named `_ns` are nanoseconds of CLOCK_BOOTTIME on the boot
named beside them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from connect_core.clock import now_ns
from connect_core.errors import Failure
from connect_core.masking import mask_secrets
from connect_core.sdk.records import Lineage, Partition

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from connect_core.sdk.scan import ScanResult

Json = dict[str, Any]
"""A JSON object that the ledger stores as it is. It means something only to its owner."""

ORIGIN = "origin"
"""The only entry of a source's evidence that others read: the name of what is read under this incarnation, up to 16
letters, digits, `-` and `_`. It stays the same however incarnations are counted: a ledger that was restored may count
them anew. Missing or empty where a source has no such name."""

LIVE = "live"
"""The stream of ordinary runs. Every backfill and replay has a stream of its own."""

ERRORS_SINK = "errors-sink"
"""The stream of a connector that sends dead letters to its second target. Its offsets are numbers of its own."""

OPEN_END = 1 << 62
"""The end of a live range: it is unknown when the range is planned. Greater than every possible offset."""


@dataclass(frozen=True)
class Position:
    """The place in a partition that is read next. `evidence` is what the source saw there. Only the source reads it."""

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
    """Records of `[begin, end)` that can no longer be read. `end` is None where it cannot be known.

    An empty gap means that a partition has ended, and that no record of it is known to be lost. A gap that `warns` has
    in its reason what was noticed there. It cannot be known whether that concerns this partition, so it stops nothing.
    """

    incarnation: int
    begin: int
    end: int | None
    reason: str
    warns: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", mask_secrets(self.reason))

    @property
    def loses(self) -> bool:
        """Whether records are lost, or may be."""
        return not self.warns and (self.end is None or self.end > self.begin)


@dataclass(frozen=True)
class Bounds:
    """What can be read of a partition now, from `begin` (where reading continues) to `end`, exclusive.

    `oldest` is the lowest readable offset. `evidence` lets the reader recognise what was seen here. `gaps` are there
    when reading could not continue at the committed position; `begin` is then the place after them.
    `grows`: whatever comes next is appended directly after `end`, so that a live range may follow it. That is not so
    for a file that was renamed, nor for a part that ends. `pushes`: only following shows what is available
    (`PushSource`); the partition has no end, and may always have something. `waiting` counts what is after `end` and is
    no whole record yet, in the unit of positions: the bytes of a last line without its line feed. `chosen`: this look
    has chosen where an unread partition begins, or has seen what a later look cannot see, at its position or where it
    begins anew behind what was read; the ledger keeps it. `later`: what is here came after the source had begun to
    look. A run that ends when everything is moved that was there at its begin leaves it to the next run. `partial`:
    `end` is as far as the source has looked, and more was there already: such a run goes on to that. `waits` is why
    something that was there does not come yet, a sentence: the run says it when it ends, and a later one brings it.
    `beside` is why a part of what was there cannot be read though the rest can: that is moved, then the run fails.
    `moved`: from `begin` on is what came behind the position, in another log with other offsets; nothing is between.
    `failure` is why this partition cannot be read now though the others can; nothing else here counts then.
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
    partial: bool = False
    waits: str = ""
    beside: Failure | None = None
    moved: bool = False
    failure: Failure | None = None

    @classmethod
    def unread(cls, at: Position | None, failure: Failure | None = None) -> Bounds:
        """The bounds of a partition that was not looked at, or that cannot be looked at: nothing of it is read."""
        place = at or Position(0, 0)
        where = place.offset
        return cls(place.incarnation, where, where, where, place.evidence, grows=False, failure=failure)


@dataclass(frozen=True)
class Pins:
    """What all attempts of a range share (delivery rule 8): document revision, pipeline digest, target, and the code
    that planned it. `connections` has, by end (`source`, `sink`), the content of its connection file at that time,
    references not resolved."""

    revision: int
    pipeline: str
    target: Json
    code: str
    connections: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Range:
    """What is planned: one stretch of one partition in one stream, at most `max_records` and about `max_bytes` long.

    `slot` numbers the partitions of a connector in order of appearance. It never changes; 1:1 routing uses it. A live
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
        """The command with which a person gives the range up while it is open."""
        commands = {LIVE: "waybill offsets set --abandon", ERRORS_SINK: "waybill dead-letters redirect"}
        return commands.get(self.stream, "waybill backfills cancel")

    @property
    def origin(self) -> str:
        """See `ORIGIN`; empty where there is none."""
        return str(self.evidence.get(ORIGIN, ""))


class Floor(NamedTuple):
    """Delivery rule 6: the lowest position of `target` at which a record of ours that is not settled can be.

    `ahead`: such a record was seen, so nothing may be written before `scan` has looked. `partition_id` is empty where a
    target has one position for all partitions (a file: its settled length). `evidence` is what the sink recognises the
    target by.
    """

    partition_id: str
    target: str
    position: int
    ahead: bool = False
    evidence: Json = {}  # noqa: RUF012  never changed: a NamedTuple's default cannot be made by a factory


class FloorMove(NamedTuple):
    """Delivery rule 6: a floor as a receipt leaves it, and the position `begin` that it moves from. The ledger moves
    the floor only if it is at `begin`.

    For a floor of one partition, `begin` is its position when its range was planned. For a floor that all partitions
    share, it is the position at which the range's writer began; the moves of one settle adjoin.
    """

    begin: int
    floor: Floor


@dataclass(frozen=True)
class OpenRange:
    """A range as the ledger has it. An `inherited` range was planned by an earlier attempt. `found` is what `scan` has
    seen so far, None when nothing was looked for. `comes_again`: an earlier attempt left no receipt of what a source
    that pushes gave it, and the sink cannot tell which records it holds: what comes now may be there already."""

    id: int
    range: Range
    floors: tuple[Floor, ...]
    inherited: bool = False
    found: ScanResult | None = None
    comes_again: bool = False

    @property
    def known(self) -> ScanResult:
        """What is known to be there already: nothing where nobody has looked."""
        from connect_core.sdk.scan import ScanResult  # and NumPy, which a run with nothing to move does not need

        return self.found or ScanResult()


@dataclass(frozen=True)
class Attempt:
    """The attempt that looks into a target or writes to it. `uid` is the connector's, and part of the coordinates of
    its records. Of two attempts at one task, the one with the higher `epoch` is the later one, and only it may write.
    `deadline_ns`: see `Limit`; 0 means none, which no run has. `holder` has the lease: a process, and a nonce."""

    uid: str
    epoch: int
    deadline_ns: int = 0
    holder: str = ""

    @property
    def id(self) -> str:
        """Names this attempt and no other. The epoch alone does not: each task counts its own epochs."""
        return f"{self.holder} epoch {self.epoch}".strip()


STOPPED_WITHIN_S = 0.5


class Limit(NamedTuple):
    """When a lane stops accepting records (`quantum_end_ns`), and the moment after which it may not write at all
    (`deadline_ns`, delivery rule 1). Both are on this host's CLOCK_BOOTTIME. `first_record_timeout_s` is how long a
    worker listens to a source that pushes while nothing comes at all, counted from when it is connected. The quantum
    is over as soon as another thread has set `stopped`: who waits asks again at least every `STOPPED_WITHIN_S`."""

    quantum_end_ns: int
    deadline_ns: int
    first_record_timeout_s: float = math.inf
    stopped: Event | None = None

    def quantum_left_s(self) -> float:
        if self.stopped is not None and self.stopped.is_set():
            return 0.0
        return (self.quantum_end_ns - now_ns()) / 1e9

    def left_s(self) -> float:
        return (self.deadline_ns - now_ns()) / 1e9


@dataclass(frozen=True)
class Reject:
    """A record that failed. `original` has its bytes as read (cut at a limit); `offset` and `ordinal` identify it.
    `attributes` is what it had beside payload and topic, None where what is kept is not the whole record as read."""

    offset: int
    ordinal: int
    stage: str
    kind: str
    message: str
    original: bytes
    topic: str | None = None
    attributes: Json | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", mask_secrets(self.message))


@dataclass(frozen=True)
class SourceBatch:
    """Records of RECORD_SCHEMA in offset order, each with one output. `next_offset` is the place to continue at after
    them. `holes` are the stretches `[begin, end)` of offsets that held no record, in order, as the source met them.
    `rejects` are records that could not even be read into a row. `filtered` are the offsets, in order, of records that
    the source leaves out because its options say so. `doubtful` are the offsets, in order, of rows that may have been
    delivered before, where that cannot be known; an offset is repeated for each record that it represents. `places` is
    int64 of shape (n, 2), in order: where each record begins that was met (rows, rejects and filtered ones alike), and
    how many positions it takes, counted from what was read. None where each record takes one position."""

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
    """What a writer made durable of its range.

    `behind` is, for each target, the position after everything written there. `began` is, for each target that has one
    floor for all partitions, the position at which this writer began: where the writer before it ended. Writers that
    share what they flush began at the same position. `where` is for the receipt: which queues and offsets, which file
    and bytes. `digest` is set by sinks whose stored form is not the record form. `evidence` is what every target that
    was written is recognised by. `stands` has what is last in a target, by target; it counts before `evidence`.
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
