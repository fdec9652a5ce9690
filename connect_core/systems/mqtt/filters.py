"""Topic filters: which are legal, which overlap, and how they are shared out among sessions. Pure.

Two sessions whose filters overlap would both get a message that matches both, so filters that overlap stay together.
Those of a shared subscription (`$share/NAME/FILTER`) are in every session: the broker gives each message to one of
them. Rules: MQTT 5, sections 4.7 (3.1.1: the same) and 4.8.2.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_BYTES = 65_535
"""A string of MQTT has two bytes for its length."""
_ANY_LEVEL, _ANY_LEVELS = "+", "#"
_SHARED = "$share/"


def is_shared(topic_filter: str) -> bool:
    return topic_filter.startswith(_SHARED)


def plain_of(topic_filter: str) -> str:
    """What a shared subscription shares; any other filter itself."""
    return topic_filter.split("/", 2)[2] if is_shared(topic_filter) else topic_filter


def check(topic_filter: str) -> str:
    """The filter itself. Raises ValueError for one that a broker would refuse, or that means something else here."""
    if not topic_filter or len(topic_filter.encode()) > MAX_BYTES or "\0" in topic_filter:
        raise ValueError(f"must have 1 to {MAX_BYTES} bytes and no NUL")
    if is_shared(topic_filter):
        name, _, plain = topic_filter.removeprefix(_SHARED).partition("/")
        if not name or not plain or {*name} & {_ANY_LEVEL, _ANY_LEVELS}:
            raise ValueError(f"a shared subscription is {_SHARED}NAME/FILTER, without + and # in its name")
    levels = plain_of(topic_filter).split("/")
    if _ANY_LEVELS in levels[:-1]:
        raise ValueError("# may be the last level only")
    if any(len(level) > 1 and {*level} & {_ANY_LEVEL, _ANY_LEVELS} for level in levels):
        raise ValueError("+ and # stand for whole levels")
    return topic_filter


def check_plain(topic_filter: str) -> str:
    """As `check`, for a filter that only says which topics are meant."""
    if is_shared(topic_filter):
        raise ValueError("is a shared subscription; give the filter alone")
    return check(topic_filter)


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a message with this topic name comes to who subscribed to the filter."""
    return overlap(topic_filter, topic)


def overlap(first: str, second: str) -> bool:
    """Whether there is a topic that both match."""
    if (first[0] == "$") != (second[0] == "$") and (first[0] in "+#" or second[0] in "+#"):
        return False  # wildcards at the beginning do not match topics of the broker's own (4.7.2)
    return _overlap(first.split("/"), second.split("/"))


def _overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    for level, (one, other) in enumerate(zip(first, second, strict=False)):
        if _ANY_LEVELS in (one, other):
            return True
        if one != other and _ANY_LEVEL not in (one, other):
            return False
        last = level + 1
    if len(first) == len(second):
        return True
    longer = max(first, second, key=len)
    return len(longer) == last + 1 and longer[-1] == _ANY_LEVELS  # `a/#` matches `a` as well


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
    groups = together([one for one in filters if not is_shared(one)])
    shares: list[list[str]] = [[] for _ in range(sessions if everywhere else min(sessions, len(groups)))]
    for group in groups:
        min(shares, key=len).extend(group)
    return [(*share, *everywhere) for share in shares]
