"""The flat keys of RocketMQ Connect for RocketMQ itself, the other end of each of its connectors. Pure."""

from __future__ import annotations

import re
from typing import Any

from connect_core.sdk.flat import FlatEnd, FlatHub, FlatWriter, ignored

_STARTS = {"CONSUME_FROM_LAST_OFFSET": "latest", "CONSUME_FROM_FIRST_OFFSET": "earliest"}


def _topic(into: FlatWriter, key: str, value: Any) -> None:
    """`topic` sets the topic of each record, and so wins over `connect.topicname` as it does there."""
    if "topic" in into.options:
        if into.options["topic"] != value:
            into.notice("topic and connect.topicname differ: topic is used")
        if key != "topic":
            return
    into.put(key, "topic", value)


def _topics(into: FlatWriter, key: str, value: Any) -> None:
    into.put(key, "topics", [name.strip() for name in re.split("[;,]", str(value)) if name.strip()])


def _start(into: FlatWriter, key: str, value: Any) -> None:
    if value in _STARTS:
        into.put(key, "start", _STARTS[value])
    else:
        into.refuse(key, f"{value!r} is not one of {', '.join(_STARTS)}")


def _to_main(into: FlatWriter) -> None:
    into.put("name", "connection", "main")


def _from_main(into: FlatWriter) -> None:
    _to_main(into)
    if "start" not in into.options:
        into.put("name", "start", "latest")


HUB = FlatHub(
    source=FlatEnd(
        {
            "connect.topicnames": _topics,
            "task.group.id": ignored("offsets are kept in the ledger; each connector has a group of its own"),
            "consume.from.where": _start,
        },
        {"connect.topicnames": "the topics to read, separated by ;"},
        _from_main,
    ),
    sink=FlatEnd(
        {"topic": _topic, "connect.topicname": _topic},
        {"connect.topicname|topic": "the topic that {records} are sent to"},
        _to_main,
    ),
)
