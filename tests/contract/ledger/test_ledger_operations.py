"""Operations of callers, and the first answers to their requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from connect_core import clock
from connect_core.ledger import FirstAnswer, Ledger, Operation


@pytest.fixture
def uid(ledger: Ledger) -> str:
    return ledger.apply("orders", {"a": 1}, who="ann").connector.uid


def add(ledger: Ledger, uid: str, kind: str = "backfill") -> Operation:
    return ledger.add_operation(uid, kind, {"ranges": ["a:0-5"]}, who="ann", server="here")


def test_an_operation_from_its_beginning_to_its_end(ledger: Ledger, uid: str) -> None:
    made = add(ledger, uid)
    assert (made.connector, made.uid, made.state, made.step, made.asked) == (
        "orders",
        uid,
        "queued",
        1,
        {"ranges": ["a:0-5"]},
    )
    assert ledger.operation(made.id) == made
    assert not ledger.note_progress(made.id, {"done": 1})
    assert ledger.begin_operation(made.id)
    assert not ledger.begin_operation(made.id)
    assert ledger.note_progress(made.id, {"done": 1})
    assert ledger.end_operation(made.id, "succeeded", result={"delivered": 5})
    ended = ledger.operation(made.id)
    assert ended is not None
    assert (ended.state, ended.step, ended.progress, ended.result, ended.problem) == (
        "succeeded",
        4,
        {"done": 1},
        {"delivered": 5},
        None,
    )
    assert ended.begun_at is not None
    assert ended.ended_at is not None
    assert made.made_at <= ended.begun_at <= ended.ended_at
    assert ended.is_over
    assert next((one.action, one.detail) for one in ledger.audit(uid)) == ("begin backfill", {"operation": made.id})


def test_one_that_was_cancelled_tells_how_far_it_has_come(ledger: Ledger, uid: str) -> None:
    made = add(ledger, uid)
    ledger.begin_operation(made.id)
    ledger.end_operation(made.id, "cancelled")
    assert ledger.note_progress(made.id, {"done": 3})
    ended = ledger.operation(made.id)
    assert ended is not None
    assert (ended.state, ended.progress) == ("cancelled", {"done": 3})


def test_what_is_over_stays_as_it_is(ledger: Ledger, uid: str) -> None:
    made = add(ledger, uid)
    ledger.begin_operation(made.id)
    assert ledger.end_operation(made.id, "failed")
    before = ledger.operation(made.id)
    assert not ledger.end_operation(made.id, "cancelled", problem={"detail": "x"})
    assert not ledger.begin_operation(made.id)
    assert not ledger.note_progress(made.id, {})
    assert ledger.operation(made.id) == before
    assert ledger.operation("0" * 13) is None


def test_operations_are_listed_the_newest_first(ledger: Ledger, uid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = ledger.apply("other", {"a": 1}, who="ann").connector.uid
    begin, made = clock.utc(), list[str]()
    for number, of in enumerate((uid, other, uid)):
        monkeypatch.setattr(clock, "utc", lambda number=number: begin + timedelta(seconds=number))
        made.append(add(ledger, of).id)
    ledger.end_operation(made[2], "failed")
    assert [one.id for one in ledger.operations()] == made[::-1]
    assert [one.id for one in ledger.operations([uid])] == [made[2], made[0]]
    assert [one.id for one in ledger.operations([])] == []
    assert [one.id for one in ledger.operations(only_open=True)] == [made[1], made[0]]
    assert [one.id for one in ledger.operations(limit=1, behind=made[2])] == [made[1]]


def take(ledger: Ledger, attempt: str, *, caller: str = "ci", key: str = "k") -> FirstAnswer:
    return ledger.take_key(caller, key, digest="d" * 64, server="here", attempt=attempt)


def test_a_key_is_taken_once_and_has_the_first_answer(ledger: Ledger) -> None:
    assert (take(ledger, "1").attempt, take(ledger, "2").attempt) == ("1", "1")
    assert take(ledger, "3", caller="another").attempt == "3"
    assert not ledger.keep_answer("ci", "k", "2", status=200, headers={}, body="second")
    assert ledger.keep_answer("ci", "k", "1", status=201, headers={"etag": '"1"'}, body="first")
    found = take(ledger, "4")
    assert (found.status, found.headers, found.body, found.digest) == (201, {"etag": '"1"'}, "first", "d" * 64)
    assert not ledger.keep_answer("ci", "k", "1", status=200, headers={}, body="again")


def test_of_requests_at_the_same_moment_one_has_the_key(ledger: Ledger) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: take(ledger, str(number)).attempt, range(8)))
    assert len(set(found)) == 1


def test_a_key_that_nobody_works_on_is_taken_over_once(ledger: Ledger) -> None:
    former = take(ledger, "1")
    assert ledger.take_over_key("ci", "k", former, server="there", attempt="2")
    assert not ledger.take_over_key("ci", "k", former, server="there", attempt="3")
    assert not ledger.keep_answer("ci", "k", "1", status=200, headers={}, body="late")
    ledger.forget_key("ci", "k", "1")
    assert take(ledger, "4").attempt == "2"
    ledger.forget_key("ci", "k", "2")
    assert take(ledger, "5").attempt == "5"


def test_an_answer_is_kept_for_a_day(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = clock.utc()
    take(ledger, "1")
    monkeypatch.setattr(clock, "utc", lambda: begin + timedelta(hours=23, minutes=59))
    assert take(ledger, "2").attempt == "1"
    monkeypatch.setattr(clock, "utc", lambda: begin + timedelta(hours=24, minutes=1))
    assert take(ledger, "3").attempt == "3"
