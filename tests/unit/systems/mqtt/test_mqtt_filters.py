"""Filters: legal, overlapping, shared out."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.systems.topic_filters import check_subscription, covers, matches, overlap, shared_out, together, twice

LEVELS = st.sampled_from(["a", "b", "", "$SYS", "+"])
TOPICS = st.lists(st.sampled_from(["a", "b", "", "$SYS"]), min_size=1, max_size=4).map("/".join).filter(bool)


@st.composite
def filters(draw: st.DrawFn) -> str:
    levels = draw(st.lists(LEVELS, min_size=1, max_size=3))
    return check_subscription("/".join([*levels, *draw(st.sampled_from([[], ["#"]]))]) or "#")


GOOD = ["#", "+", "/", "a/#", "a/+/b", "+/+", "$SYS/#", "a//b", "ä/b", "$share/g/a/#", "$share/g//"]
BAD = ["", "a/#/b", "a#", "a/b+", "+a/b", "a\0b", "x" * 65_536]
NOT_SHARED = ["$share/g", "$share/g/", "$share//a", "$share/+/a", "$share/g/a#"]


@pytest.mark.parametrize("good", GOOD)
def test_legal_filters(good: str) -> None:
    assert check_subscription(good) == good


@pytest.mark.parametrize("bad", [*BAD, *NOT_SHARED])
def test_illegal_filters(bad: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_subscription(bad)


@pytest.mark.parametrize(
    ("topic_filter", "topic", "is_so"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/broker", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/broker", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("a/b", "a/b/c", False),
    ],
)
def test_the_examples_of_the_standard(topic_filter: str, topic: str, is_so: bool) -> None:
    """MQTT 5, sections 4.7.1 and 4.7.2."""
    assert matches(topic_filter, topic) is is_so


@given(filters(), filters(), TOPICS)
def test_filters_that_match_one_topic_overlap(first: str, second: str, topic: str) -> None:
    assert overlap(first, second) == overlap(second, first)
    if matches(first, topic) and matches(second, topic):
        assert overlap(first, second)


LITERALS = ["a", "b", "x", "", "$SYS"]
ALL_TOPICS = ["/".join(levels) for n in (1, 2, 3, 4) for levels in itertools.product(LITERALS, repeat=n)]


@given(filters(), filters())
def test_filters_that_overlap_match_one_topic(first: str, second: str) -> None:
    common = [one for one in filter(None, ALL_TOPICS) if matches(first, one) and matches(second, one)]
    if {first, second} != {"+", "/#"}:  # they share the empty topic, which there is not
        assert overlap(first, second) == bool(common)


@given(st.lists(filters(), min_size=1, max_size=8), st.integers(1, 5))
def test_no_topic_is_in_two_sessions(given_filters: list[str], sessions: int) -> None:
    shares = shared_out(given_filters, sessions)
    subscribed = [one for share in shares for one in share]
    assert {*subscribed} <= {*given_filters}
    for topic in filter(None, ALL_TOPICS):
        assert any(matches(one, topic) for one in subscribed) == any(matches(one, topic) for one in given_filters)
    assert not any(covers(one, two) for one, two in itertools.permutations(subscribed, 2))
    assert 1 <= len(shares) <= sessions
    assert all(shares)
    for share, other in itertools.combinations(shares, 2):
        assert not any(overlap(one, two) for one in share for two in other)


def test_what_is_no_topic_overlaps_all_but_topics_of_the_broker() -> None:
    """Of a document that is not sound, which is looked at all the same."""
    assert overlap("#", "")
    assert not overlap("$SYS/#", "#")
    assert not overlap("$SYS/a", "")


@given(filters(), filters())
def test_a_filter_covers_another_one_when_it_has_all_of_its_topics(wide: str, narrow: str) -> None:
    if covers(wide, narrow):
        assert all(matches(wide, topic) for topic in ALL_TOPICS if topic and matches(narrow, topic))
        assert wide == narrow or not covers(narrow, wide)


@pytest.mark.parametrize(
    ("wide", "narrow", "is_so"),
    [
        ("a/#", "a", True),
        ("a/#", "a/+/b", True),
        ("a/#", "a/#", True),
        ("+/b", "a/b", True),
        ("#", "+/+", True),
        ("a/+", "a/#", False),
        ("a", "a/#", False),
        ("a/+", "a", False),
        ("+/b", "+/+", False),
        ("#", "$SYS/#", False),
        ("$SYS/#", "$SYS/a", True),
    ],
)
def test_what_covers_what(wide: str, narrow: str, is_so: bool) -> None:
    assert covers(wide, narrow) is is_so


def test_groups_keep_their_order() -> None:
    assert together(["a/#", "b/1", "c", "a/1", "b/+"]) == [("a/#", "a/1"), ("b/1", "b/+"), ("c",)]
    assert together(["a/1", "b/1", "#"]) == [("a/1", "b/1", "#")]
    assert shared_out(["a", "b", "c", "d"], 2) == [("a", "c"), ("b", "d")]
    assert shared_out(["a/+", "b", "+/1"], 9) == [("a/+", "+/1"), ("b",)]
    assert shared_out(["a/+", "b", "a/1"], 9) == [("a/+",), ("b",)]


def test_every_session_is_a_member_of_a_shared_subscription() -> None:
    assert shared_out(["$share/g/s", "a", "b", "$share/g/s"], 3) == [
        ("a", "$share/g/s"),
        ("b", "$share/g/s"),
        ("$share/g/s",),
    ]
    assert shared_out(["$share/g/s"], 2) == [("$share/g/s",)] * 2


@pytest.mark.parametrize(
    ("given_filters", "found"),
    [
        (["a/#", "a/1"], None),
        (["$share/g/a/#", "a/1"], ("$share/g/a/#", "a/1")),
        (["b", "$share/g/a/1", "$share/h/a/+"], ("$share/g/a/1", "$share/h/a/+")),
        (["$share/g/a", "$share/g/a", "$share/g/b"], None),
    ],
)
def test_a_message_that_would_come_twice(given_filters: list[str], found: tuple[str, str] | None) -> None:
    assert twice(given_filters) == found
