"""Moves offsets as `waybill offsets` does it: with the lease of the task that has the partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from connect_core.errors import ConfigError
from connect_core.ledger import Lease, Ledger, task_lease_id
from connect_core.planning import Assignment
from connect_core.replication.driver.leases import LeaseRequest, LeaseTimes, acquire
from connect_core.replication.driver.offset_checks import checked_position, floors_left
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import LIVE
from tests.simulator.ledger import UID
from tests.simulator.scheduler import Scheduler

TIMES = LeaseTimes(ttl_s=2.5, margin_s=0.7, quantum_s=0.7, idle_timeout_s=0.15)


class World(Protocol):
    """The part of a history that a person needs."""

    home: Path
    scheduler: Scheduler

    @property
    def ledger(self) -> Ledger: ...

    def holder(self) -> str: ...


def with_leases(
    world: World, assignment: Assignment, partition: Partition, change: Callable[[list[Lease]], object]
) -> None:
    lease_id = task_lease_id(UID, LIVE, assignment.version, assignment.shares[partition].task)
    held = acquire(
        world.ledger,
        [LeaseRequest(lease_id, UID, LIVE, assignment.version)],
        holder=world.holder(),
        home=world.home,
        times=TIMES,
        say=world.scheduler.tell,
    )
    try:
        change(held.leases)
    finally:
        held.release()


def set_offset(
    world: World,
    source: Source,
    assignment: Assignment,
    partition: Partition,
    offset: int,
    *,
    abandon: bool = False,
    sink: Sink | None = None,
) -> bool:
    """Whether there is such a place. `sink` tells what is left of the targets of what is given up."""
    before = world.ledger.positions(UID, LIVE, [partition])[partition]
    try:
        position = checked_position(source, partition, before, offset, "the simulator")
    except ConfigError:
        return False

    def change(leases: list[Lease]) -> None:
        known = [floor for floor in world.ledger.floors(UID, LIVE) if floor.partition_id == partition.id]
        floors = floors_left(sink, known) if sink and abandon else []
        world.ledger.set_offset(
            leases, UID, LIVE, partition, position, who="operator", why="", abandon=abandon, floors=floors
        )

    with_leases(world, assignment, partition, change)
    return True


def undo_offset(world: World, assignment: Assignment, partition: Partition) -> None:
    def change(leases: list[Lease]) -> None:
        world.ledger.undo_offset(leases, UID, LIVE, partition, who="operator")

    with_leases(world, assignment, partition, change)
