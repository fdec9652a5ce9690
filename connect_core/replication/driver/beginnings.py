"""What one task begins while the others work beside it, for a source that recognises what was read (delivery rule 15).

A part of a run's driver. Before each look the source is told what all partitions have begun; what is begun then is
planned only if nobody else has begun something meanwhile. Else it is looked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_core.config import Resolved
from connect_core.ledger import Begun, Connector, Ledger
from connect_core.replication.driver.no_secrets import require_no_secret
from connect_core.replication.driver.task_view import TaskView
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Recognising, Source
from connect_core.sdk.values import LIVE, Bounds, Position, Range


class Beginnings:
    """`overtaken` says that since the last look something was not planned, as others have begun something."""

    def __init__(self, task: TaskView) -> None:
        self._task = task
        self._seen: Begun | None = None
        self._mine: set[tuple[Partition, int]] = set()
        self.overtaken = False

    def look(self, asked: Mapping[Partition, Position | None]) -> None:
        """Before the source is asked where reading goes on from there."""
        task, self.overtaken = self._task, False
        if task.stream == LIVE and isinstance(task.source, Recognising):
            self._seen = task.ledger.begun(task.uid, task.stream, task.slots)
            self._mine = {(one, at.incarnation) for one, at in asked.items() if at and at.offset}
            task.source.recognise(self._seen.places)

    def keep(self, seen: Mapping[Partition, Position]) -> bool:
        """What the last look has seen of these. False where it has to be looked again."""
        task = self._task
        return task.ledger.keep_seen(task.held.leases, task.uid, task.stream, seen, self._seen)

    def beside(self, ranges: Sequence[Range]) -> Begun | None:
        """What the others must not have added to when these are planned; None where nothing of them is begun. Others
        are there also without a second task: whoever starts a run keeps what it sees first."""
        anew = any((one.partition, one.incarnation) not in self._mine for one in ranges)
        return self._seen if anew else None


def keep_first(
    ledger: Ledger, connector: Connector, resolved: Resolved, source: Source, partitions: Sequence[Partition]
) -> None:
    """Where the live stream begins in those of these partitions that it has not read yet, with what is recognised
    there. Called by whoever shares partitions out, before anything else can fail: else nobody would look for a file
    that is renamed before the first plan."""
    if not isinstance(source, Recognising):
        return
    where, who = f"connector {connector.name}", f"source {resolved.source.system}"
    while None in (positions := ledger.positions(connector.uid, LIVE, partitions)).values():
        begun = ledger.begun(connector.uid, LIVE, ())
        source.recognise(begun.places)
        first = _first(positions, source.available_offsets(positions))
        require_no_secret(where, who, "a position", first.values())
        if not first or ledger.keep_first(connector.uid, LIVE, first, begun):
            return


def _first(
    positions: Mapping[Partition, Position | None], seen: Mapping[Partition, Bounds]
) -> dict[Partition, Position]:
    return {
        one: Position(there.incarnation, there.begin, there.evidence)
        for one, there in seen.items()
        if positions[one] is None and there.evidence and not (there.gaps or there.failure)
    }
