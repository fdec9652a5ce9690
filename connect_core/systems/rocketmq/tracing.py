"""Where one record stands in its topics, and which record stands at a place or has a key: by the coordinates that each
message of ours carries. Reads only."""

from __future__ import annotations

import re

from connect_core.errors import ConfigError
from connect_core.rocketmq import Client, Queue, StoredMessage, TopicMissing
from connect_core.rocketmq.wire.properties import value_of
from connect_core.sdk.kits.log_marks import Marks
from connect_core.sdk.records import COORDINATES_PROPERTY, Coordinates
from connect_core.sdk.rereading import Claim
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq.recognising import ColumnRecogniser
from connect_core.systems.rocketmq.rereading import ClaimedPlaces
from connect_core.systems.rocketmq.routing import pinned

_PLACE = re.compile(r"(?P<topic>[^/]+)/(?P<broker>[^/]+)/(?P<queue>\d+):(?P<offset>\d+)")


def places(client: Client, claim: Claim, offset: int) -> list[tuple[int, str]]:
    """See `sdk.rereading.Traceable`."""
    recogniser, found = ColumnRecogniser({claim.lineage}), list[tuple[int, str]]()
    for queue, part in ClaimedPlaces(client, [claim]).read():
        for marks in recogniser.read(part):
            if isinstance(marks, Marks):
                rows = marks.rows[marks.rows[:, 0] == offset]
                found += [(int(ordinal), f"{queue}:{position}") for ordinal, position in rows[:, 1:3].tolist()]
    return sorted(found)


def at_place(client: Client, place: str) -> list[Coordinates]:
    """See `sdk.rereading.Traceable`."""
    named = _PLACE.fullmatch(place)
    if named is None:
        raise ConfigError(
            f"{place!r} names no place in a topic",
            next_step="Name it as TOPIC/BROKER/QUEUE:OFFSET, as `waybill peek` does",
        )
    queue, offset = Queue(named["topic"], named["broker"], int(named["queue"])), int(named["offset"])
    messages = client.pull(queue, offset, max_messages=1).messages
    if not messages or messages[0].queue_offset != offset:
        raise ConfigError(
            "There is no message", where=place, next_step="It was deleted, or never was; `waybill lag` names queues"
        )
    return _coordinates(messages[0])


def with_key(client: Client, target: Json, key: str) -> list[Coordinates]:
    """See `sdk.rereading.Traceable`."""
    found: list[Coordinates] = []
    for topic in sorted({queue.topic for queue in pinned(target)}):
        try:
            messages = client.with_key(topic, key)
        except TopicMissing:
            continue
        for _, message in messages:
            found += _coordinates(message)
    return found


def _coordinates(message: StoredMessage) -> list[Coordinates]:
    text = value_of(message.properties, COORDINATES_PROPERTY)
    return [Coordinates.parse(text)] if text else []
