"""The contracts between rooms: what is planned, what a lane works through, what comes back, and who does it.

Plain frozen values and small protocols; imports only the vocabulary. Positions are half-open: a range covers
`[begin, end)`. Times named `_ns` are nanoseconds of CLOCK_BOOTTIME on the boot named beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.clock import now_ns
from connect_core.errors import Failure
from connect_core.found import Found
from connect_core.records import Lineage, Partition

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


# ---------------------------------------------------------------------------------------------------------- planning


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
    file that was renamed, nor of a part that ends. `pushes` says that only who follows it learns whether there is
    anything (`Inbox`): it has no end, and always something. `waiting` counts what stands behind `end` and is no whole
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

    `ahead` says that such a record was seen, so that nothing may be written before `find` has looked. `partition_id`
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
    `find` has seen so far, None when nothing was looked for."""

    id: int
    range: Range
    floors: tuple[Floor, ...]
    inherited: bool = False
    found: Found | None = None


# ------------------------------------------------------------------------------------------------- working and receipts


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
    surplus: int = 0
    possible_repeats: int = 0
    digest: str | None = None
    evidence: Json = field(default_factory=dict)
    began: Mapping[str, int] = field(default_factory=dict)
    stands: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """What happened to a range. `read == filtered + rejected + passed`, `emitted == delivered + already`. The first
    are records, the second their outputs: `emitted` is more than `passed` only where rules make several of one.

    A `reconstructed` one was made from what the target holds, because the source had lost the records by then: None
    stands for a count that nobody can know, and its digests are empty.

    `floors` are those of targets that were looked through or written for this range, and no others. `covered` is how
    many positions of the range are accounted for, added up record by record while it was read: those of what was read,
    and those that held nothing. Settle compares it with `end - begin`. None where nobody knows: in receipts that were
    reconstructed, or settled before it was stored.
    """

    begin: int
    end: int
    read: int | None
    absent: int | None
    filtered: int | None
    rejected: int | None
    passed: int
    emitted: int
    delivered: int
    already: int
    surplus: int
    possible_repeats: int
    bytes_read: int | None
    bytes_written: int
    seconds: float
    digest_read: str
    digest_sent: str
    where: Json
    evidence: Json
    floors: tuple[FloorMove, ...]
    rejects: tuple[Reject, ...] = ()
    gaps: tuple[Gap, ...] = ()
    reconstructed: bool = False
    covered: int | None = None

    def identity_faults(self) -> list[str]:
        """The identities of this receipt that do not hold; empty for a sound one."""
        faults = []
        if self.read is None or self.filtered is None or self.rejected is None:
            if not self.reconstructed:
                faults.append("a count is missing")
        elif self.read != self.filtered + self.rejected + self.passed:
            faults.append(
                f"read {self.read} != filtered {self.filtered} + rejected {self.rejected} + passed {self.passed}"
            )
        if self.emitted != self.delivered + self.already:
            faults.append(f"emitted {self.emitted} != delivered {self.delivered} + already {self.already}")
        return faults + self._coverage_faults()

    def _coverage_faults(self) -> list[str]:
        """A record takes one position at least, whatever positions count."""
        if self.end < self.begin:
            return [f"end {self.end} is before begin {self.begin}"]
        length, met = self.end - self.begin, (self.read or 0) + (self.absent or 0)
        if self.covered is not None and self.covered != length:
            return [f"{self.covered} positions are accounted for, not the {length} from {self.begin} to {self.end}"]
        return [f"{met} records in {length} positions, {self.begin} to {self.end}"] if met > length else []


@dataclass(frozen=True)
class Outcome:
    """What a lane says of one range: a receipt, or why there is none. A receipt with a `failure` closes the range
    before the record that failed. `clean` is False when something may have been written that no receipt tells of.
    `apart` is True when the failure concerns this partition alone, whose records could not be read or shaped or were
    rejected, so that ranges of others go on; else it is one of the target or of the lane, which ends there."""

    range_id: int
    receipt: Receipt | None
    failure: Failure | None = None
    clean: bool = True
    apart: bool = False


@dataclass(frozen=True)
class Side:
    """One end of a connector: the system's name and its options, as in the document (references not resolved)."""

    system: str
    options: Json


class Pace(NamedTuple):
    """How fast a lane may go, 0: as fast as it can. `saved_s` is time that went by unused before the lane began: what
    could have been moved in it may be moved in addition."""

    records_per_second: float = 0.0
    saved_s: float = 0.0


UNPACED = Pace()


