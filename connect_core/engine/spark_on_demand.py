"""The client of a Spark Connect server that is loaded with the first job.

To load it takes as much processor time as all else that a command does, and most runs of a short schedule find nothing
to move. Imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from connect_core.engine.naming import described
from connect_core.engine.spark_checks import installed_version
from connect_core.work import Engine, Lane, Outcome, ScanTask, ToStop, never

if TYPE_CHECKING:
    from connect_core.engine.spark_connect import SparkConnectEngine
    from connect_core.sdk.scan import ScanResult


class SparkOnDemand:
    """The engine of kind "spark", as its drivers have it; threads may share it."""

    def __init__(self, remote: str, log: Path | None = None) -> None:
        self._remote = remote
        self._log = log

    @property
    def described(self) -> str:
        return described("spark", installed_version())

    @cached_property
    def _client(self) -> SparkConnectEngine:
        from connect_core.engine.spark_connect import SparkConnectEngine

        return SparkConnectEngine(self._remote, self._log)

    def started(self, lanes: int, to_stop: ToStop = never) -> AbstractContextManager[Engine]:
        return self._client.started(lanes, to_stop)

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        return self._client.execute(lanes)

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        return self._client.scan(task)
