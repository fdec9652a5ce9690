"""What a source does: one protocol for all sources, and abilities that only some of them have.

Most authors write a kit's few methods instead (docs/write-a-source.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from connect_core.errors import Failure
from connect_core.sdk.records import Partition
from connect_core.sdk.values import (
    Bounds,
    Json,
    Limit,
    Position,
    Range,
    SourceBatch,
)

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

Followed: TypeAlias = tuple[Range, SourceBatch | Failure]
"""A batch of a live range, or why that range can no longer be followed."""


class Source(Protocol):
    """Reads a system. Driver and worker each build it from the same options. It is cheap to build and holds no
    connection. A worker that stays reads one range after the other with the same object, until a lane fails; a range
    may begin before the place that it has come to."""

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """Driver, once a run: every partition that the document names now. This includes those of `known` that it still
        names and that are not there at this moment: a partition that is not returned is retired. Partitions that have
        ended are not in `known`. They are returned when they are there again."""

    def topic(self, partition: Partition) -> str:
        """The topic that all records of the partition carry. Empty where they have none, or each has its own. Pure."""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """Driver, before each plan: what can be read of each partition. None: it was never read. Compares each
        position's evidence with what is there now. Some of `known` may be retired or have ended: they are passed for
        what their evidence says of the others, and come last. What two partitions could read belongs to the first."""

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        """Driver, to plan a backfill: the first offset stored at or after that moment, or the end where there is none
        yet.

        Raises ConfigError when the source does not know when its records were stored.
        """

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        """Driver, to plan a backfill: the first offset at or after `offset` at which a record can begin. `seen` are the
        partition's bounds now, and `offset` is within them."""

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        """Worker: the records of `wanted` from its begin to its end, in order, until the quantum is over.

        Raises OffsetGone when they are no longer there, and Retriable when what is there is not what was planned.
        """

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Driver, in a window: returns as soon as something may have come after the ends in `seen`, at the latest after
        `limit_s`. To return for nothing costs only work: `available_offsets` decides. May raise where the source does
        not answer, which ends the run."""

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """Worker: what comes after the begin of each of these live ranges, as soon as it comes, in order within each
        range.

        Ends with the quantum, which may be ended early (`Limit.stopped`), when nothing came for `idle_timeout_s`, or
        when one range can no longer be followed (its file was renamed): the next plan looks at it. An error that
        `read` would raise and that concerns one range only is given once, as that range and a Failure; the other ranges
        are still followed. Raises an error that concerns all of them. May give more than a range holds.
        """

    def evidence(self, wanted: Range, end: int) -> Json:
        """Worker, when the receipt is written: what `available_offsets` later recognises the place `end` by, such as a
        digest of what is just before it."""

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """Driver, after settle, live stream only: shows the server what is settled. Never moves its offsets back."""


class Recovered(NamedTuple):
    """What a source that pushes learns from the records of a range that are in the target: the evidence for the place
    after the highest of them, and how many of them may have been delivered before."""

    evidence: Json
    possible_duplicates: int


@runtime_checkable
class PushSource(Source, Protocol):
    """A source that pushes. It has no offsets: records are numbered as they arrive, and the evidence of a position is
    what recognises them when they are sent again. What was acknowledged never comes again. So before that it must be
    durable in the target, and `scan` must see it there. Where a sink cannot tell which records it holds, nothing is
    acknowledged before it is settled. All ranges of such a source are live. One may end in the middle of a batch: the
    next one begins there, and is given what is left of it.
    """

    def acknowledge(self, wanted: Range, end: int) -> None:
        """Worker, while it follows, once something of the range is taken, and so will be settled: all records before
        `end` are durable in the target. Where the sink cannot tell which records it holds, `end` is the begin of the
        range: what was settled. In order."""

    def recovered(self, wanted: Range, found: ScanResult) -> Recovered:
        """Driver: for a range whose attempt left no receipt. Each of its records may have been acknowledged, or not.
        Pure."""


@runtime_checkable
class Recognising(Protocol):
    """A source that recognises what was read already under another name, also by another task."""

    def recognise(self, begun: Sequence[tuple[Partition, Position]]) -> None:
        """Driver, before each `available_offsets`: what else partitions of the connector have read or are about to
        read, by the evidence of their positions and of their open ranges. `available_offsets` begins none of that for
        another partition."""


@runtime_checkable
class Splitting(Protocol):
    """A source that makes partitions of what it finds once. To know it again later, it must be given them."""

    def stays(self, partition: Partition) -> bool:
        """Whether `partitions` must be given this one also after it has ended. Pure."""


@runtime_checkable
class Seeking(Protocol):
    """A source that can only reach the begin of a range by reading all that is before it."""

    def reached(self, wanted: Range) -> int:
        """Worker, when `read` has given nothing: how far it has come. A worker that stays goes on there."""


@runtime_checkable
class OfFiles(Protocol):
    """A source whose records are lines of files, their offsets the places of their first bytes."""

    def path_of(self, partition: Partition) -> str:
        """The file of a partition, by a name that stays the same whatever becomes of the file: an attempt that repeats
        a range must make the same of it. Pure."""


@runtime_checkable
class Keyed(Protocol):
    """A source whose server finds records by their key without reading all of them."""

    def offsets_with_key(self, key: str) -> Sequence[tuple[Partition, int]]:
        """Where records with this key, or of this id, are now. Reads only; bounded by what the server keeps of keys,
        and gives at once."""


@runtime_checkable
class RemoteState(Protocol):
    """A source or a sink for which its server keeps something as long as the connector lives."""

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        """Driver, when the connector is deleted, with all its leases held: when this returns, the server keeps nothing
        more for it. `known` are the source's partitions, also for a sink. Returns what a person should know, one
        sentence each. May be called again."""