@dataclass(frozen=True)
class Lane:
    """All that a worker needs to know. Travels as bytes in a column, never in a closure or a command line.

    `lock_paths` are the files that prove that somebody of this epoch is alive (delivery rule 3), one for each lease the
    run holds: the driver makes them, a lane shares their locks and refuses when one is not there any more. `quantum_s`
    counts from the lane's own start and is cut by `deadline_ns`; live ranges end before it when nothing came for
    `linger_s`, those of a source that pushes also when nothing came at all for `idle_s`. `pace` is the lane's share of
    what its connector may move. `tolerance` is how many records of a partition a run may reject, below zero any number;
    `rejected` how many it has, by id of the partition, in receipts that are settled.
    """

    connector: str
    uid: str
    task: int
    epoch: int
    source: Side
    sink: Side
    pipeline: Json
    tolerance: int
    ranges: tuple[OpenRange, ...]
    quantum_s: float
    boot_id: str
    deadline_ns: int
    lock_paths: tuple[str, ...]
    code: str
    linger_s: float = 0.0
    idle_s: float = math.inf
    pace: Pace = UNPACED
    rejected: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Search:
    """One slice of looking for records of ours (delivery rule 7): read-only, at most `limit_s` long, goes on from
    `found`."""

    uid: str
    sink: Side
    ranges: tuple[OpenRange, ...]
    limit_s: float
    code: str


@dataclass(frozen=True)
class Targets:
    """What a sink's targets look like when a run starts. A range planned now takes `pins`, or those of its topic, and
    what its partition adds to them (`by_partition`, by id): where it has gone before (delivery rule 25). Of partitions
    that are `gone` that is not there any more: nothing of them can be planned."""

    pins: Json
    single_lane: bool = False
    by_topic: Mapping[str, Json] = field(default_factory=dict)
    by_partition: Mapping[str, Json] = field(default_factory=dict)
    gone: Mapping[str, Failure] = field(default_factory=dict)

    def pins_for(self, topic: str, partition: Partition) -> Json:
        return {**self.by_topic.get(topic, self.pins), **self.by_partition.get(partition.id, {})}


# --------------------------------------------------------------------------------------------------------------- parts

Followed: TypeAlias = tuple[Range, SourceBatch | Failure]
"""What came of a live range, or why it cannot be followed any more."""


