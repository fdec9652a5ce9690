"""Which lanes a worker process refuses, and that a refusal leaves no trace."""

import fcntl
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.clock import now_ns
from connect_core.engine import envelope
from connect_core.engine.dialling import DialIn
from connect_core.engine.worker import run_lane, run_search, stay
from connect_core.errors import EngineFailed, VersionMismatch
from connect_core.work import Lane, Outcome
from tests.unit.engine.lanes import lane, scan_task


def refused(wanted: Lane, attempt_number: int = 0) -> Outcome:
    first, second = envelope.outcomes(wanted, run_lane(envelope.request(wanted), attempt_number))
    assert first.receipt is None
    assert first.failure == second.failure
    assert [first.range_id, second.range_id] == [item.id for item in wanted.ranges]
    return first


REFUSED: dict[str, tuple[Callable[[Lane], Lane], str, str]] = {
    "other code": (lambda lane: replace(lane, code="0.0.1+other"), "VersionMismatch", "runs other code"),
    "other boot": (lambda lane: replace(lane, boot_id="another"), "Retriable", "another boot"),
    "late": (lambda lane: replace(lane, deadline_ns=now_ns() - 1), "Retriable", "after its deadline"),
    "ended": (lambda lane: replace(lane, lock_paths=("/nowhere/lock",)), "Fenced", "has ended"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_lane_that_may_not_run_is_refused_cleanly(tmp_path: Path, case: str) -> None:
    change, kind, words = REFUSED[case]
    note = tmp_path / "note"
    outcome = refused(change(lane(tmp_path, ranges=2, note=note)))
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.clean) == (kind, True)
    assert words in outcome.failure.what
    assert not note.exists()


def test_a_lane_is_refused_while_a_challenger_has_its_lock(tmp_path: Path) -> None:
    wanted = lane(tmp_path, ranges=2)
    challenger = os.open(wanted.lock_paths[0], os.O_RDWR)
    fcntl.flock(challenger, fcntl.LOCK_EX)
    try:
        outcome = refused(wanted)
    finally:
        os.close(challenger)
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.clean) == ("Fenced", True)


def test_a_repeated_task_is_refused_and_nothing_is_known_of_its_first_attempt(tmp_path: Path) -> None:
    outcome = refused(lane(tmp_path, ranges=2), attempt_number=1)
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.clean) == ("EngineFailed", False)
    assert "spark.task.maxFailures" in outcome.failure.next_step


def test_a_lane_of_other_code_is_not_even_unpickled() -> None:
    poison = b'{"code": "0.0.1+other"}\n' + b"not a pickle"
    answer = run_lane(poison, 0)
    with pytest.raises(VersionMismatch, match="waybill engine stop"):
        envelope.found(answer)


def test_a_search_of_other_code_is_refused() -> None:
    answer = run_search(envelope.request(replace(scan_task(), code="0.0.1+other")))
    with pytest.raises(VersionMismatch):
        envelope.found(answer)


def test_a_repeated_worker_that_is_to_stay_does_not_dial() -> None:
    """Nobody sent it a lane, but the one before it may have worked on one."""
    with DialIn(1) as dial_in:
        with pytest.raises(EngineFailed, match="Attempt 1 of a lane was refused"):
            stay(dial_in.invitations()[0], 1)
        assert dial_in.lines(0.2, lambda: True) == []
