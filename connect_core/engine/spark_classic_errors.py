"""What classic Spark raises in its driver, as errors of this product: one clear sentence and never a Java stack trace.

Pure. The raw text is for the debug log, which the caller writes. What Spark has no condition for is known by its words.
"""

from __future__ import annotations

from py4j.protocol import Py4JError, Py4JNetworkError

from connect_core.engine.failures import LOOKED_UP
from connect_core.engine.spark_words import by_words, condition
from connect_core.errors import EngineFailed, Fatal, Unreachable, WaybillError

_EXECUTOR_LOST = ("ExecutorLostFailure", "Remote RPC client disassociated", "Executor heartbeat timed out")
_NO_SPARK = ("All masters are unresponsive", "Application has been killed", "Master removed our application")
_STOPPED = ("SparkContext was shut down", "stopped SparkContext", "SparkContext is stopped")


def translated(error: Exception, *, sent: bool, where: str) -> WaybillError:
    """`sent` says whether lanes may have been started: then nothing is known of what they wrote."""
    if isinstance(error, WaybillError):
        return error
    text = str(error)
    if (
        found := by_words(text, where, mend="Install the same release of waybill for the executors' Python")
    ) is not None:
        return found
    if any(words in text for words in _EXECUTOR_LOST):
        return EngineFailed("An executor was lost while lanes were running", where=where, next_step=LOOKED_UP)
    if _is_gone(error, text):
        return _gone(sent, where)
    if "spark.driver.maxResultSize" in text or "exceeds max allowed: spark.rpc.message.maxSize" in text:
        return Fatal(
            "A lane or its answer is larger than Spark takes",
            where=where,
            next_step="Plan smaller ranges: limits.range_records",
        )
    what = f"Spark could not run the job ({condition(error) or type(error).__name__})"
    return EngineFailed(what, where=where, next_step=LOOKED_UP)


def _is_gone(error: Exception, text: str) -> bool:
    lost = isinstance(error, (Py4JNetworkError, ConnectionError)) or (
        isinstance(error, Py4JError) and "Answer from Java side is empty" in text
    )
    return lost or any(words in text for words in (*_NO_SPARK, *_STOPPED))


def _gone(sent: bool, where: str) -> WaybillError:
    if sent:
        return EngineFailed("Spark went away while lanes were running", where=where, next_step=LOOKED_UP)
    return Unreachable("Spark did not start", where=where, next_step="Look at the master's page and the driver's log")
