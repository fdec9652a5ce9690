"""What becomes of a session when its document changes while a range is open, or after a quantum of which nothing was
settled. Without a broker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import Json, Pins, Position, Range
from connect_core.systems.mqtt import source as module
from connect_core.systems.mqtt.facts import BrokerFacts
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.source import MqttSource
from connect_core.systems.mqtt.standing import SessionStanding

SECOND = Partition("session-1")
ONE = np.ones(1, dtype=np.int64)
SOMETHING = ScanResult(hits=np.array([[5, 0, 0, 0]], dtype=np.int64), traces=ONE << 50, outputs=ONE)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_lost", lambda options, session, standing: False)
    monkeypatch.setattr(module, "ask", lambda options: BrokerFacts())


def source(*filters: str, **more: Any) -> MqttSource:
    given = {"host": "h", "filters": list(filters), "uid": "u", "sessions": 2, **more}
    return MqttSource(MqttSourceOptions.model_validate(given))


def planned(by: MqttSource, settled: SessionStanding) -> Json:
    """The evidence of the range that is planned from there."""
    return by.available_offsets({SECOND: Position(0, 5, settled.evidence())})[SECOND].evidence


def left_open(evidence: Json) -> Range:
    return Range("live", SECOND, 1, 0, 5, 1 << 62, 10, 10, evidence, Pins(1, "p", {}, "code"))


def test_a_session_with_records_is_there_also_when_the_document_needs_it_no_more() -> None:
    """Its first quantum died with records in the target; it has to be emptied before it is given up."""
    range_ = left_open(planned(source("a/#", "b/#"), SessionStanding()))
    after = source("a/#")
    told = after.recovered(range_, SOMETHING).evidence
    assert SessionStanding.of(told).subscribed == ("b/#",)
    assert after.available_offsets({SECOND: Position(0, 6, told)})[SECOND].pushes


def test_what_a_dead_quantum_may_have_subscribed_to_is_unsubscribed_later() -> None:
    range_ = left_open(planned(source("a/#", "c/#"), SessionStanding(("b/#",))))
    for found in (SOMETHING, ScanResult()):
        told = source("a/#", "d/#").recovered(range_, found).evidence
        assert SessionStanding.of(told).subscribed == ("b/#", "c/#")


def test_a_session_of_which_nothing_came_may_not_be_there() -> None:
    range_ = left_open(planned(source("a/#", "b/#"), SessionStanding()))
    assert SessionStanding.of(source("a/#", "b/#").recovered(range_, ScanResult()).evidence) == SessionStanding(
        witnessed=True
    )


def test_a_range_of_an_older_version_has_what_the_document_says() -> None:
    range_ = left_open(SessionStanding(("b/#",)).evidence())
    told = source("a/#", "c/#").recovered(range_, SOMETHING).evidence
    assert SessionStanding.of(told).subscribed == ("b/#", "c/#")
