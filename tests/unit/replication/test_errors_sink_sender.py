"""When dead letters go to the second target, and when a run leaves them to the next one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connect_core.errors import LeaseHeld, Unreachable
from connect_core.replication.driver import errors_sink
from connect_core.replication.driver.errors_sink import ErrorsSinkSender
from connect_core.sdk.values import LIVE

SETTLED = SimpleNamespace(emitted=2, rejected=1)


class Sending:
    """A ledger in which so many letters wait, and a run that sends three at once, or raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, waiting: int = 7, **standing: Any) -> None:
        monkeypatch.setattr(errors_sink, "sending_context", lambda live, parts: parts)
        self.waiting, self.runs, self.lines = waiting, 0, list[str]()
        self.error: Exception | None = None
        there = {"deleted": False, "target_state": "running", "revision": 3, **standing}
        ledger = SimpleNamespace(
            letters_waiting=lambda uid: self.waiting,
            partitions=lambda uid: {},
            number_letters=lambda uid, partitions: ("parts",),
            standing=lambda uid: SimpleNamespace(**there),
        )
        self.context: Any = SimpleNamespace(
            stream=LIVE,
            resolved=SimpleNamespace(errors_sink="a sink"),
            connector=SimpleNamespace(uid="u", name="copy", revision=3),
            ledger=ledger,
            listener=SimpleNamespace(log=self.lines.append),
            halted=lambda: "",
            window_s=0.0,
        )
        self.sender = ErrorsSinkSender(self.context, self.run)

    def run(self, parts: Any) -> list[Any]:
        self.runs += 1
        if self.error:
            raise self.error
        moved = [SETTLED] if self.waiting else []
        self.waiting = max(self.waiting - 3, 0)
        return [SimpleNamespace(receipts=moved)]


def test_all_that_wait_are_sent_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(monkeypatch)
    assert sending.sender.send() is None
    assert (sending.runs, sending.waiting, len(sending.sender.receipts)) == (3, 0, 3)
    [said] = sending.lines
    assert said.startswith("6 dead letters sent to errors.sink; 3 it could not take")


@pytest.mark.parametrize(
    "standing", [{"deleted": True}, {"target_state": "paused"}, {"target_state": "stopped"}, {"revision": 4}]
)
def test_what_a_person_has_changed_leaves_them_to_the_next_run(
    monkeypatch: pytest.MonkeyPatch, standing: dict[str, Any]
) -> None:
    sending = Sending(monkeypatch, **standing)
    assert sending.sender.send() is None
    assert sending.runs == 0


def test_a_run_that_sends_nothing_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of partitions that another task has."""
    sending = Sending(monkeypatch)
    monkeypatch.setattr(sending.sender, "_run", lambda parts: [])
    assert sending.sender.send() is None
    assert sending.waiting == 7


def test_another_run_that_sends_them_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(monkeypatch)
    sending.error = LeaseHeld("somebody is working on this")
    assert sending.sender.send() is None
    assert sending.sender.send() is None
    assert len(sending.lines) == 1, "it is said once"


def test_what_stops_it_names_the_second_target(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(monkeypatch)
    sending.error = Unreachable("It is away", where="n:9876")
    error = sending.sender.send()
    assert isinstance(error, Unreachable)
    assert error.where == "errors.sink, n:9876"


def test_a_backfill_and_a_document_without_one_send_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for change in ({"stream": "backfill-1"}, {"resolved": SimpleNamespace(errors_sink=None)}):
        sending = Sending(monkeypatch)
        vars(sending.context).update(change)
        assert ErrorsSinkSender(sending.context, sending.run).send() is None
        assert sending.runs == 0
