"""What one task begins while the others work beside it, for a source that recognises what was read (delivery rule 15).

A part of a run's driver. Before each look the source is told what all partitions have begun; what is begun then is
planned only if no other task has begun something meanwhile. Else it is looked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_core.ledger import Begun
from connect_core.replication.driver.task_view import TaskView
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Recognising
from connect_core.sdk.values import LIVE, Position, Range


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

    def beside(self, ranges: Sequence[Range]) -> Begun | None:
        """What the others must not have added to when these are planned; None where nothing of them is begun, or no
        other task is there."""
        anew = any((one.partition, one.incarnation) not in self._mine for one in ranges)
        return self._seen if anew and self._task.assignment.tasks > 1 else None
