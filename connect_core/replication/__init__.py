"""Runs of connectors: one task's run from lease to settle (`task`), all tasks of a connector (`run_connector`), what
the next run would move (`plan_connector`), and what a worker does with a lane (`lane`). Puts the other rooms together.
"""

from connect_core.replication.preview import Preview, plan_connector
from connect_core.replication.run import RunSummary, run_connector
from connect_core.replication.task import Listener, Progress, Setting, TaskSummary

__all__ = [
    "Listener",
    "Preview",
    "Progress",
    "RunSummary",
    "Setting",
    "TaskSummary",
    "plan_connector",
    "run_connector",
]
