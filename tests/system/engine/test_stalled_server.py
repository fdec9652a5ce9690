"""A Spark Connect server that takes the line and never says a word."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from connect_core.engine import spark_task
from connect_core.engine.spark_connect import SparkConnectEngine
from connect_core.engine.spark_jobs import SparkJobs
from connect_core.errors import EngineFailed, WaybillError

LIMIT_S = 0.5
HANGS_S = 15.0
"""Less than the client gives a server for its first word."""


@pytest.fixture
def stalled() -> Iterator[int]:
    """Its port. The kernel accepts; nobody reads."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_job_ends_within_its_limit_though_nobody_could_connect(stalled: int) -> None:
    engine, ended = SparkConnectEngine(f"sc://127.0.0.1:{stalled}"), list[Exception]()

    def job() -> None:
        try:
            engine.answers(spark_task.nothing, [b""], LIMIT_S)
        except Exception as error:
            ended.append(error)

    for _ in range(2):  # the next one is not held up for longer either
        asking = threading.Thread(target=job, daemon=True)
        asking.start()
        asking.join(HANGS_S)
    assert [type(one) for one in ended] == [EngineFailed, EngineFailed]
    assert all("gave no answer within 0.5 s" in str(one) for one in ended)


class Late(SparkJobs):
    """Its session comes when the test lets it."""

    where, looked_at = "here", "look"

    def __init__(self) -> None:
        self.comes, self.cut_at, self.tagged = threading.Event(), threading.Event(), list[str]()

    def session(self) -> object:
        self.comes.wait()
        return self

    described = "late"

    def require_private(self) -> None: ...

    def tag(self, session: object, tag: str) -> None:
        self.tagged.append(tag)

    def cancel(self, session: object, tag: str) -> None: ...

    def cut(self) -> None:
        self.cut_at.set()

    def translated(self, error: Exception, sent: bool) -> WaybillError:
        raise AssertionError(error)


def test_a_job_whose_session_came_too_late_is_not_sent() -> None:
    engine = Late()
    with pytest.raises(EngineFailed, match="gave no answer"):
        engine.answers(spark_task.nothing, [b""], 0.01)
    assert engine.cut_at.is_set()
    engine.comes.set()
    for job in [one for one in threading.enumerate() if one.name == "spark-job"]:
        job.join(HANGS_S)
    assert engine.tagged == []
