"""Runs that a scheduler gives to spark-submit: what that needs to start one, and how one ended.

The run itself is `application.run`, in the Spark application that spark-submit starts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from connect_core.engine import submit
from connect_core.engine.driver import this_process
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    from connect_core.service.scheduled import TaskAttempt

_FAILED = 1
"""How a spark-submit ends whose application did not end well."""


@dataclass(frozen=True)
class Submission:
    """What spark-submit is given. The application writes into the file `result` how it ended."""

    arguments: list[str]
    settings: dict[str, str]
    environment: dict[str, str]
    result: Path

    def ended(self, *, well: bool) -> Json:
        """The summary of the run. Raises the error that the run reported, and EngineFailed when it reported nothing."""
        return submit.read_result(self.result, 0 if well else _FAILED)


def application() -> Path:
    """The file that spark-submit runs."""
    return submit.application()


def submission(attempt: TaskAttempt, stream: str, *, master: str, java: Path, home: Path, result: Path) -> Submission:
    """For one attempt of a task. The run ends with this process. `java` is the program to start."""
    from connect_core.service.scheduled import engine_of

    arguments = submit.arguments(
        attempt.connector,
        task=attempt.task,
        stream=stream,
        attempt_of=attempt.of,
        accept_gaps=attempt.accept_gaps,
        result=result,
        caller=this_process(),
    )
    wanted = engine_of(attempt.connector)
    settings = {**wanted.conf, **submit.confs(master, str(wanted.python or sys.executable))}
    return Submission(arguments, settings, submit.environment(java, home, master), result)
