"""What classic Spark raises in its driver, told in one sentence and sorted by what to do about it."""

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PythonException

from connect_core.engine.spark_classic_errors import translated
from connect_core.errors import EngineFailed, Fatal, Fenced, Unreachable, VersionMismatch, WaybillError

TRACE = "\norg.apache.spark.SparkException\n\tat java.base/java.lang.Thread.run(Thread.java:840)"


def raised(text: str) -> Exception:
    return PythonException(text + TRACE)


LOST = "ExecutorLostFailure (executor 0 exited caused by one of the running tasks) Reason: Command exited with code 137"

CASES: list[tuple[Exception, bool, type[WaybillError], str]] = [
    (raised("Python worker exited unexpectedly (crashed)"), True, EngineFailed, "A worker was killed"),
    (raised(LOST), True, EngineFailed, "An executor was lost"),
    (raised("Remote RPC client disassociated."), True, EngineFailed, "An executor was lost"),
    (raised("No module named 'connect_core'"), True, VersionMismatch, "cannot import"),
    (raised("[PYTHON_VERSION_MISMATCH] worker 3.12"), True, VersionMismatch, "another Python"),
    (Py4JNetworkError("Answer from Java side is empty"), True, EngineFailed, "went away while lanes were running"),
    (ConnectionRefusedError(111, "Connection refused"), False, Unreachable, "did not start"),
    (raised("All masters are unresponsive! Giving up."), False, Unreachable, "did not start"),
    (raised("Job 3 cancelled because SparkContext was shut down"), True, EngineFailed, "went away"),
    (raised("bigger than spark.driver.maxResultSize (1024.0 MiB)"), True, Fatal, "larger than Spark takes"),
    (raised("something nobody has seen"), True, EngineFailed, "could not run the job"),
]


@pytest.mark.parametrize(("error", "sent", "kind", "words"), CASES)
def test_each_error_has_its_recovery(error: Exception, sent: bool, kind: type[WaybillError], words: str) -> None:
    told = translated(error, sent=sent, where="local[2]")
    assert type(told) is kind
    assert words in told.what
    assert (told.where, bool(told.next_step)) == ("local[2]", True)
    assert "\n" not in str(told)
    assert "java" not in str(told)


def test_our_own_errors_pass() -> None:
    error = Fenced("x")
    assert translated(error, sent=True, where="") is error
