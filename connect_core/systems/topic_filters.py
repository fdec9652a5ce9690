"""Topics, and filters with + and #, as MQTT has them: of subscriptions, and of rules whatever their source is. Pure.

Two sessions whose filters overlap would both get a message that matches both, so filters that overlap stay together.
Within a session a broker may send a copy for each subscription (MQTT 5, section 3.3.4; Mosquitto does), so one of which
another has all topics is not subscribed to. Those of a shared subscription (`$share/NAME/FILTER`) are in every session:
the broker gives each message to one of them.

Rules: MQTT 5, sections 4.7 (3.1.1: the same) and 4.8.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_BYTES = 65_535
"""A string of MQTT has two bytes for its length."""
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
"""NUL is no text to MQTT; at any other control character a broker may end the connection, as Mosquitto does (MQTT 5,
section 1.5.4)."""
SHARED = "$share/"
"""What a shared subscription begins with."""
ANY_LEVEL, ANY_LEVELS = "+", "#"


def check(topic_filter: str) -> str:
    """The filter itself. Raises ValueError for one that a broker would refuse, and for a shared subscription."""
    if is_shared(topic_filter):
        raise ValueError("is a shared subscription; give the filter alone")
    return check_subscription(topic_filter)


def check_subscription(topic_filter: str) -> str:
    """The same where it may be a shared subscription. Raises ValueError for one that a broker would refuse, or that
    means something else here."""
    if not topic_filter or len(topic_filter.encode()) > MAX_BYTES or "\0" in topic_filter:
        raise ValueError(f"must have 1 to {MAX_BYTES} bytes and no NUL")
    if is_shared(topic_filter):
        name, _, plain = topic_filter.removeprefix(SHARED).partition("/")
        if not name or not plain or {*name} & {ANY_LEVEL, ANY_LEVELS}:
            raise ValueError(f"a shared subscription is {SHARED}NAME/FILTER, without + and # in its name")
    levels = plain_of(topic_filter).split("/")
    if ANY_LEVELS in levels[:-1]:
        raise ValueError("# may be the last level only")
    if any(len(level) > 1 and {*level} & {ANY_LEVEL, ANY_LEVELS} for level in levels):
        raise ValueError("+ and # stand for whole levels")
    return topic_filter


def fault_in_topic(topic: str) -> str:
    """What keeps this from being the topic of a publish; empty when nothing does."""
    if not topic:
        return "is empty"
    if "+" in topic or "#" in topic:
        return "holds a wildcard, + or #"
    if CONTROL.search(topic):
        return "holds a control character, at which a broker may end the connection"
    if topic.startswith("$"):
        return "begins with $: such topics are the broker's own"
    if len(topic.encode(errors="replace")) > MAX_BYTES:
        return f"has more than {MAX_BYTES} bytes"
    return ""


def is_shared(topic_filter: str) -> bool:
    return topic_filter.startswith(SHARED)


def plain_of(topic_filter: str) -> str:
    """What a shared subscription shares; any other filter itself."""
    return topic_filter.split("/", 2)[-1] if is_shared(topic_filter) else topic_filter


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a message with this topic name comes to who subscribed to the filter."""
    return overlap(topic_filter, topic)


def overlap(first: str, second: str) -> bool:
    """Whether there is a topic that both match."""
    of_broker = [one.startswith("$") for one in (first, second)]
    if of_broker[0] != of_broker[1] and any(one.startswith((ANY_LEVEL, ANY_LEVELS)) for one in (first, second)):
        return False  # wildcards at the beginning do not match topics of the broker's own (4.7.2)
    return _overlap(first.split("/"), second.split("/"))


def _overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    for level, (one, other) in enumerate(zip(first, second, strict=False)):
        if ANY_LEVELS in (one, other):
            return True
        if one != other and ANY_LEVEL not in (one, other):
            return False
        last = level + 1
    if len(first) == len(second):
        return True
    longer = max(first, second, key=len)
    return len(longer) == last + 1 and longer[-1] == ANY_LEVELS  # `a/#` matches `a` as well


def covers(wide: str, narrow: str) -> bool:
    """Whether all topics that match the one filter match the other, `wide`, as well. Never both ways for different
    filters, since each says in one way what it means."""
    if narrow.startswith("$") and wide.startswith((ANY_LEVEL, ANY_LEVELS)):
        return False
    levels, others = wide.split("/"), narrow.split("/")
    for level, one in enumerate(levels):
        if one == ANY_LEVELS:
            return True
        if level == len(others) or others[level] == ANY_LEVELS or one not in (ANY_LEVEL, others[level]):
            return False
    return len(levels) == len(others)


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
