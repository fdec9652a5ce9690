"""Lanes and searches as jobs of Spark, whichever way Spark is reached.

Turns lanes into a small table, one row and one task each, and the answers back into outcomes. Requests are bytes in a
column: never in a function, a setting, an explain text or a command line. A job is given up when the last deadline is
over. Imports nothing of pyspark but types: the session is handed in by `spark_connect` and `spark_classic`.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from connect_core.clock import now_ns
from connect_core.engine import envelope, failures, spark_task
from connect_core.engine.dialling import LOOPBACK, dial_in
from connect_core.engine.failures import LOOKED_UP
from connect_core.engine.line import LineEnded
from connect_core.engine.workers import WithWorkers, Worker, Workers, greeted
from connect_core.errors import EngineFailed, Unreachable, WaybillError
from connect_core.work import Engine, Lane, Outcome, ScanTask, ToStop, never

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_LANE_GRACE_S = 5.0
"""Workers are dead at the deadline; this is for Spark to say so, or for one so late that it refuses."""

_DIAL_LIMIT_S = 10.0
"""For Spark to start as many workers as a run has lanes, and for these to dial."""

_GREETING_LIMIT_S = 60.0
"""For a worker that has dialled to load its modules: what that takes is no time of its first lane."""

_SEARCH_GRACE_S = 30.0
"""A search ends itself at its limit; what is beyond is a new worker and one slow answer."""

_CANCEL_LIMIT_S = 2.0

_REQUEST_TYPE = StructType([StructField("index", LongType()), StructField("request", BinaryType())])
_ANSWER_TYPE = StructType([StructField("index", LongType()), StructField("answer", BinaryType())])
"""Not in words: a server would be asked to read them, once more for each job."""

_log = logging.getLogger(__name__)


class SparkJobs(ABC):
    """An engine on a session of Spark; threads may share it. What differs is how the session is had, how a job is
    tagged and cancelled, and what errors mean."""

    where: str
    """For people: where Spark is. Without anything secret."""
    log: Path | None = None
    """Where stack traces go."""
    looked_at: str
    """What a person does who wants to know why there is no answer."""

    address: str = LOOPBACK
    """Of this host, where workers dial in."""
    elsewhere = False
    """Whether executors are on other hosts, as far as is known before they dial."""

    _in_reach = True
    """Whether workers reach this process, as far as is known."""

    @contextmanager
    def started(self, lanes: int, to_stop: ToStop = never) -> Iterator[Engine]:
        """See `work.Starting`: one job, whose workers dial in. Where they do not reach this process, or there are too
        few slots for all, each execution is a job of its own. Raises what fails the job before they are there."""
        with ExitStack() as ending:
            job, workers = self._dialled(lanes, ending) if self._in_reach else (None, [])
            if job and workers:
                if not all(worker.here for worker in workers):
                    self.require_private()
                yield WithWorkers(self, Workers(workers, partial(self._ended, job), _LANE_GRACE_S, to_stop))
            elif self.elsewhere:
                raise self._out_of_reach()
            else:
                yield self

    def _dialled(self, lanes: int, ending: ExitStack) -> tuple[_Job, list[Worker]]:
        """Each worker with its line, or none. `ending` closes the lines, and ends the job."""
        with dial_in(lanes, self.address) as dialling:
            job = _Job(self, spark_task.staying, dialling.invitations())
            job.start()
            ending.callback(job.end, _CANCEL_LIMIT_S)
            lines = dialling.lines(_DIAL_LIMIT_S, job.is_alive)
        for line in lines:
            ending.callback(line.close)
        workers: list[Worker] = []
        with suppress(TimeoutError, LineEnded):
            workers = [greeted(line, _GREETING_LIMIT_S, dialling.asked_ns) for line in lines]
        if not workers:
            if job.is_alive():
                job.give_up(_CANCEL_LIMIT_S)
            if job.failure is not None and not job.given_up:
                raise self._told(job.failure, sent=False)
            self._in_reach = job.given_up
        return job, workers

    def _out_of_reach(self) -> Unreachable:
        """A lane that is a job of its own has a deadline of the driver's clock, which means nothing elsewhere."""
        return Unreachable(
            f"Workers on other hosts did not all reach the driver at {self.address} within {_DIAL_LIMIT_S:g} s",
            where=self.where,
            next_step="Let them connect to that address, and give the engine as many slots as lanes run at once",
        )

    def _ended(self, job: _Job, number: int, deadline_ns: int | None) -> NoReturn:
        """What Spark says of a worker that has ended is better than what its line says."""
        job.join(_LANE_GRACE_S)
        if job.failure is not None:
            raise self._told(job.failure, sent=True)
        raise EngineFailed("A worker ended without an answer", where=self.where, next_step=LOOKED_UP)

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        left_s = (max((lane.deadline_ns for lane in lanes), default=0) - now_ns()) / 1e9
        requests = [envelope.request(lane) for lane in lanes]
        answers = self.answers(spark_task.lanes, requests, max(left_s, 0) + _LANE_GRACE_S)
        pairs = zip(lanes, answers, strict=True)
        return [outcome for lane, answer in pairs for outcome in envelope.outcomes(lane, answer)]

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        (answer,) = self.answers(spark_task.searches, [envelope.request(task)], task.scan.limit_s + _SEARCH_GRACE_S)
        return envelope.found(answer)

    def answers(self, task: Task, requests: Sequence[bytes], limit_s: float) -> list[bytes]:
        """One job: the answers in the order of the requests. Raises EngineFailed when they do not come in time."""
        job = _Job(self, task, requests)
        job.start()
        try:
            job.join(limit_s)
            if job.is_alive():
                raise EngineFailed(
                    f"The engine gave no answer within {limit_s:.1f} s", where=self.where, next_step=self.looked_at
                )
        except BaseException:
            job.give_up(_CANCEL_LIMIT_S)
            raise
        if job.failure is not None:
            raise self._told(job.failure, job.sent)
        return job.ordered()

    def _told(self, failure: Exception, sent: bool) -> WaybillError:
        error = self.translated(failure, sent)
        if isinstance(error, EngineFailed) and error is not failure:
            return failures.kept(error, failures.text_of(failure), self.log)
        return error

    @property
    @abstractmethod
    def described(self) -> str:
        """See `work.Engine`."""

    @abstractmethod
    def session(self) -> Any:
        """The session, opened and checked at its first use in this process."""

    @abstractmethod
    def require_private(self) -> None:
        """Called when a worker is on another host. Raises Fatal where requests to it can be read on the way."""

    @abstractmethod
    def tag(self, session: Any, tag: str) -> None:
        """Marks the jobs that this thread will start."""

    @abstractmethod
    def cancel(self, session: Any, tag: str) -> None:
        """Asks Spark to end the jobs of that tag."""

    @abstractmethod
    def cut(self) -> None:
        """Spark did not even answer to that: the next job takes another session, where there can be another."""

    @abstractmethod
    def translated(self, error: Exception, sent: bool) -> WaybillError:
        """`sent` says whether lanes may have been started: then nothing is known of what they wrote."""


