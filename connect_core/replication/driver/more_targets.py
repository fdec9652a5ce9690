"""Ranges that ended before a record which goes to a target that they had not pinned (`sdk.sink.Growing`), or needs
fields that their revision does not have (`evolving`).

No failure: the sink is told which targets are wanted, and what is left of the range is planned with them. A part of a
run's driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from connect_core.replication.driver.errors import targets_in_vain
from connect_core.replication.driver.task_view import TaskView
from connect_core.sdk.records import Partition
from connect_core.sdk.values import OpenRange, Range
from connect_core.work import Outcome

_IN_A_ROW = 3
"""As often one partition may want targets and move nothing: the next plan has what is wanted."""
_TOLD = 5


class MoreTargets:
    """Of one attempt of one task. `found`: whether some were wanted in the last quantum."""

    def __init__(self, task: TaskView) -> None:
        self._task = task
        self._begins: dict[Partition, tuple[int, int]] = {}
        self._in_vain: Counter[Partition] = Counter()
        self.found = False

    def noted(self, items: Sequence[OpenRange], outcomes: Sequence[Outcome]) -> list[OpenRange]:
        """The ranges that ended at their begin: nothing was written of them, by any attempt. A range of another
        revision wants what that one named: the rest is planned by this one."""
        by_id = {item.id: item for item in items}
        ended = [(by_id[one.range_id], one) for one in outcomes if one.wanted or one.needs]
        self.found = bool(ended)
        for item, one in ended:
            self._note(item.range, one.receipt.end if one.receipt else item.range.begin)
        now = [one for item, one in ended if self._task.goes_where_now(item.range.pins)]
        names = list(dict.fromkeys(name for one in now for name in one.wanted))
        if names and (sink := self._task.growing()):
            sink.want(names)
            more = f" and {len(names) - _TOLD:,} more" if len(names) > _TOLD else ""
            self._task.context.listener.log(f"records go to other targets: {', '.join(names[:_TOLD])}{more}")
        return [item for item, one in ended if one.receipt is None]

    def begins(self, one: Range) -> bool:
        """Whether what is left of a range would end at once under the pins of that one: it is no rest."""
        return self._begins.get(one.partition) == (one.incarnation, one.begin)

    def _note(self, wanted: Range, end: int) -> None:
        partition = wanted.partition
        self._begins[partition] = (wanted.incarnation, end)
        self._in_vain[partition] = self._in_vain[partition] + 1 if end == wanted.begin else 0
        if self._in_vain[partition] > _IN_A_ROW:
            raise targets_in_vain(f"{self._task.where()}, partition {partition.key}, offset {end}")
