"""Which packets are further copies of a message that matches several filters of a session. Pure.

Of such a message a broker sends one packet with the identifiers of all these subscriptions, or one packet for each of
them with its own (MQTT 5, section 3.3.4; Mosquitto does that). Which it was shows where subscriptions that overlap have
identifiers. Copies are told, and never dropped: another packet may bear the identifier of a subscription of before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xxhash import xxh32_intdigest

from connect_core.systems.topic_filters import is_shared, matches, overlap

_IDENTIFIERS = 268_435_455
"""From 1 to this (MQTT 5, section 3.8.2.1.2)."""
_TOPICS = 4096


def identifier_of(topic_filter: str) -> int:
    """Made of the filter alone: the same over each connection, whatever other filters there are."""
    return xxh32_intdigest(topic_filter.encode()) % _IDENTIFIERS + 1


def with_identifier(filters: Sequence[str]) -> list[str]:
    """Those that overlap another one. A shared subscription that does so is refused in the document."""
    plain = [one for one in filters if not is_shared(one)]
    return [one for one in plain if any(overlap(one, other) for other in plain if other != one)]


class Copies:
    """Of a session that is subscribed to these filters. The packet of the first one that matches is the message itself,
    the others are copies."""

    def __init__(self, filters: Sequence[str] = ()) -> None:
        known = [(one, identifier_of(one)) for one in with_identifier(filters)]

        @lru_cache(_TOPICS)
        def first(topic: bytes) -> int:
            name = topic.decode(errors="replace")
            return next((identifier for one, identifier in known if matches(one, name)), 0)

        self._first = first

    def is_copy(self, topic: bytes, subscriptions: Sequence[int]) -> bool:
        """Of a packet with these identifiers; without any nobody can tell."""
        return self._first(topic) not in (0, *subscriptions)
