"""Topic filters with + and #, as MQTT has them: of subscriptions, and of rules whatever their source is. Pure.

Rules: MQTT 5, section 4.7 (3.1.1: the same).
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
    if topic_filter.startswith(SHARED):
        raise ValueError("is a shared subscription; give the filter alone")
    check_text(topic_filter)
    check_levels(topic_filter)
    return topic_filter


def check_text(topic_filter: str) -> None:
    """Raises ValueError for what no string of MQTT may be."""
    if not topic_filter or len(topic_filter.encode()) > MAX_BYTES or "\0" in topic_filter:
        raise ValueError(f"must have 1 to {MAX_BYTES} bytes and no NUL")


def check_levels(topic_filter: str) -> None:
    """Raises ValueError for wildcards where there may be none."""
    levels = topic_filter.split("/")
    if ANY_LEVELS in levels[:-1]:
        raise ValueError("# may be the last level only")
    if any(len(level) > 1 and {*level} & {ANY_LEVEL, ANY_LEVELS} for level in levels):
        raise ValueError("+ and # stand for whole levels")


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
