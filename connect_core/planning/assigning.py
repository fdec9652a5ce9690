"""Which task has which partition: the shares of an assignment, by strategy. Pure.

A partition keeps its slot for ever, and its task for as long as number of tasks and strategy stay: new partitions join
the version that is there, since nobody had them before. Another number or another strategy makes a new version. `even`
deals partitions out by slot, so that no task has more than one above another. `consistent-hash` gives each partition to
the task that its key and the task's number hash highest for (rendezvous hashing: Thaler and Ravishankar, 1998): going
from n to m tasks moves about one partition in max(n, m) for each task that comes or goes, and the loads are even only
on average.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from connect_core.sdk.records import Partition


class Share(NamedTuple):
    """`slot` numbers the partitions of a connector in order of appearance; `task` is the one that has it."""

    slot: int
    task: int


@dataclass(frozen=True)
class Assignment:
    """One version: `version` 0 stands for "nothing was assigned yet"."""

    version: int
    tasks: int
    shares: dict[Partition, Share]
    strategy: str = "even"


def assigned(current: Assignment, partitions: Iterable[Partition], tasks: int, strategy: str = "even") -> Assignment:
    """The assignment that holds when these partitions are there and this many tasks share them.

    The same for any order of the input. Partitions that are gone keep their share: they may come back.
    """
    if tasks < 1:
        raise ValueError(f"{tasks} tasks cannot share partitions")
    share_out = _STRATEGIES[strategy]
    new = sorted(set(partitions) - current.shares.keys())
    slots = {partition: share.slot for partition, share in current.shares.items()}
    slots |= {partition: len(slots) + number for number, partition in enumerate(new)}
    if current.version and (tasks, strategy) == (current.tasks, current.strategy):
        joined = share_out({partition: slots[partition] for partition in new}, current.shares, tasks)
        return replace(current, shares=current.shares | joined)
    return Assignment(current.version + 1, tasks, share_out(slots, {}, tasks), strategy)


def _evenly(slots: Mapping[Partition, int], there: Mapping[Partition, Share], tasks: int) -> dict[Partition, Share]:
    load = [0] * tasks
    for share in there.values():
        load[share.task] += 1
    joined = {}
    for partition in sorted(slots, key=lambda one: slots[one]):
        task = load.index(min(load))
        joined[partition] = Share(slots[partition], task)
        load[task] += 1
    return joined


def _by_hash(slots: Mapping[Partition, int], there: Mapping[Partition, Share], tasks: int) -> dict[Partition, Share]:
    return {
        partition: Share(slot, max(range(tasks), key=lambda task: _weight(partition, task)))
        for partition, slot in slots.items()
    }


def _weight(partition: Partition, task: int) -> bytes:
    return hashlib.blake2b(f"{task}\0{partition.key}".encode(errors="surrogateescape"), digest_size=8).digest()


_Strategy = Callable[[Mapping[Partition, int], Mapping[Partition, Share], int], dict[Partition, Share]]

_STRATEGIES: dict[str, _Strategy] = {"even": _evenly, "consistent-hash": _by_hash}