def frame(session: Any, task: Task, requests: Sequence[bytes]) -> Any:
    """The job as a DataFrame: one row and one task a request. A server is asked for its settings: what fails here was
    not sent."""
    indexes = pa.array(range(len(requests)), pa.int64())
    table = pa.table([indexes, pa.array(requests, pa.binary())], spark_task.REQUEST_SCHEMA)
    rows = session.createDataFrame(table)
    rows._cached_schema = _REQUEST_TYPE  # by a private name of the pinned client: else a server is asked for it too
    return rows.mapInArrow(task, _ANSWER_TYPE)


class _Job(threading.Thread):
    """One job, waited for in a thread of its own: no call of Spark's has a time limit."""

    def __init__(self, spark: SparkJobs, task: Task, requests: Sequence[bytes]) -> None:
        super().__init__(name="spark-job", daemon=True)
        self._spark = spark
        self._session: Any = None
        self._task = task
        self._requests = requests
        self._tag = f"waybill-{uuid4().hex}"
        self.given_up = False
        self.sent = False
        self.failure: Exception | None = None
        self._table: pa.Table | None = None

    def run(self) -> None:
        try:
            self._session = self._spark.session()
            if self.given_up:
                return  # the session came too late: nobody waits for this job any more
            self._spark.tag(self._session, self._tag)
            job = frame(self._session, self._task, self._requests)
            self.sent = True
            self._table = job.toArrow()
        except Exception as error:
            _log.debug("a job of the engine failed", exc_info=error)
            self.failure = error

    def ordered(self) -> list[bytes]:
        """The answers in the order of the requests."""
        rows = self._table.to_pylist() if self._table is not None else []
        answers = {row["index"]: row["answer"] for row in rows}
        if sorted(answers) != list(range(len(self._requests))):
            raise EngineFailed(f"{len(self._requests)} lanes were sent and {len(answers)} answered")
        return [answers[index] for index in range(len(self._requests))]

    def end(self, limit_s: float) -> None:
        """Waits for a job that is about to end by itself, and gives it up when it does not within `limit_s`."""
        self.join(limit_s)
        if self.is_alive():
            self.give_up(limit_s)

    def give_up(self, limit_s: float) -> None:
        """Asks Spark to end the job and waits until it has; when it does not within `limit_s`, cuts the line."""
        self.given_up = True
        asking = threading.Thread(target=self._cancel, name="spark-cancel", daemon=True)
        asking.start()
        asking.join(limit_s)
        if not asking.is_alive():
            self.join(limit_s)
        if self.is_alive():
            self._spark.cut()

    def _cancel(self) -> None:
        try:
            if self._session is not None:
                self._spark.cancel(self._session, self._tag)
        except Exception as error:
            _log.debug("the engine could not be asked to end a job", exc_info=error)
