"""Retries by class of error: what Airflow tries again, how often, and what it gives up at once.

A task that fails says why in its log and exits with the code of its error (connect_core.errors), the same as the
command does. What time or another attempt can mend is tried again, first after a second, then after longer; what only a
person can mend fails at once. A task that was killed has no code: Airflow tries it again by itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Context, RetryDecision, RetryPolicy

from connect_core.errors import LeaseHeld, Retriable, Unreachable
from connect_core.orchestration import names

_FIRST_DELAY = timedelta(seconds=1)
_LONGEST_DELAY = timedelta(seconds=60)
_MENDED_BY_TIME = {Retriable.exit_code, Unreachable.exit_code, LeaseHeld.exit_code}


class ByErrorClass(RetryPolicy):
    """Fails at once for an exit code that no retry mends; everything else is left to the task's number of retries."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        if isinstance(exception, SystemExit) and exception.code not in _MENDED_BY_TIME:
            return RetryDecision.fail("a person must fix this: see the error above")
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        return {}


def patience() -> dict[str, Any]:
    """The arguments of every operator here that say how often it is tried."""
    return {
        "retries": names.RETRIES,
        "retry_delay": _FIRST_DELAY,
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": _LONGEST_DELAY,
        "retry_policy": ByErrorClass(),
    }
