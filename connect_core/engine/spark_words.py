"""What the words of a Spark error mean, resident or classic: Spark gives most failures of workers no name. Pure."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from connect_core.engine.failures import OUT_OF_TIME
from connect_core.errors import EngineFailed, VersionMismatch, WaybillError

_TRIED_AGAIN = re.compile(r"Attempt \d+ of a lane was refused")


def by_words(text: str, where: str, mend: str) -> WaybillError | None:
    """`mend` is what to do when workers run something else than their driver."""
    if refused := _TRIED_AGAIN.search(text):
        return EngineFailed(
            f"{refused[0]}: the one before it may have written",
            where=where,
            next_step="Switch task retries off: spark.task.maxFailures=1",
        )
    if "Python worker exited unexpectedly" in text or "Python worker process terminated" in text:
        return EngineFailed(
            "A worker was killed or crashed while its lane was running: by Waybill itself when the lane's deadline had"
            " passed, or else by the system (out of memory?) or by a person",
            where=where,
            next_step=OUT_OF_TIME,
        )
    if "No module named 'connect_core" in text:
        return VersionMismatch("The engine's workers cannot import connect_core", where=where, next_step=mend)
    if "PYTHON_VERSION_MISMATCH" in text:
        return VersionMismatch("The engine's workers run another Python", where=where, next_step=mend)
    return None


def condition(error: Exception) -> str:
    """Spark's name for what happened; empty when it has none."""
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""
