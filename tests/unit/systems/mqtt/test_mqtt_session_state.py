"""What is settled with a position of a session, what a broker grants, and what of its dropped messages is told."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from connect_core.errors import ConfigError, Refused
from connect_core.systems.mqtt.connection import Grants
from connect_core.systems.mqtt.deduplication import UnconfirmedRecord
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import _require_left
from connect_core.systems.mqtt.session_state import SessionState

STANDING = SessionState(("a",), (UnconfirmedRecord(3, 5, True, False),), True, True, 7, (("a", 1),))


def test_evidence_keeps_everything() -> None:
    assert SessionState.of(STANDING.evidence()) == STANDING
    assert SessionState.of({}) == SessionState()
    assert SessionState.of({"subscribed": ["a"]}) == SessionState(("a",)), "of an older version"
    assert SessionState.of({"subscribed": ["a"], "counts_up": True}) == SessionState(("a",)), "learned from less"


def test_what_was_under_way_in_a_session_that_seems_lost_is_known() -> None:
    """It may be there after all. How ids are given out is not: it may be another broker."""
    entries = (UnconfirmedRecord(3, 5, sent=True, confirmed=True),)
    lost = STANDING.without_session()
    assert lost == SessionState(entries=entries, dropped=7, losses=1)
    assert SessionState.of(lost.evidence()) == lost
    assert lost.without_session().losses == 2


def test_what_is_not_known_to_be_granted() -> None:
    assert STANDING.not_granted(["a", "b"], 1) == ["b"]
    assert STANDING.not_granted(["a"], 0) == ["a"], "with another QoS"
    assert SessionState.of({"subscribed": ["a"]}).not_granted(["a"], 1) == ["a"], "of an older version"


@pytest.mark.parametrize(
    ("before", "dropped", "more"),
    [(None, 9, ""), (7, None, ""), (7, 7, ""), (7, 9, "dropped 2 messages"), (7, 3, "dropped 3 messages"), (7, 0, "")],
)
def test_what_a_broker_has_dropped_is_told_when_the_count_grows(
    before: int | None, dropped: int | None, more: str
) -> None:
    """One that went back began anew, with the broker."""
    standing, told = SessionState(("a",), dropped=before).with_dropped(dropped)
    assert standing.dropped == (before if dropped is None else dropped)
    assert (more in told) if more else not told


def test_nothing_is_told_of_a_session_that_has_not_begun() -> None:
    assert SessionState(dropped=1).with_dropped(5) == (SessionState(dropped=5), "")


def options(**more: object) -> MqttSourceOptions:
    return MqttSourceOptions.model_validate({"host": "h", "filters": ["a/+"], "uid": "u", **more})


@pytest.mark.parametrize(
    ("said", "more", "lacking"),
    [
        ({}, {}, ""),
        ({"SessionExpiryInterval": 3600}, {}, "keeps sessions for 3,600 s"),
        ({"SessionExpiryInterval": 3600}, {"session_expiry_s": 3600}, ""),
        ({"MaximumQoS": 0}, {}, "QoS 0 at most"),
        ({"MaximumQoS": 0}, {"qos": 0}, ""),
        ({"WildcardSubscriptionAvailable": 0}, {}, "no filters with + and #"),
        ({"WildcardSubscriptionAvailable": 0}, {"filters": ["a"]}, ""),
        ({"SharedSubscriptionAvailable": 0}, {"filters": ["$share/g/a"]}, "no shared subscriptions"),
    ],
)
def test_what_a_broker_does_not_grant(said: dict[str, int], more: dict[str, object], lacking: str) -> None:
    grants = Grants.of(SimpleNamespace(**said))
    if not lacking:
        grants.require(options(**more))
        return
    with pytest.raises(ConfigError, match=lacking.replace("+", r"\+")):
        grants.require(options(**more))


def test_a_broker_of_3_1_1_says_nothing() -> None:
    assert Grants.of(None) == Grants()


def test_who_is_not_unsubscribed_is_told() -> None:
    """That there was no subscription is fine; 3.1.1 has no reasons."""
    done, none, refused = (ReasonCode(PacketTypes.UNSUBACK, identifier=code) for code in (0x00, 0x11, 0x87))
    _require_left("here", ["a", "b"], [done, none])
    _require_left("here", ["a", "b"], [])
    with pytest.raises(Refused, match="does not unsubscribe from b"):
        _require_left("here", ["a", "b"], [done, refused])
