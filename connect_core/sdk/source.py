"""What a source does: a small protocol, and the abilities that only some have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from connect_core.errors import Failure
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import (
    Bounds,
    Json,
    Limit,
    Position,
    Range,
    SourceBatch,
)

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

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """Driver, before each plan: None stands for a partition never read. Checks what stood at each position. Some of
        `known` may be retired or have ended: they are there for what their evidence says of the others, and come last.
        What two of them may read belongs to the first."""

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        """Driver, to plan a backfill: the first offset stored at or after that moment; the end where there is none yet.

        Raises ConfigError when the source does not know when its records were stored.
        """

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
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

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """Driver, after settle, live stream only: tells the far side what is settled. Never goes back."""


class Recovered(NamedTuple):
    """What the records of a range that are in the target tell a source that pushes: the evidence for the place behind
    the highest of them, and how many of them may have been delivered before."""

    evidence: Json
    possible_duplicates: int


@runtime_checkable
class PushSource(Source, Protocol):
    """A source that pushes. It has no offsets: records are numbered as they arrive, and the evidence of a position says
    by what they are recognised when they are sent again. What was acknowledged never comes again, so it must be durable
    in the target before, and `scan` must see it there; where a sink cannot tell which records it holds, nothing is
    acknowledged before it is settled. All of its ranges are live.
    """

    def acknowledge(self, wanted: Range, end: int) -> None:
        """Worker, while it follows: all records of the range before `end` are durable in the target. In order."""

    def recovered(self, wanted: Range, found: ScanResult) -> Recovered:
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
class RemoteState(Protocol):
    """A source or a sink for which the other side keeps something as long as the connector lives."""

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        """Driver, when the connector is deleted, with all its leases held: the other side keeps nothing for it any more
        when this returns. `known` are the source's partitions, also for a sink. Gives what a person should know, a
        sentence each. May be called again."""
