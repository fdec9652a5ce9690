"""What the next run of a connector would move: reads the source and the ledger, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from connect_core import systems
from connect_core.config import Resolved, revealed
from connect_core.contracts import LIVE, Bounds, Gap, Inbox, Position
from connect_core.ledger import Connector, Ledger
from connect_core.records import Partition


@dataclass(frozen=True)
class Preview:
    """One partition: `committed` is None before its first settle; `lag` = end - begin, in records or bytes, by source.

    `open_from` is where a range begins that an earlier attempt left open. `waiting` is what is no whole record yet, in
    the unit of `lag`, and not part of it: the bytes of a last line without its line feed.
    """

    partition: str
    task: int | None
    incarnation: int
    committed: int | None
    begin: int
    end: int
    lag: int
    open_from: int | None
    gaps: tuple[Gap, ...]
    waiting: int = 0


def plan_connector(ledger: Ledger, connector: Connector, resolved: Resolved, stream: str = LIVE) -> list[Preview]:
    """Partitions in order of their key. Partitions that the ledger has not seen have no task yet."""
    shares = ledger.partitions(connector.uid)
    with ExitStack() as resources:
        source = systems.source(revealed(resolved.source), resources)
        partitions = sorted(source.partitions(list(shares)))
        positions = ledger.positions(connector.uid, stream, partitions)
        at_work = isinstance(source, Inbox) and bool(ledger.live_leases(connector.uid, stream))
        bounds = _as_committed(positions) if at_work else source.bounds(positions)
    opened = {item.range.partition: item.range.begin for item in ledger.open_ranges(connector.uid, stream, partitions)}
    previews = []
    for partition in partitions:
        seen, position = bounds[partition], positions.get(partition)
        previews.append(
            Preview(
                partition=partition.key,
                task=shares[partition].task if partition in shares else None,
                incarnation=seen.incarnation,
                committed=position.offset if position else None,
                begin=seen.begin,
                end=seen.end,
                lag=max(seen.end - seen.begin, 0),
                open_from=opened.get(partition),
                gaps=seen.gaps,
                waiting=seen.waiting,
            )
        )
    return previews


def _as_committed(positions: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
    """Of an inbox that a run is connected to: who looked would take the connection over."""
    return {
        partition: Bounds(at.incarnation, at.offset, at.offset, at.offset, pushes=True)
        for partition, one in positions.items()
        for at in [one or Position(0, 0)]
    }
