"""What a sink does: a small protocol, and the abilities that only some have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from connect_core.errors import Failure
from connect_core.sdk.records import Partition
from connect_core.sdk.values import (
    Attempt,
    Delivered,
    Floor,
    Json,
    Limit,
    OpenRange,
    Position,
    Range,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from connect_core.sdk.scan import ScanResult


@dataclass(frozen=True)
class Targets:
    """The targets of a sink when a run starts. A range that is planned now takes `pins`, or the pins of its topic, and
    what its partition adds to them (`by_partition`, by id): where it was written before (delivery rule 25). For the
    partitions in `gone` that place no longer exists, and the topics in `unfit` have no target: none of their ranges can
    be planned."""

    pins: Json
    single_lane: bool = False
    by_topic: Mapping[str, Json] = field(default_factory=dict)
    by_partition: Mapping[str, Json] = field(default_factory=dict)
    gone: Mapping[str, Failure] = field(default_factory=dict)
    unfit: Mapping[str, Failure] = field(default_factory=dict)

    def pins_for(self, topic: str, partition: Partition) -> Json:
        return {**self.by_topic.get(topic, self.pins), **self.by_partition.get(partition.id, {})}

    def failure_of(self, topic: str, partition: Partition) -> Failure | None:
        """Why nothing of it can be planned."""
        return self.unfit.get(topic) or self.gone.get(partition.id)


@dataclass(frozen=True)
class Scan:
    """What to look for in the targets (delivery rule 7): our records of these ranges. Read-only, at most `limit_s`
    long; continues from each range's `found`."""

    attempt: Attempt
    ranges: tuple[OpenRange, ...]
    limit_s: float


class Writer(Protocol):
    """Writes one range into a target, for one lane. Used in one thread."""

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        """Takes rows, in order; may buffer them. Returns how many rows it took: fewer than all when the quantum is
        over. It takes all outputs of a record (rows with the same offset) or none: a range ends between records."""

    def flush(self, limit: Limit) -> Delivered:
        """Returns when all rows taken are durable and counted. Raises when this is not certain for every row. May be
        called again after more rows were taken."""


@runtime_checkable
class Storing(Protocol):
    """A writer for which durable comes sooner than counted. A source that pushes is acknowledged after each batch."""

    def store(self, limit: Limit) -> None:
        """Returns when all rows taken are durable, and raises what `flush` raises where that is not certain. What only
        a receipt needs is left to `flush`, which may still raise that the target was replaced."""


OnRefused: TypeAlias = "Callable[[pa.RecordBatch, str, str], None]"
"""Receives one refused row, the class of the refusal, and a message that contains nothing of the record. Raises
TooManyRejects when the document does not tolerate it: then nothing after the row may be written."""


@runtime_checkable
class Refusable(Protocol):
    """A writer whose target may refuse a single record for good, although `invalid_rows` let it pass. The target holds
    nothing of a refused row, and `flush` does not count it."""

    on_refused: OnRefused | None
    """Called in `write` or `flush` for each refused row among those taken. While it is None a refusal is raised."""


