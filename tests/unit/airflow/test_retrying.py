"""What Airflow tries again, by class of error."""

from __future__ import annotations

import pytest
from airflow.sdk import RetryAction

from connect_core import errors
from connect_core.airflow.retrying import ByErrorClass


@pytest.mark.parametrize("kind", [errors.Retriable, errors.Unreachable, errors.LeaseHeld, errors.EngineFailed])
def test_what_time_or_another_attempt_mends_is_tried_again(kind: type[errors.WaybillError]) -> None:
    decision = ByErrorClass().evaluate(SystemExit(kind.exit_code), 1, 8)
    assert decision.action is RetryAction.DEFAULT


@pytest.mark.parametrize("kind", [errors.ConfigError, errors.OffsetGone, errors.Refused, errors.VersionMismatch])
def test_what_only_a_person_mends_fails_at_once(kind: type[errors.WaybillError]) -> None:
    decision = ByErrorClass().evaluate(SystemExit(kind.exit_code), 1, 8)
    assert decision.action is RetryAction.FAIL
    assert decision.reason


def test_an_error_of_nobody_s_is_tried_again() -> None:
    assert ByErrorClass().evaluate(ValueError("a defect"), 1, 8).action is RetryAction.DEFAULT
