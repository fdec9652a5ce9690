"""The end of what a sink keeps at the broker: the retained messages of its progress, when its connector is deleted."""

from __future__ import annotations

from collections.abc import Collection

from connect_core.errors import Retriable
from connect_core.systems.mqtt.packets import NO_PROPERTIES
from connect_core.systems.mqtt.publications import Publication
from connect_core.systems.mqtt.publishing import Publisher
from connect_core.systems.mqtt.writing import ANSWER_S

_LOOK_S = 1.0
_LOOKS = 5
"""A broker may be slow to send what it retains, or send it in parts."""


def clear_below(publisher: Publisher, prefix: str, known: Collection[str]) -> list[str]:
    """Clears the topics that are `known`, and whatever else is retained below the prefix: progress of backfills, and of
    partitions that are no more. Raises what the broker answers to a publish that it refuses, and Retriable when
    somebody goes on writing there."""
    heard: set[str] = set()
    left = {*known}
    for _ in range(_LOOKS):
        found = {*publisher.all_retained(f"{prefix}/#", _LOOK_S)}
        heard |= found
        left |= found
        if not left:
            return [f"its progress is cleared at the broker: {len(heard)} retained messages"] if heard else []
        for topic in sorted(left):
            _clear(publisher, topic)
        left.clear()
    raise Retriable(
        "The progress that was cleared comes again",
        where=f"{publisher.where}, {prefix}/#",
        next_step="Find out who publishes there: perhaps an attempt on another machine still runs",
    )


def _clear(publisher: Publisher, topic: str) -> None:
    """An empty retained message does it (MQTT 5, section 3.3.1.3)."""
    publisher.publish(Publication(topic, b"", 1, True, NO_PROPERTIES, len(topic) + 16), 0)
    publisher.finish(ANSWER_S)
    publisher.require_accepted()
