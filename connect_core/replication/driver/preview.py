"""What the next run of a connector would move: reads the source and the ledger, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime

from connect_core import systems
from connect_core.config import Resolved, revealed
from connect_core.errors import RowsLost
from connect_core.ledger import Connector, Ledger, PartitionState
from connect_core.replication.driver.lifecycle import RETIRED, has_nothing, to_be_told
from connect_core.sdk.records import Partition
from connect_core.sdk.source import PushSource
from connect_core.sdk.values import LIVE, Bounds, Gap, Position


@dataclass(frozen=True)
class Preview:
    """One partition: `committed` is None before its first settle; `lag` = end - begin, in records or bytes, by source:
    None where nobody knows it, since the partition cannot be looked at, or is retired.

    `open_from` is where a range begins that an earlier attempt left open. `waiting` is what is no whole record yet, in
    the unit of `lag`, and not part of it: the bytes of a last line without its line feed. `state`, `reason` and `since`
    are those of `ledger.PartitionState`: of one that is retired or has ended nothing is read.
    """

    partition: str
    task: int | None
    incarnation: int
    committed: int | None
    begin: int
    end: int
    lag: int | None
    open_from: int | None
    gaps: tuple[Gap, ...]
    waiting: int = 0
    state: str = "active"
    reason: str = ""
    since: datetime | None = None


def plan_connector(ledger: Ledger, connector: Connector, resolved: Resolved, stream: str = LIVE) -> list[Preview]:
    """Partitions in order of their key. Partitions that the ledger has not seen have no task yet."""
    shares, states = ledger.partitions(connector.uid), ledger.partition_states(connector.uid, stream)
    with ExitStack() as resources:
        source = systems.source(revealed(resolved.source), resources)
        named = set(source.partitions(to_be_told(source, shares, states)))
        partitions = sorted(named | shares.keys())
        positions = ledger.positions(connector.uid, stream, partitions)
        at_work = isinstance(source, PushSource) and bool(ledger.live_leases(connector.uid, stream))
        asked = {one: at for one, at in positions.items() if one in named}
        asked |= {one: at for one, at in positions.items() if one not in named and at and at.evidence}
        bounds = _as_committed(asked) if at_work else source.available_offsets(asked)
    opened = {item.range.partition: item.range.begin for item in ledger.open_ranges(connector.uid, stream, partitions)}
    previews = []
    for partition in partitions:
        position = positions.get(partition)
        seen = bounds.get(partition) or Bounds.unread(position)
        idle = has_nothing(seen) and partition not in opened
        state = _state_now(states.get(partition, PartitionState("active")), seen, named=partition in named, idle=idle)
        unknown = state.state == "retired" or seen.failure is not None
        if state.state in ("retired", "ended") or seen.failure:
            seen = Bounds.unread(position)
        previews.append(
            Preview(
                partition=partition.key,
                task=shares[partition].task if partition in shares else None,
                incarnation=seen.incarnation,
                committed=position.offset if position else None,
                begin=seen.begin,
                end=seen.end,
                lag=None if unknown else max(seen.end - seen.begin, 0),
                open_from=opened.get(partition),
                gaps=seen.gaps,
                waiting=seen.waiting,
                state=state.state,
                reason=state.reason,
                since=state.since,
            )
        )
    return previews


def _state_now(stored: PartitionState, seen: Bounds, *, named: bool, idle: bool) -> PartitionState:
    """As the next run would find it: the document may have changed since the last one, or the source."""
    if not named:
        return stored if stored.state in ("retired", "ended") else PartitionState("retired", RETIRED)
    if seen.failure:
        reason = str(seen.failure.as_error())
        return (
            replace(stored, reason=reason) if stored.state == "quarantined" else PartitionState("quarantined", reason)
        )
    there = seen.grows or seen.pushes or seen.end > seen.begin
    if stored.state == "quarantined" and idle and stored.kind != RowsLost.__name__:  # that is a matter of the target
        return PartitionState("active")
    back = stored.state == "retired" or (stored.state == "ended" and there)
    return PartitionState("active") if back else stored


def _as_committed(positions: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
    """Of a push source that a run is connected to: who looked would take the connection over."""
    return {
        partition: Bounds(at.incarnation, at.offset, at.offset, at.offset, pushes=True)
        for partition, one in positions.items()
        for at in [one or Position(0, 0)]
    }
