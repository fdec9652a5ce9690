"""What Airflow says of its switches is asked once for many requests, and is never older than it may be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import cast

import pytest

from connect_core.errors import Unreachable
from connect_core.orchestration import control
from connect_core.orchestration.rest import Dag
from connect_core.service import connectors
from connect_core.service.kept_switches import REST_S, KeptSwitches, SharedAnswer, keeping
from connect_core.service.opened import AtWork


def until(there: Callable[[], object]) -> None:
    limit = time.monotonic() + 30
    while not there():
        assert time.monotonic() < limit
        time.sleep(0.001)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """Answers how often it was asked; each answer takes so many seconds."""

    def __init__(self, clock: Clock, takes_s: float = 0.0) -> None:
        self.clock, self.takes_s, self.times = clock, takes_s, 0

    def __call__(self) -> int:
        self.times += 1
        self.clock.now += self.takes_s
        return self.times


def settled(asked: Asked, times: int, kept: SharedAnswer[int]) -> None:
    """Until the thread that asks has stored its answer."""
    until(lambda: asked.times == times and kept._asked is None)


@pytest.mark.parametrize(("takes_s", "rest"), [(0.0, 1.0), (0.05, 1.0), (0.4, 4.0), (2.0, 15.0)])
def test_it_is_asked_again_after_a_rest_and_an_old_answer_is_given_to_nobody(takes_s: float, rest: float) -> None:
    clock = Clock()
    kept, asked = SharedAnswer[int](clock), Asked(clock, takes_s)
    begun = clock.now
    assert kept.of(asked) == 1
    clock.now = begun + rest * 0.99
    assert kept.of(asked) == 1
    assert asked.times == 1
    clock.now = begun + rest * 1.01
    assert kept.of(asked) == 1  # and another one asks meanwhile
    settled(asked, 2, kept)
    assert kept.of(asked) == 2
    clock.now += 2 * rest
    assert kept.of(asked) == 3
    assert asked.times == 3


def test_an_answer_that_took_long_is_not_kept_for_longer_than_that() -> None:
    clock = Clock()
    kept, asked = SharedAnswer[int](clock), Asked(clock, 25.0)
    begun = clock.now
    assert kept.of(asked) == 1
    clock.now = begun + 2 * 25.0
    assert kept.of(asked) == 2


def test_many_ask_once() -> None:
    kept, go = SharedAnswer[int](), threading.Event()
    asked: list[int] = []

    def ask() -> int:
        asked.append(1)
        go.wait(30)
        return len(asked)

    with ThreadPoolExecutor(8) as callers:
        answers = [callers.submit(kept.of, ask) for _ in range(8)]
        until(lambda: asked)
        go.set()
        assert {answer.result() for answer in answers} == {1}


def test_what_was_asked_before_a_change_is_not_kept_behind_it() -> None:
    kept, go = SharedAnswer[str](), threading.Event()

    def slowly() -> str:
        go.wait(30)
        return "before"

    with ThreadPoolExecutor(1) as callers:
        before = callers.submit(kept.of, slowly)
        until(lambda: kept._asked is not None)
        kept.forget()
        assert kept.of(lambda: "after") == "after"
        go.set()
        assert before.result() == "before"
    assert kept.of(lambda: "later") == "after"


def test_an_error_is_given_to_all_and_not_for_long() -> None:
    clock, failure = Clock(), Unreachable("Airflow does not answer", where="here", next_step="Start it")
    kept = SharedAnswer[int](clock)

    def failing() -> int:
        clock.now += 30.0
        raise failure

    seen = []
    for _ in range(2):
        with pytest.raises(Unreachable) as caught:
            kept.of(failing)
        seen.append(caught.value)
    assert seen[0] is not seen[1] is not failure  # each has its own traceback
    assert [str(error) for error in seen] == [str(failure)] * 2
    clock.now += 2 * REST_S
    assert kept.of(lambda: 7) == 7


def test_what_nobody_expected_is_raised_and_asked_again() -> None:
    kept = SharedAnswer[int]()
    with pytest.raises(KeyError):
        kept.of(lambda: cast(dict[str, int], {})["dags"])
    assert kept.of(lambda: 1) == 1


class Airflow:
    """Its DAGs and switches."""

    def __init__(self) -> None:
        self.off: dict[str, bool] = {"replicate.copy": False, "replicate.x": True, "backfill.copy": True}
        self.asked: list[bool] = []

    def dags(self, *, tag: str, prefix: str, only_paused: bool) -> list[Dag]:
        self.asked.append(only_paused)
        return [Dag(one, off, is_stale=False, file_token="") for one, off in self.off.items() if off or not only_paused]

    def pause(self, dag_id: str, paused: bool) -> None:
        self.off[dag_id] = paused


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    found = Airflow()
    monkeypatch.setattr(control, "airflow_of", lambda home, settings: nullcontext(found))
    return found


@pytest.fixture
def kept() -> Iterator[KeptSwitches]:
    found = KeptSwitches()
    with keeping(found):
        yield found


def switch(opened: AtWork, say: Callable[[str], None] = pytest.fail) -> str:
    return connectors.states(opened, [opened.ledger.connector("copy")], say)["copy"].switch


def test_a_server_asks_for_many_requests_at_once(opened: AtWork, airflow: Airflow, kept: KeptSwitches) -> None:
    assert [switch(opened) for _ in range(5)] == ["on"] * 5
    assert sorted(airflow.asked) == [False, True]


def test_its_own_change_is_seen_at_once(opened: AtWork, airflow: Airflow, kept: KeptSwitches) -> None:
    assert switch(opened) == "on"
    connectors.set_state(opened, "copy", "paused")
    assert switch(opened) == "paused"
    connectors.set_state(opened, "copy", "running")
    assert switch(opened) == "on"


def test_an_airflow_that_is_away_is_told_to_each(
    opened: AtWork, kept: KeptSwitches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unreachable("Airflow does not answer")

    monkeypatch.setattr(control, "airflow_of", away)
    said: list[str] = []
    assert [switch(opened, said.append) for _ in range(3)] == ["unknown"] * 3
    assert len(said) == 3
    assert all("Airflow does not answer" in one for one in said)


def test_without_airflow_the_ledger_says_it(
    opened: AtWork, kept: KeptSwitches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "airflow_of", lambda home, settings: nullcontext(None))
    assert switch(opened) == "on"
    connectors.set_state(opened, "copy", "paused")
    assert switch(opened) == "paused"