class Source(Protocol):
    """Reads a system. Built from the same options on driver and worker, cheap to build; holds no connection."""

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """Driver, once a run: every partition that the document names now. Of `known` those that it still names, also
        when they are not there at this moment: whoever is not returned is retired. Those that had ended are not in
        `known`: they are returned when they are there again."""

    def topic(self, partition: Partition) -> str:
        """The topic that all records of the partition carry; empty where there is none, or each has its own. Pure."""

    def bounds(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """Driver, before each plan: None stands for a partition never read. Checks what stood at each position. Some of
        `known` may be retired or have ended: they are there for what their evidence says of the others, and come last.
        What two of them may read belongs to the first."""

    def at_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        """Driver, to plan a backfill: the first offset stored at or after that moment; the end where there is none yet.

        Raises ConfigError when the source does not know when its records were stored.
        """

    def record_at(self, partition: Partition, seen: Bounds, offset: int) -> int:
        """Driver, to plan a backfill: the first place at or behind `offset` where a record can begin; `seen` are the
        partition's bounds now, and `offset` is within them."""

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        """Worker: the records of `wanted` from its begin to its end, in order, until the quantum is over.

        Raises OffsetGone when they are not there any more, Retriable when what is there is not what was planned.
        """

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Driver, in a window: returns as soon as something may have come behind the ends that `bounds` saw last, at
        the latest after `limit_s`. Returning for nothing does no harm but work: `bounds` decides."""

    def follow(self, wanted: Sequence[Range], limit: Limit, linger_s: float) -> Iterator[Followed]:
        """Worker: what comes behind the begin of each of these live ranges, at once, in order within each of them.

        Ends with the quantum, when nothing came for `linger_s`, or when one of them cannot be followed any more (its
        file was renamed): then the next plan looks at it. Where `read` would raise something that concerns one of them
        only, that range comes with a Failure, once, and the others are followed on. Raises what concerns them all. May
        give more than a range holds.
        """

    def evidence(self, wanted: Range, end: int) -> Json:
        """Worker, when the receipt is written: what stands just before `end`, for `bounds` to check later."""

    def confirm(self, positions: Mapping[Partition, Position]) -> None:
        """Driver, after settle, live stream only: tells the far side what is settled. Never goes back."""


class Recovered(NamedTuple):
    """What the records of a range that are in the target tell a source that pushes: the evidence for the place behind
    the highest of them, and how many of them may have been delivered before."""

    evidence: Json
    possible_repeats: int


@runtime_checkable
class Inbox(Source, Protocol):
    """A source that pushes. It has no offsets: records are numbered as they arrive, and the evidence of a position says
    by what they are recognised when they are sent again. What was acknowledged never comes again, so it must be durable
    in the target before, and `find` must see it there; where a sink cannot tell which records it holds, nothing is
    acknowledged before it is settled. All of its ranges are live.
    """

    def acknowledge(self, wanted: Range, end: int) -> None:
        """Worker, while it follows: all records of the range before `end` are durable in the target. In order."""

    def recovered(self, wanted: Range, found: Found) -> Recovered:
        """Driver: of a range whose attempt left no receipt, so that any of its records may have been acknowledged, or
        not. Pure."""


@runtime_checkable
class Recognising(Protocol):
    """A source that recognises what was read already, whatever it is called now: also what another task reads."""

    def recognise(self, begun: Sequence[tuple[Partition, Position]]) -> None:
        """Driver, before each `bounds`: what else partitions of the connector have read or are about to read, by the
        evidence of where they stand and of their open ranges. `bounds` begins none of that for another partition."""


@runtime_checkable
class Splitting(Protocol):
    """A source that makes partitions of what it finds once, and must be told of them later to know it again."""

    def stays(self, partition: Partition) -> bool:
        """Whether `partitions` is to be told of this one also when it has ended. Pure."""


@runtime_checkable
class Lasting(Protocol):
    """A source or a sink for which the other side keeps something as long as the connector lives."""

    def end(self, known: Mapping[Partition, Position | None]) -> list[str]:
        """Driver, when the connector is deleted, with all its leases held: the other side keeps nothing for it any more
        when this returns. `known` are the source's partitions, also for a sink. Gives what a person should know, a
        sentence each. May be called again."""


class Writer(Protocol):
    """One lane's way into a target, for one range. Used in one thread."""

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        """Takes rows, in order; may buffer. Returns how many it took: fewer than all when the quantum is over. Of the
        outputs of one record (rows with the same offset) it takes all or none: a range ends between records."""

    def flush(self, limit: Limit) -> Delivered:
        """Everything taken is durable when this returns, and told of. Raises when that cannot be said of all of it. May
        be called again when more was taken."""


OnRefused: TypeAlias = Callable[[pa.RecordBatch, str, str], None]
"""Takes one row that was refused, the class of the refusal, and a message without anything of the record. Raises
TooManyRejects where that is not tolerated: then nothing behind the row may be written."""


@runtime_checkable
class Refusable(Protocol):
    """A writer whose target may refuse a single record for good, whatever `unfit` said of it. Nothing of a row that was
    refused is in the target, and it is none of those that `flush` tells of."""

    on_refused: OnRefused | None
    """Who is told, in `write` or `flush`, of rows that were taken. While it is None a refusal is raised."""


class Sink(Protocol):
    """Writes a system. Built from the same options on driver and worker, cheap to build; holds no connection.

    `tells_records` says whether `find` tells of each record whether it is there, with its trace.
    """

    tells_records: bool

    def exclusive(self, task: int) -> tuple[str, ...]:
        """Driver: names of the target leases that `task` must hold (one writer at a time); often none. Pure."""

    def claimed(self, target: Json) -> tuple[str, ...]:
        """Driver: as `exclusive`, for a target that a range has pinned, whatever the document says since. Pure."""

    def reaches(self, target: Json, name: str) -> bool:
        """Driver: whether `find` looks into the target of the floor `name` for a range that has pinned `target`. A
        floor that it does not reach stays as it is, until a range is planned that does. Pure."""

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        """Driver, once a run and when new topics come, with the leases held: creates what is missing, compares the
        targets with `floors`. `topics` are those of the partitions (`Source.topic`), with the number of these.

        Raises TargetChanged when the target ends before a floor or is not what was settled.
        """

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """Driver, before a range is planned: one floor for each target that its records can reach. Those in `known`
        as they stand; for a missing one the target's end now, behind a visibility barrier. Where the ledger was
        `restored` and may have forgotten one: the lowest position there is, `ahead`; TargetChanged where nothing could
        be found that way."""

    def find(self, search: Search) -> dict[int, Found]:
        """Worker, read-only: by range id, what of each is in the target; `complete` or to be gone on with."""

    def unfit(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        """Worker: (row, error class, message) of the rows this target can never take. Pure."""

    def writer(self, lane: Lane, wanted: OpenRange) -> AbstractContextManager[Writer]:
        """Worker: opens the target for one range. Leaving the context closes it without making anything durable.

        Those of live ranges are open side by side and used in turn; all of them are flushed before any is closed.
        """


@runtime_checkable
class Expiring(Protocol):
    """A sink whose targets lose their oldest records by themselves."""

    def within(self, floors: Sequence[Floor]) -> list[Floor]:
        """When a person gives up what is open: these floors, none before the oldest that its target has left, since
        nobody can look there any more. One whose target does not answer stays as it is."""


@runtime_checkable
class Homing(Protocol):
    """A sink that keeps each partition in one place of its target, and knows from the floors in which."""

    def home_found(self, item: OpenRange) -> Json | None:
        """What the partition of a range adds to the pins of its target (`Targets.by_partition`), when what was found of
        it stands in another place than the one that it was planned for: a ledger that was restored has forgotten that.
        None where it goes there."""


class Engine(Protocol):
    """Where lanes run."""

    @property
    def described(self) -> str:
        """Kind, Spark and Python, for the run's row: at most 64 characters."""

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        """Runs all lanes side by side. Raises EngineFailed when any did not return: what it wrote is then unknown."""

    def find(self, search: Search) -> dict[int, Found]:
        """Runs one slice of a search."""


@runtime_checkable
class Starting(Protocol):
    """An engine that starts a process for each lane, which takes seconds on a busy machine."""

    def started(self, lanes: int) -> AbstractContextManager[Engine]:
        """Driver, before the deadline of the lanes is set: an engine that has so many processes ready, for one
        execution. Leaving the context ends those that are left."""
