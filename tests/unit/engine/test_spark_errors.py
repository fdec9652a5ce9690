"""What the client raises, told in one sentence and sorted by what to do about it."""

import grpc
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from connect_core.engine.spark_errors import breaks_session, translated
from connect_core.errors import EngineFailed, Fatal, Fenced, Refused, Unreachable, VersionMismatch, WaybillError

TRACE = "\norg.apache.spark.SparkException\n\tat java.base/java.lang.Thread.run(Thread.java:840)"


def raised(text: str = "x", status: grpc.StatusCode = grpc.StatusCode.INTERNAL, name: str | None = None) -> Exception:
    return SparkConnectGrpcException(
        message=text + TRACE, errorClass=name, messageParameters={} if name else None, grpc_status_code=status
    )


CASES: list[tuple[Exception, bool, type[WaybillError]]] = [
    (raised(status=grpc.StatusCode.UNAVAILABLE), False, Unreachable),
    (raised(status=grpc.StatusCode.UNAVAILABLE), True, EngineFailed),
    (raised(status=grpc.StatusCode.UNAUTHENTICATED), False, Refused),
    (raised(status=grpc.StatusCode.RESOURCE_EXHAUSTED), True, Fatal),
    (raised("Python worker exited unexpectedly (crashed)"), True, EngineFailed),
    (raised("ModuleNotFoundError: No module named 'connect_core'"), True, VersionMismatch),
    (raised("[PYTHON_VERSION_MISMATCH] worker 3.12"), True, VersionMismatch),
    (raised(name="INVALID_HANDLE.SESSION_CLOSED"), False, Fatal),
    (raised(name="INVALID_HANDLE.SESSION_CHANGED"), False, Unreachable),
    (ValueError("Cannot invoke RPC on closed channel!"), True, EngineFailed),
    (raised("something nobody has seen"), True, EngineFailed),
]


@pytest.mark.parametrize(("error", "sent", "kind"), CASES)
def test_each_error_has_its_recovery(error: Exception, sent: bool, kind: type[WaybillError]) -> None:
    told = translated(error, sent=sent, where="localhost:1")
    assert type(told) is kind
    assert told.where == "localhost:1"
    assert told.next_step
    assert "\n" not in str(told)
    assert "java" not in str(told)


def test_our_own_errors_pass() -> None:
    error = Fenced("x")
    assert translated(error, sent=True, where="") is error


def test_a_session_is_given_up_only_when_it_is_of_no_more_use() -> None:
    assert breaks_session(raised(status=grpc.StatusCode.UNAVAILABLE))
    assert breaks_session(raised(name="INVALID_HANDLE.SESSION_CHANGED"))
    assert not breaks_session(raised("Python worker exited unexpectedly (crashed)"))
