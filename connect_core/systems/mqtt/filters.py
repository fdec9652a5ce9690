"""Topic filters of subscriptions: which are legal, and how they are shared out among sessions. Pure.

Two sessions whose filters overlap would both get a message that matches both, so filters that overlap stay together.
Within a session a broker may send a copy for each subscription (MQTT 5, section 3.3.4; Mosquitto does), so one of which
another has all topics is not subscribed to.
Those of a shared subscription (`$share/NAME/FILTER`) are in every session: the broker gives each message to one of
them. Rules: MQTT 5, section 4.8.2, and `systems.topic_filters`.
"""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.systems.topic_filters import ANY_LEVEL, ANY_LEVELS, SHARED, check_levels, check_text, covers, overlap


def is_shared(topic_filter: str) -> bool:
    return topic_filter.startswith(SHARED)


def plain_of(topic_filter: str) -> str:
    """What a shared subscription shares; any other filter itself."""
    return topic_filter.split("/", 2)[2] if is_shared(topic_filter) else topic_filter


def check(topic_filter: str) -> str:
    """The filter itself. Raises ValueError for one that a broker would refuse, or that means something else here."""
    check_text(topic_filter)
    if is_shared(topic_filter):
        name, _, plain = topic_filter.removeprefix(SHARED).partition("/")
        if not name or not plain or {*name} & {ANY_LEVEL, ANY_LEVELS}:
            raise ValueError(f"a shared subscription is {SHARED}NAME/FILTER, without + and # in its name")
    check_levels(plain_of(topic_filter))
    return topic_filter


def together(filters: Sequence[str]) -> list[tuple[str, ...]]:
    """The filters in groups, as many as there can be without one that overlaps a filter of another group. Order is
    kept, within the groups and of their first members."""
    groups: list[list[str]] = []
    for one in dict.fromkeys(filters):
        touched = [group for group in groups if any(overlap(one, other) for other in group)]
        merged = [*(member for group in touched for member in group), one]
        groups = [group for group in groups if group not in touched]
        groups.append(merged)
    place = {one: index for index, one in enumerate(dict.fromkeys(filters))}
    ordered = [sorted(group, key=place.__getitem__) for group in groups]
    return [tuple(group) for group in sorted(ordered, key=lambda group: place[group[0]])]


def twice(filters: Sequence[str]) -> tuple[str, str] | None:
    """Two of them by which a message would come twice, because one is a shared subscription: each is a subscription
    of its own to the broker. None where there are none."""
    different = list(dict.fromkeys(filters))
    for number, one in enumerate(different):
        for other in different[number + 1 :]:
            if (is_shared(one) or is_shared(other)) and overlap(plain_of(one), plain_of(other)):
                return one, other
    return None


def shared_out(filters: Sequence[str], sessions: int) -> list[tuple[str, ...]]:
    """What each session subscribes to: at most `sessions` of them, about equally many plain filters each, none without
    any. With shared subscriptions it is just as many, and each has all of these."""
    everywhere = tuple(one for one in dict.fromkeys(filters) if is_shared(one))
    groups = together(_wanted([one for one in filters if not is_shared(one)]))
    shares: list[list[str]] = [[] for _ in range(sessions if everywhere else min(sessions, len(groups)))]
    for group in groups:
        min(shares, key=len).extend(group)
    return [(*share, *everywhere) for share in shares]


def moved_away(subscribed: Sequence[str], session: int, shares: Sequence[Sequence[str]]) -> list[str]:
    """The plain filters to which a session is subscribed and that it is to leave, though another one now subscribes to
    topics of theirs. These do it each at its own time."""
    mine = shares[session] if session < len(shares) else ()
    others = [one for number, share in enumerate(shares) if number != session for one in share if not is_shared(one)]
    leaving = (one for one in subscribed if one not in mine and not is_shared(one))
    return [one for one in leaving if any(overlap(one, other) for other in others)]


def _wanted(filters: Sequence[str]) -> list[str]:
    """Without those of which another one has all topics."""
    different = list(dict.fromkeys(filters))
    return [one for one in different if not any(covers(other, one) for other in different if other != one)]
