"""What the Spark client raises, as errors of this product: one clear sentence and never a Java stack trace.

Pure. The raw text is for the debug log, which the caller writes.
"""

from __future__ import annotations

import grpc
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from connect_core.engine.failures import LOOKED_UP
from connect_core.engine.spark_words import by_words, condition
from connect_core.errors import EngineFailed, Fatal, Refused, Unreachable, WaybillError

_RESTART = "Run `waybill engine stop`, then `waybill engine start`"

_BROKEN = ("SESSION_CHANGED", "SESSION_CLOSED", "SESSION_NOT_FOUND", "NO_ACTIVE_SESSION")
"""Conditions under which a session of this client is of no more use."""


def translated(error: Exception, *, sent: bool, where: str) -> WaybillError:
    """`sent` says whether lanes may have been started: then nothing is known of what they wrote."""
    if isinstance(error, WaybillError):
        return error
    for known in (_by_status, _by_words):
        if (found := known(error, where)) is not None:
            return found
    if _is_gone(error) or breaks_session(error):
        return _gone(sent, where)
    return EngineFailed(f"The engine could not run the job ({_short(error)})", where=where, next_step=LOOKED_UP)


def breaks_session(error: Exception) -> bool:
    """Whether the client must connect afresh."""
    return _is_gone(error) or any(name in condition(error) for name in _BROKEN)


def _gone(sent: bool, where: str) -> WaybillError:
    if sent:
        return EngineFailed("The engine went away while lanes were running", where=where, next_step=LOOKED_UP)
    return Unreachable("The engine does not answer", where=where, next_step="Run `waybill engine start`")


def _by_status(error: Exception, where: str) -> WaybillError | None:
    status = _status(error)
    if status in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return Refused(
            "The engine does not accept the token",
            where=where,
            next_step="Take the address of the engine that runs: waybill engine status",
        )
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return Fatal(
            "A lane or its answer is larger than the engine takes (128 MB)",
            where=where,
            next_step="Plan smaller ranges: limits.range_records",
        )
    return None


def _by_words(error: Exception, where: str) -> WaybillError | None:
    if (found := by_words(str(error), where, mend=_RESTART)) is not None:
        return found
    if "SESSION_CLOSED" in condition(error):
        return Fatal("The engine's session was stopped", where=where, next_step=_RESTART)
    return None


def _is_gone(error: Exception) -> bool:
    return _status(error) in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED) or isinstance(error, ValueError)


def _status(error: Exception) -> grpc.StatusCode | None:
    if isinstance(error, SparkConnectGrpcException):
        return error.getGrpcStatusCode()
    return error.code() if isinstance(error, grpc.RpcError) else None


def _short(error: Exception) -> str:
    return condition(error) or type(error).__name__
