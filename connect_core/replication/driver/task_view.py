"""What the parts of a task's run ask of it: they are made by the `task_context`, and do not know it."""

from __future__ import annotations

from typing import Protocol

from connect_core.ledger import Ledger
from connect_core.observe import Step
from connect_core.planning import Assignment
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.leases import HeldLeases
from connect_core.replication.driver.summary import TaskSummary
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Growing
from connect_core.sdk.source import Source
from connect_core.sdk.values import Pins


class TaskView(Protocol):
    """See `task_context.TaskContext`."""

    context: RunContext
    ledger: Ledger
    uid: str
    stream: str
    assignment: Assignment
    slots: dict[Partition, int]
    source: Source
    held: HeldLeases
    summary: TaskSummary

    def reached(self, step: Step) -> None: ...

    def where(self) -> str: ...

    def growing(self) -> Growing | None: ...

    def goes_where_now(self, pins: Pins) -> bool: ...