@runtime_checkable
class Outdating(Protocol):
    """A writer that leaves out records which are too late for its target; they count as filtered. Two attempts at a
    range may decide otherwise, so only a sink that delivers at least once may have one (delivery rule 8), and one that
    keeps with its progress what it has left out: else the next attempt takes that for delivered (`Prefix.without`)."""

    def outdated(self, records: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which of these rows are too late, by now: all outputs of a record or none. Asked right before `write`, which
        then gets the other ones, and about no row that is in the target already."""


class Sink(Protocol):
    """Writes a system. Driver and worker build it from the same options. It is cheap to build and holds no connection.

    `scan_tells_records`: whether `scan` reports for each record whether it is in the target, with its trace.
    """

    scan_tells_records: bool

    def target_leases(self, task: int) -> tuple[str, ...]:
        """Driver: the names of the target leases that `task` must hold (one writer at a time); often none. Pure."""

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        """Driver: the same for a target that a range has pinned, even if the document has changed since. Pure."""

    def reaches(self, target: Json, name: str) -> bool:
        """Driver: whether `scan`, for a range that has pinned `target`, looks into the target of the floor `name`. A
        floor that it does not reach keeps its position until a range that reaches it is planned. Pure."""

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        """Driver, once per run and when new topics appear, while it holds the leases: creates what is missing, and
        compares the targets with `floors`. `topics` maps each topic of the partitions (`Source.topic`) to the number
        of its partitions.

        Raises TargetChanged when a target ends before a floor, or is not the one that was settled.
        """

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """Driver, before a range is planned: one floor for each target that its records can reach. A floor in `known`
        is kept. A missing one is the target's end now, behind a visibility barrier. When the ledger was `restored` and
        may have forgotten a floor, the missing one is the lowest existing position, with `ahead` set. Raises
        TargetChanged where such a look could find nothing."""

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """Worker, read-only but for a marker of the sink's own: by range id, what the target holds of each range. A
        result that is not `complete` is continued by the next call."""

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        """Worker: (row, error class, message) for each row that this target can never take. Pure."""

    def writer(self, attempt: Attempt, wanted: OpenRange) -> AbstractContextManager[Writer]:
        """Worker: opens the target for one range. Leaving the context closes it and makes nothing durable.

        The writers of live ranges are open at the same time and used in turn. All of them are flushed before any is
        closed.
        """


@runtime_checkable
class ByOffset(Protocol):
    """A sink to which an offset says which record it is, or which of two is newer. No source that pushes may feed it:
    such a source numbers what arrives, and gives numbers again that an attempt which died, or a ledger that was
    restored since, had given to other records."""

    by_offset: Literal[True]


@runtime_checkable
class Expiring(Protocol):
    """A sink whose targets delete their oldest records by themselves."""

    def within(self, floors: Sequence[Floor]) -> list[Floor]:
        """Called when a person gives up the open ranges. Returns these floors, each moved up to the oldest position
        that its target still has, since nothing before it can be read any more. A floor whose target does not answer
        is returned unchanged."""


@runtime_checkable
class Homing(Protocol):
    """A sink that keeps each partition in one place of its target, and knows this place from the floors."""

    def home_found(self, item: OpenRange) -> Json | None:
        """What the partition of a range adds to the pins of its target (`Targets.by_partition`) when its records were
        found in another place than the range was planned for: a restored ledger has forgotten that place. None when
        the range goes to the right place."""


@runtime_checkable
class ByTopic(Protocol):
    """A sink that has a target for each topic of the source."""

    def unfit(self, topics: Collection[str]) -> dict[str, Failure]:
        """For `check --probe`: which of these topics of the source can have no target, and why. Reads only; `targets`
        may find more (`Targets.unfit`)."""


class RowsKept(NamedTuple):
    """What a target says of a partition: it has so many rows, the last of them right before `position`, which may be
    inside of a record."""

    rows: int
    incarnation: int
    position: int


class Lacking(NamedTuple):
    """Of a partition of which `target` has fewer rows than are settled: why nothing may be written, and what it has;
    None where it says nothing of the partition, or nothing that can be read."""

    failure: Failure
    target: str
    kept: RowsKept | None = None


@runtime_checkable
class Remembering(Protocol):
    """A sink whose target says how many rows of each partition it has."""

    def lacking(self, uid: str, stream: str, floors: Sequence[Floor]) -> dict[str, Lacking]:
        """Driver, before a run writes, or where it has nothing to move: by id those of the partitions with these floors
        of which the target has fewer rows than are settled. Also of those that bring nothing more, which nobody would
        look at again. Raises Missing where the target answers, and is not there."""

    def kept(self, uid: str, stream: str, partition_ids: Sequence[str]) -> dict[str, RowsKept]:
        """Driver: by id of the partition what the target has of a connector, which may be deleted; without those of
        which it says nothing."""

    def remember(self, attempt: Attempt, stream: str, positions: Mapping[str, Position]) -> list[Floor]:
        """Driver, behind `Sink.targets`: lets the target say of each of these partitions, by id, that nothing of them
        is there yet and that they go on at these positions. Returns their floors, for the ledger to keep: a target
        that says nothing of them any more is one of before, which `lacking` tells."""


@runtime_checkable
class Holding(Protocol):
    """A sink that sees at little cost whether its targets have what was settled."""

    def check_held(self, task: int, floors: Sequence[Floor]) -> None:
        """Driver, where a task has nothing to move, so that nobody asks for `Sink.targets`. Raises what that raises
        where something is gone or is something else, and changes nothing."""


@runtime_checkable
class TakesRows(Protocol):
    """A sink of rows with fields. Its batches have the column ROW (`sdk.batches`); of changes `operation` says what
    happened to the row, and the column BEFORE, which may be missing, how it was. What types the fields have is in its
    options, in an injected `row_fields`, as a document has them; `value` is the payload that the record would have
    elsewhere."""

    takes_rows: Literal[True]


class Outside(NamedTuple):
    """Outputs that go to a target which their range has not pinned: those that are `refused` for good, as in
    `Sink.invalid_rows`; and the `rows` of all others, in order, with the `names` of their targets."""

    refused: Sequence[tuple[int, str, str]] = ()
    rows: Sequence[int] = ()
    names: Sequence[str] = ()


@runtime_checkable
class Growing(Protocol):
    """A sink some of whose targets only the records name. A range writes into those alone that it has pinned (delivery
    rule 8). It ends before the first record that goes to another one, and what is behind it is planned with that.

    `grows`: whether there may be such targets, by its options. Nothing else here is asked where there are none."""

    grows: bool

    def outside(self, records: pa.RecordBatch, target: Json) -> Outside:
        """Worker: of these outputs those that go elsewhere than `target`, the pins of their range, says. Pure: all
        attempts at a range refuse the same ones, and end at the same."""

    def want(self, names: Sequence[str]) -> None:
        """Driver: after the next `Sink.targets` each of these is a target, or the pins say why it is refused."""

    def outgrown(self) -> bool:
        """Driver, before each plan: whether `Sink.targets` is to be asked again."""
