"""Lanes as Spark tasks, by a thin client of the resident Spark Connect server.

Connects at the first job and keeps the session, which all clients of a server share. `spark_session` knows what makes
one fit for lanes, `spark_errors` what its errors mean.
"""

from __future__ import annotations

import threading
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from connect_core.engine import spark_errors, spark_session, spark_task
from connect_core.engine.naming import described
from connect_core.engine.spark_checks import installed_version
from connect_core.engine.spark_jobs import SparkJobs
from connect_core.errors import Fatal, WaybillError

_WARM_UP_LIMIT_S = 120.0
_CUT_LIMIT_S = 1.0


class SparkConnectEngine(SparkJobs):
    """The engine of kind "spark"; threads may share it."""

    looked_at = "Look at it with: waybill engine status"

    def __init__(self, remote: str, log: Path | None = None) -> None:
        self.log = log
        self.where = spark_session.place(remote)
        self._remote = remote
        self._session: SparkSession | None = None
        self._connecting = threading.Lock()

    @property
    def described(self) -> str:
        return described("spark", installed_version())

    def warm_up(self, lanes: int) -> None:
        """A job that does nothing, on as many workers as there are lanes."""
        self.answers(spark_task.nothing, [b""] * lanes, _WARM_UP_LIMIT_S)

    def session(self) -> SparkSession:
        with self._connecting:
            if self._session is None:
                self._session = spark_session.connected(self._remote)
            return self._session

    def require_private(self) -> None:
        raise Fatal(
            "A worker of the resident engine has another clock than its driver: it is in a container with a time of its"
            " own, or on another host",
            where=self.where,
            next_step="Use an engine of kind submit for workers on other hosts",
        )

    def tag(self, session: SparkSession, tag: str) -> None:
        session.addTag(tag)

    def cancel(self, session: SparkSession, tag: str) -> None:
        session.interruptTag(tag)

    def cut(self) -> None:
        """Closes the line; the session on the server stays. Somebody who is still connecting has none yet, and may
        never get one: he is not waited for."""
        if not self._connecting.acquire(timeout=_CUT_LIMIT_S):
            return
        try:
            session, self._session = self._session, None
        finally:
            self._connecting.release()
        if session is not None:
            session.client.close()

    def translated(self, error: Exception, sent: bool) -> WaybillError:
        if spark_errors.breaks_session(error):
            self.cut()
        return spark_errors.translated(error, sent=sent, where=self.where)
