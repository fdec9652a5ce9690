"""Consumer groups of a system that has them: where a group of the source goes on in the copies at the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.values import Json


@dataclass(frozen=True)
class SettledStretch:
    """Offsets [begin, end) of a partition that are settled, and what its sink says in `Delivered.where`."""

    begin: int
    end: int
    where: Json


@dataclass(frozen=True)
class Replicated:
    """What is known of a partition around one of its offsets: its lineage and slot, the `target` that its newest range
    was pinned to, what was settled next to the offset, in order, and up to where it is replicated."""

    lineage: Lineage
    slot: int
    target: Json
    stretches: Sequence[SettledStretch]
    end: int


ReplicatedAt = Callable[[Partition, int], Replicated | None]
"""What is known of a partition around an offset; None where nothing of it is settled."""


@dataclass(frozen=True)
class GroupPlace:
    """Where a group stands in one queue of the source (None: nowhere yet), and the offset of the target that means the
    same. `behind`: so many records that it has consumed are not in the target yet, and will come again."""

    source: str
    committed: int | None
    target: str
    offset: int
    behind: int


@dataclass(frozen=True)
class GroupMove:
    """What the offset in a queue of the target has to be. `repeats` is the most records that may come twice."""

    target: str
    offset: int
    repeats: int


class GroupTranslation(NamedTuple):
    """Of one group; `places` is empty when it has no offset in anything that is read. `retry_backlog` counts, by queue,
    what it has still to retry, which is not translated."""

    places: Sequence[GroupPlace]
    moves: Sequence[GroupMove]
    retry_backlog: Mapping[str, int]


class GroupTranslator(Protocol):
    """Both sides of a connector, while they are open. What a group's consumers have under way is never written over:
    writing raises Refused while they are connected at the target."""

    def groups(self, wanted: Sequence[str]) -> list[str]:
        """Those that are named, and those of the source that a pattern means."""

    def translate(self, group: str) -> GroupTranslation:
        """Raises Retriable when the target cannot be read through in time."""

    def write(self, group: str, moves: Sequence[GroupMove]) -> None:
        """Stores the offsets, and reads each of them back."""

    def move_forward(self, group: str) -> Sequence[GroupMove]:
        """Translates, and writes what is ahead of where the group stands at the target; returns that."""


@dataclass(frozen=True)
class QueueStanding:
    """Where a group stands in one partition of a source (None: nowhere), where reading `begins` by that, and what the
    partition has now: its `oldest` record, and its `end`."""

    partition: str
    committed: int | None
    begins: int
    oldest: int
    end: int


@dataclass(frozen=True)
class GroupStanding:
    """The group at whose offsets a source begins. `connected`: consumers of it are at work; None where we may not know
    that. `missing` are topics that are not there."""

    group: str
    connected: bool | None
    missing: Sequence[str]
    places: Sequence[QueueStanding]


def _begins_at_none(options: Any) -> GroupStanding | None:
    return None


@dataclass(frozen=True)
class ConsumerGroups:
    """How a plugin translates groups between two ends of its system.

    `between` takes the options of source and sink, references resolved, and the partitions that were read. `in_step`
    names those, by the options of a sink, that move on after each run. `standing` looks, by an instance of the options
    of a source, where the group stands at which it begins, and changes nothing; None where it begins elsewhere.
    """

    product: str
    in_step: Callable[[Json], Sequence[str]]
    between: Callable[[Json, Json, Sequence[Partition], ReplicatedAt], AbstractContextManager[GroupTranslator]]
    standing: Callable[[Any], GroupStanding | None] = _begins_at_none
