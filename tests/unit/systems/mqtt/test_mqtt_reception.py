"""Whatever dies when, nothing is lost, and what is there twice was counted: against a model of a broker, for the three
ways of giving out packet ids and both ways of acknowledging, all devices saying the same."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connect_core.systems.mqtt.session_state import SessionState
from tests.unit.systems.mqtt.bridge_model import HALVES, WINDOW, Bridge, perform
from tests.unit.systems.mqtt.broker_model import BrokerModel


def histories(*counted: str) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Of these deeds, which have a count, and the usual ones."""
    return st.lists(
        st.one_of(
            st.tuples(
                st.sampled_from(["publish", "publish_zero", "receive", *HALVES, "answer", *counted]), st.integers(1, 9)
            ),
            st.tuples(st.sampled_from(["acknowledge", "settle", "stay", "die"]), st.just(0)),
        ),
        max_size=60,
    )


ACTIONS = histories()


MORE = [("publish", 5)]
"""What comes under the ids of what was acknowledged."""
TWO_ENDS_IN_A_BATCH = [("stay_in_the_middle", 3), ("leave", 3)]


@pytest.mark.parametrize("tells", [True, False], ids=["tells-records", "acknowledged-when-settled"])
@pytest.mark.parametrize("say", [b"the same", None], ids=["one-payload", "different-payloads"])
@given(actions=ACTIONS)
@example(actions=[("publish", 5), ("receive", 5), ("acknowledge", 0), ("die", 0)])
def test_a_broker_that_counts_up_delivers_each_message_once(
    tells: bool, say: bytes | None, actions: list[tuple[str, int]]
) -> None:
    bridge = Bridge(BrokerModel(counts_up=True, window=WINDOW), tells, standing=SessionState(("t",), counts_up=True))
    published = perform(bridge, actions, say)
    assert sorted(message for _, _, message in bridge.target) == published
    assert bridge.repeats == 0


@pytest.mark.parametrize("tells", [True, False], ids=["tells-records", "acknowledged-when-settled"])
@pytest.mark.parametrize("say", [b"the same", None], ids=["one-payload", "different-payloads"])
@given(actions=histories("forget", "lose_count", "rewind", "glance"))
@example(actions=[("publish", 5), ("receive", 5), ("lose_count", 5), ("publish", 5), ("glance", 1)])
@example(actions=[("publish", 5), ("receive", 5), ("rewind", 4)])
@example(actions=[("publish", 5), ("receive", 5), ("stay", 0), ("lose_count", 5), ("publish", 5), ("glance", 1)])
def test_a_broker_that_forgets_or_loses_count_loses_nothing_and_repeats_are_counted(
    tells: bool, say: bytes | None, actions: list[tuple[str, int]]
) -> None:
    bridge = Bridge(BrokerModel(counts_up=True, window=WINDOW), tells, standing=SessionState(("t",), counts_up=True))
    published = perform(bridge, actions, say)
    there = Counter(message for _, _, message in bridge.target)
    assert sorted(there) == published
    assert there.total() - len(published) <= bridge.repeats


@pytest.mark.parametrize("tells", [True, False], ids=["tells-records", "acknowledged-when-settled"])
@pytest.mark.parametrize("say", [b"the same", None], ids=["one-payload", "different-payloads"])
@given(actions=ACTIONS)
@example(actions=[("publish", 5), ("receive", 5), ("acknowledge", 0), ("answer", 9), *MORE, ("receive", 1), ("die", 0)])
@example(actions=[("publish", 3), ("receive", 3), ("acknowledge", 0), ("settle", 0), *TWO_ENDS_IN_A_BATCH])
def test_a_broker_that_uses_ids_again_loses_nothing_and_repeats_are_counted(
    tells: bool, say: bytes | None, actions: list[tuple[str, int]]
) -> None:
    bridge = Bridge(BrokerModel(counts_up=False, window=WINDOW), tells)
    published = perform(bridge, actions, say)
    there = Counter(message for _, _, message in bridge.target)
    assert sorted(there) == published
    assert there.total() - len(published) <= bridge.repeats
    assert all(number != other for (number, *_), (other, *_) in zip(bridge.target, bridge.target[1:], strict=False))


@pytest.mark.parametrize("tells", [True, False], ids=["tells-records", "acknowledged-when-settled"])
@pytest.mark.parametrize("say", [b"the same", None], ids=["one-payload", "different-payloads"])
@given(actions=ACTIONS)
@example(actions=[("publish", 9), ("receive", 7), ("acknowledge", 0), ("answer", 2), ("die", 0)])
@example(actions=[("publish", 9), ("receive", 3), ("settle", 0), ("receive", 7), ("acknowledge", 0), ("answer", 9)])
def test_a_broker_that_numbers_anew_loses_nothing_and_repeats_are_counted(
    tells: bool, say: bytes | None, actions: list[tuple[str, int]]
) -> None:
    """Each connection counts from 1, and what was not acknowledged comes under other ids."""
    bridge = Bridge(BrokerModel(counts_up=False, window=WINDOW, renumbers=True), tells)
    published = perform(bridge, actions, say)
    there = Counter(message for _, _, message in bridge.target)
    assert sorted(there) == published
    assert there.total() - len(published) <= bridge.repeats
    assert not bridge.reception.counts_up


@given(actions=ACTIONS)
def test_without_a_death_nothing_is_doubtful_with_either(actions: list[tuple[str, int]]) -> None:
    quiet = [one for one in actions if one[0] not in ("die", "publish_zero")]
    for counts_up in (True, False):
        bridge = Bridge(BrokerModel(counts_up=counts_up, window=WINDOW), tells=False)
        published = perform(
            bridge, [one for one in quiet if not one[0].startswith(("acknowledge", "stay"))], b"the same"
        )
        assert [message for _, _, message in bridge.target] == published
        assert bridge.repeats == 0
