import json
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.engine import envelope
from connect_core.errors import EngineFailed, Failure, Fenced, VersionMismatch
from connect_core.sdk.scan import ScanResult
from connect_core.work import Lane, Outcome, ScanTask
from tests.unit.engine.lanes import lane, scan_task


def test_a_request_comes_out_as_it_went_in(tmp_path: Path) -> None:
    wanted = lane(tmp_path, ranges=3)
    assert envelope.opened(envelope.request(wanted), Lane) == wanted


def test_a_large_request_travels_compressed(tmp_path: Path) -> None:
    wanted = lane(tmp_path, secret="x" * 1_000_000)
    packed = envelope.request(wanted)
    assert len(packed) < 10_000
    assert envelope.opened(packed, Lane) == wanted


def test_a_request_of_the_wrong_kind_is_no_request() -> None:
    with pytest.raises(TypeError, match="expected Lane, got ScanTask"):
        envelope.opened(envelope.request(scan_task()), Lane)


def test_a_request_for_other_code_is_not_opened() -> None:
    with pytest.raises(VersionMismatch):
        envelope.opened(envelope.request(replace(scan_task(), code="other")), ScanTask)


def test_answers_come_out_as_they_went_in(tmp_path: Path) -> None:
    said = [Outcome(0, None, Failure("Refused", "no"), clean=False)]
    assert envelope.outcomes(lane(tmp_path), envelope.answer(said)) == said
    seen = envelope.found(envelope.answer({7: ScanResult({"q": 3}, complete=True)}))
    assert dict(seen[7].scanned) == {"q": 3}


def test_a_refusal_counts_for_every_range(tmp_path: Path) -> None:
    failure = Failure.of(Fenced("too late", where="here", next_step="wait"))
    outcomes = envelope.outcomes(lane(tmp_path, ranges=2), envelope.refusal(failure, clean=True))
    assert outcomes == [Outcome(0, None, failure), Outcome(1, None, failure)]


def test_a_refusal_of_other_code_can_be_read(tmp_path: Path) -> None:
    told = {"kind": "VersionMismatch", "what": "other code", "family": "VersionMismatch", "colour": "new here"}
    answer = json.dumps({"refused": told, "clean": True}).encode() + b"\n"
    (outcome,) = envelope.outcomes(lane(tmp_path), answer)
    assert outcome.failure is not None
    assert isinstance(outcome.failure.as_error(), VersionMismatch)


def test_a_refused_search_is_raised() -> None:
    with pytest.raises(Fenced, match="too late"):
        envelope.found(envelope.refusal(Failure.of(Fenced("too late")), clean=True))


def test_an_answer_that_was_cut_off_is_a_failure_of_the_engine(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match="cut off"):
        envelope.outcomes(lane(tmp_path), b'{"zstd"')
