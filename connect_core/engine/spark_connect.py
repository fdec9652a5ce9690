"""Lanes as Spark tasks, by a thin client of the resident Spark Connect server.

Turns lanes into a small table, one row and one task each, and the answers back into outcomes. Requests are bytes in a
column: never in a function, a setting, an explain text or a command line. A job is given up when the last deadline is
over. The only modules that import pyspark are this one, `spark_session` and `spark_errors`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.connect.session import SparkSession

from connect_core.clock import now_ns
from connect_core.contracts import Lane, Outcome, Search
from connect_core.engine import envelope, spark_errors, spark_session, spark_task
from connect_core.errors import EngineFailed
from connect_core.found import Found

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_LANE_GRACE_S = 5.0
"""Workers are dead at the deadline; this is for the server to say so, or for one so late that it refuses."""

_SEARCH_GRACE_S = 30.0
"""A search ends itself at its limit; what is beyond is a new worker and one slow answer."""

_WARM_UP_LIMIT_S = 120.0
_INTERRUPT_LIMIT_S = 2.0

_log = logging.getLogger(__name__)


class SparkConnectEngine:
    """Connects at the first job and keeps the session; threads may share it."""

    kind = "spark"

    def __init__(self, remote: str) -> None:
        self._remote = remote
        self._session: SparkSession | None = None
        self._connecting = threading.Lock()

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        left_s = (max((lane.deadline_ns for lane in lanes), default=0) - now_ns()) / 1e9
        requests = [envelope.request(lane) for lane in lanes]
        answers = self._answers(spark_task.lanes, requests, max(left_s, 0) + _LANE_GRACE_S)
        pairs = zip(lanes, answers, strict=True)
        return [outcome for lane, answer in pairs for outcome in envelope.outcomes(lane, answer)]

    def find(self, search: Search) -> dict[int, Found]:
        (answer,) = self._answers(spark_task.searches, [envelope.request(search)], search.limit_s + _SEARCH_GRACE_S)
        return envelope.found(answer)

    def warm_up(self, lanes: int) -> None:
        """A job that does nothing, on as many workers as there are lanes."""
        self._answers(spark_task.nothing, [b""] * lanes, _WARM_UP_LIMIT_S)

    def session(self) -> SparkSession:
        """The session, connected and checked at its first use in this process."""
        with self._connecting:
            if self._session is None:
                self._session = spark_session.connected(self._remote)
            return self._session

    def _answers(self, task: Task, requests: Sequence[bytes], limit_s: float) -> list[bytes]:
        job = _Job(self.session, task, requests)
        job.start()
        try:
            job.join(limit_s)
            if job.is_alive():
                raise EngineFailed(
                    f"the engine gave no answer within {limit_s:.1f} s",
                    where=spark_session.place(self._remote),
                    next_step="look at it with: waybill engine status",
                )
        except BaseException:
            self._give_up(job)
            raise
        if job.failure is not None:
            self._forget_broken(job)
            raise spark_errors.translated(job.failure, sent=job.sent, where=spark_session.place(self._remote))
        return job.ordered()

    def _give_up(self, job: _Job) -> None:
        """Interrupts it on the server; when that does not answer either, cuts the line."""
        job.interrupt(_INTERRUPT_LIMIT_S)
        if job.is_alive():
            self._forget()

    def _forget_broken(self, job: _Job) -> None:
        if job.failure is not None and spark_errors.breaks_session(job.failure):
            self._forget()

    def _forget(self) -> None:
        """The next job connects afresh. Closes the line; the session on the server stays."""
        with self._connecting:
            session, self._session = self._session, None
        if session is not None:
            session.client.close()


class _Job(threading.Thread):
    """One job, waited for in a thread of its own: no call of the client has a time limit."""

    def __init__(self, session: Callable[[], SparkSession], task: Task, requests: Sequence[bytes]) -> None:
        super().__init__(name="spark-job", daemon=True)
        self._open_session = session
        self._session: SparkSession | None = None
        self._task = task
        self._requests = requests
        self._tag = f"waybill-{uuid4().hex}"
        self.sent = False
        self.failure: Exception | None = None
        self._table: pa.Table | None = None

    def run(self) -> None:
        try:
            self._session = self._open_session()
            self._session.addTag(self._tag)
            frame = self._session.createDataFrame(self._requests_table()).mapInArrow(self._task, spark_task.ANSWER_DDL)
            _ = frame.schema  # asks the server: what fails up to here was not sent
            self.sent = True
            self._table = frame.toArrow()
        except Exception as error:
            _log.debug("a job of the engine failed", exc_info=error)
            self.failure = error

    def _requests_table(self) -> pa.Table:
        indexes = pa.array(range(len(self._requests)), pa.int64())
        return pa.table([indexes, pa.array(self._requests, pa.binary())], spark_task.REQUEST_SCHEMA)

    def ordered(self) -> list[bytes]:
        """The answers in the order of the requests."""
        rows = self._table.to_pylist() if self._table is not None else []
        answers = {row["index"]: row["answer"] for row in rows}
        if sorted(answers) != list(range(len(self._requests))):
            raise EngineFailed(f"{len(self._requests)} lanes were sent and {len(answers)} answered")
        return [answers[index] for index in range(len(self._requests))]

    def interrupt(self, limit_s: float) -> None:
        """Asks the server to end the job and waits until it has, or `limit_s` is over."""
        asking = threading.Thread(target=self._interrupt, name="spark-interrupt", daemon=True)
        asking.start()
        asking.join(limit_s)
        if not asking.is_alive():
            self.join(limit_s)

    def _interrupt(self) -> None:
        try:
            if self._session is not None:
                self._session.interruptTag(self._tag)
        except Exception as error:
            _log.debug("the engine could not be asked to end a job", exc_info=error)
