"""Tells both ends of a connector that a task of it is at work, where they ask for that (`Plugin.presence`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from connect_core.config import revealed
from connect_core.replication.driver.task_context import TaskContext
from connect_core.sdk.plugin import ROLES, Leaving, RunOfTask
from connect_core.sdk.values import LIVE
from connect_core.systems import SYSTEMS, checked

ASKED_FOR = ("paused", "stopped", "deleted")
"""What a person has wanted of a connector; a run that ends for anything else has ended."""


@contextmanager
def present(task: TaskContext, halted: Callable[[], str]) -> Iterator[None]:
    """As long as the block lasts. `halted` says then why the run ends before everything is moved."""
    with ExitStack() as there:
        leaving = list(_entered(task, there)) if task.stream == LIVE else []
        try:
            yield
        except BaseException:
            _tell(leaving, "failed")
            raise
        _tell(leaving, why if (why := halted()) in ASKED_FOR else "ended")


def _entered(task: TaskContext, there: ExitStack) -> Iterator[Leaving]:
    context = task.context
    for role in ROLES:
        side = context.resolved.source if role == "source" else context.resolved.sink
        plugin = SYSTEMS.get(side.system)
        model = plugin and plugin.options(role)
        if not plugin or not model or not plugin.presence:
            continue
        seen = RunOfTask(role, context.connector.name, task.task, task.summary.run_id, context.listener.log)
        if opened := plugin.presence(checked(model, revealed(side), role), seen):
            yield there.enter_context(opened)


def _tell(leaving: list[Leaving], why: str) -> None:
    for one in leaving:
        one(why)
