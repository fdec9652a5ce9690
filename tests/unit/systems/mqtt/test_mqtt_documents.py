"""What becomes of a session when its document changes while a range is open, or after a quantum of which nothing was
settled. Without a broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import Bounds, Json, Pins, Position, Range
from connect_core.systems.mqtt import source as module
from connect_core.systems.mqtt.deduplication import UnconfirmedRecord
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.probing import BrokerFacts
from connect_core.systems.mqtt.session_state import SessionState
from connect_core.systems.mqtt.source import MqttSource

SECOND = Partition("session-1")
ONE = np.ones(1, dtype=np.int64)
SOMETHING = ScanResult(hits=np.array([[5, 0, 0, 0]], dtype=np.int64), traces=ONE << 50, outputs=ONE)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_lost", lambda options, session, standing: False)
    monkeypatch.setattr(module, "broker_facts", lambda options: BrokerFacts())


def source(*filters: str, **more: Any) -> MqttSource:
    given = {"host": "h", "filters": list(filters), "uid": "u", "sessions": 2, **more}
    return MqttSource(MqttSourceOptions.model_validate(given))


def planned(by: MqttSource, settled: SessionState) -> Json:
    """The evidence of the range that is planned from there, when what was chosen is kept."""
    seen = seen_by(by, settled)
    return seen_by(by, SessionState.of(seen.evidence)).evidence if seen.chosen else seen.evidence


def seen_by(by: MqttSource, settled: SessionState) -> Bounds:
    return by.available_offsets({SECOND: Position(0, 5, settled.evidence())})[SECOND]


def left_open(evidence: Json) -> Range:
    return Range("live", SECOND, 1, 0, 5, 1 << 62, 10, 10, evidence, Pins(1, "p", {}, "code"))


def test_a_session_with_records_is_there_also_when_the_document_needs_it_no_more() -> None:
    """Its first quantum died with records in the target; it has to be emptied before it is given up."""
    range_ = left_open(planned(source("a/#", "b/#"), SessionState()))
    after = source("a/#")
    told = after.recovered(range_, SOMETHING).evidence
    assert SessionState.of(told).subscribed == ("b/#",)
    assert after.available_offsets({SECOND: Position(0, 6, told)})[SECOND].pushes


def test_what_a_dead_quantum_may_have_subscribed_to_is_unsubscribed_later() -> None:
    range_ = left_open(planned(source("a/#", "c/#"), SessionState(("b/#",))))
    for found in (SOMETHING, ScanResult()):
        told = source("a/#", "d/#").recovered(range_, found).evidence
        assert SessionState.of(told).subscribed == ("b/#", "c/#")


def test_a_session_of_which_nothing_came_may_not_be_there() -> None:
    range_ = left_open(planned(source("a/#", "b/#"), SessionState()))
    assert SessionState.of(source("a/#", "b/#").recovered(range_, ScanResult()).evidence) == SessionState(
        witnessed=True
    )


def test_what_a_dead_quantum_wrote_came_later_than_what_had_higher_numbers() -> None:
    """A person has set the number back in between. Of two records with one id the later one is believed."""
    before = UnconfirmedRecord(90, (1 << 50) + 1)
    told = source("a/#", "b/#").recovered(left_open(SessionState(("b/#",), (before,)).evidence()), SOMETHING).evidence
    assert [one.trace for one in SessionState.of(told).entries] == [before.trace, 1 << 50]


def test_a_filter_that_moves_to_another_session_is_told_once() -> None:
    """Each session does it at its own time: what is published in between comes to both, or to none. A run in which it
    were told again at each look would move nothing."""
    by = source("b/+", "c/#")
    told = seen_by(by, SessionState(("b/1", "c/#")))
    assert [(gap.warns, gap.loses, gap.reason.split(":")[0]) for gap in told.gaps] == [
        (True, False, "b/1 is subscribed by another session from now on")
    ]
    assert seen_by(by, SessionState.of(told.evidence)).gaps == ()
    left = SessionState.of(seen_by(by, replace(SessionState.of(told.evidence), subscribed=("c/#",))).evidence)
    assert len(seen_by(by, replace(left, subscribed=("b/1", "c/#"))).gaps) == 1, "it moves again"
    for standing in (
        SessionState(("c/#",)),
        SessionState(("d/#", "c/#")),
        SessionState(("$share/g/b/+", "c/#")),
    ):
        assert seen_by(by, standing).gaps == ()


def test_a_range_of_an_older_version_has_what_the_document_says() -> None:
    range_ = left_open(SessionState(("b/#",)).evidence())
    told = source("a/#", "c/#").recovered(range_, SOMETHING).evidence
    assert SessionState.of(told).subscribed == ("b/#", "c/#")


GRANTED = SessionState(("b/#",), granted=(("b/#", 1),))


@pytest.mark.parametrize(
    ("by", "subscribed"),
    [
        (source("a/#", "c/#", protocol="3.1.1"), ("b/#", "c/#")),
        (source("a/#", "b/#", protocol="3.1.1", qos=0), ("b/#",)),
        (source("a/#"), ("b/#",)),
    ],
)
def test_what_a_quantum_may_take_back_is_not_settled_as_granted(by: MqttSource, subscribed: tuple[str, ...]) -> None:
    """The document is as before when the next run begins, and the quantum between settled nothing."""
    seen = seen_by(by, GRANTED)
    assert seen.chosen
    settled = SessionState.of(seen.evidence)
    assert settled == SessionState(subscribed)
    assert settled.not_granted(["b/#"], 1) == ["b/#"]
    assert not seen_by(by, settled).chosen, "what was kept is not kept again"


def test_nothing_is_kept_where_nothing_changes() -> None:
    assert not seen_by(source("a/#", "b/#"), GRANTED).chosen
    assert not seen_by(source("a/#", "b/#"), SessionState()).chosen, "a session that is not there yet"


def test_what_is_to_be_told_is_not_kept_before_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the session is lost, or was left; and that the broker has dropped messages."""
    monkeypatch.setattr(module, "broker_facts", lambda options: BrokerFacts(dropped=9))
    by, settled = source("a/#", "c/#"), replace(GRANTED, dropped=7)
    for _ in range(2):
        seen = seen_by(by, settled)
        assert "dropped 2 messages" in seen.gaps[0].reason
        settled = SessionState.of(seen.evidence) if seen.chosen else settled
    monkeypatch.setattr(module, "is_lost", lambda options, session, standing: True)
    seen = seen_by(source("a/#", "c/#"), GRANTED)
    assert seen.gaps[0].reason == module.LOST
    assert SessionState.of(seen.evidence).subscribed == ("b/#", "c/#")


@pytest.mark.parametrize("said", ["count_up", "used_again", "detect"])
def test_that_ids_count_up_is_settled_only_where_it_was_learned(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(module, "broker_facts", lambda options: BrokerFacts("mosquitto version 2.0.11"))
    assert SessionState.of(planned(source("a/#", "b/#", packet_ids=said), GRANTED)).counts_up == (said == "detect")


def test_another_broker_may_count_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_lost", lambda options, session, standing: True)
    assert not SessionState.of(planned(source("a/#", "b/#"), replace(GRANTED, counts_up=True))).counts_up


@pytest.mark.parametrize("said", ["count_up", "used_again", "detect"])
def test_dropped_messages_are_told_whatever_is_said_of_packet_ids(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(module, "broker_facts", lambda options: BrokerFacts(dropped=9))
    [gap] = seen_by(source("a/#", "b/#", packet_ids=said), replace(GRANTED, dropped=7)).gaps
    assert "dropped 2 messages" in gap.reason
