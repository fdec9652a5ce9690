"""What a sink does: a small protocol, and the abilities that only some have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from connect_core.errors import Failure
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import (
    Attempt,
    Delivered,
    Floor,
    Json,
    Limit,
    OpenRange,
    Range,
)


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


@dataclass(frozen=True)
class Scan:
    """What to look for in the targets (delivery rule 7): records of ours of these ranges. Read-only, at most `limit_s`
    long; goes on from each range's `found`."""

    attempt: Attempt
    ranges: tuple[OpenRange, ...]
    limit_s: float


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
    """A writer whose target may refuse a single record for good, although `invalid_rows` let it pass. Nothing of a
    refused row is in the target, and `flush` does not count it."""

    on_refused: OnRefused | None
    """Who is told, in `write` or `flush`, of rows that were taken. While it is None a refusal is raised."""


class Sink(Protocol):
    """Writes a system. Built from the same options on driver and worker, cheap to build; holds no connection.

    `scan_tells_records` says whether `scan` tells of each record whether it is there, with its trace.
    """

    scan_tells_records: bool

    def target_leases(self, task: int) -> tuple[str, ...]:
        """Driver: names of the target leases that `task` must hold (one writer at a time); often none. Pure."""

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        """Driver: as `target_leases`, for a target that a range has pinned, whatever the document says since. Pure."""

    def reaches(self, target: Json, name: str) -> bool:
        """Driver: whether `scan` looks into the target of the floor `name` for a range that has pinned `target`. A
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

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """Worker, read-only: by range id, what of each is in the target; `complete`, or to be gone on with."""

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        """Worker: (row, error class, message) of the rows this target can never take. Pure."""

    def writer(self, attempt: Attempt, wanted: OpenRange) -> AbstractContextManager[Writer]:
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
