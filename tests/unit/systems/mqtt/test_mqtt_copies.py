"""Copies of a message for several subscriptions are told from the message, whichever way a broker sends them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.systems.mqtt.copies import Copies, identifier_of, with_identifier
from connect_core.systems.mqtt.deduplication import Deduplication, is_doubtful
from connect_core.systems.mqtt.packets import Packet
from connect_core.systems.mqtt.session_state import Reception
from connect_core.systems.topic_filters import matches

FILTERS = ("devices/+/state", "alarms", "devices/1/#", "+/1/state")
LEVELS = st.sampled_from(["devices", "alarms", "1", "2", "state"])


def test_only_filters_that_overlap_have_an_identifier() -> None:
    assert with_identifier(FILTERS) == ["devices/+/state", "devices/1/#", "+/1/state"]
    assert with_identifier(("a", "b/#")) == []
    assert with_identifier(("$share/g/a", "$share/h/a")) == []


@given(st.text(min_size=1))
def test_identifiers_are_as_the_protocol_has_them(topic_filter: str) -> None:
    assert 1 <= identifier_of(topic_filter) <= 268_435_455


@given(st.lists(LEVELS, min_size=1, max_size=4).map("/".join))
def test_of_all_packets_for_a_message_one_is_no_copy(topic: str) -> None:
    copies = Copies(FILTERS)
    each = [identifier_of(one) for one in with_identifier(FILTERS) if matches(one, topic)]
    assert sum(not copies.is_copy(topic.encode(), (one,)) for one in each) == bool(each)
    assert not copies.is_copy(topic.encode(), each), "one packet for all of them"


def test_a_packet_for_a_subscription_of_before_is_no_copy() -> None:
    assert not Copies(FILTERS).is_copy(b"elsewhere", (identifier_of("elsewhere"),))


def test_without_identifiers_nothing_is_a_copy() -> None:
    reception = Reception(0, Deduplication(), copies=Copies(FILTERS))
    assert not any(one.doubtful for one in reception.take([Packet(b"devices/1/state", b"x", 1, n) for n in (1, 2)]))


@pytest.mark.parametrize("qos", [0, 1])
def test_a_copy_is_delivered_and_may_be_a_duplicate(qos: int) -> None:
    reception = Reception(0, Deduplication(), copies=Copies(FILTERS))
    ids = [identifier_of(one) for one in ("devices/+/state", "devices/1/#")]
    packets = [
        Packet(b"devices/1/state", b"x", qos, (number + 1) * qos, subscriptions=(one,))
        for number, one in enumerate(ids)
    ]
    arrived = reception.take(packets)
    assert [(one.number, one.doubtful, is_doubtful(one.trace)) for one in arrived] == [
        (0, False, False),
        (1, True, bool(qos)),
    ]
