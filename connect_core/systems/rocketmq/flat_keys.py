"""The flat keys of RocketMQ Connect for RocketMQ itself, the other end of each of its connectors. Pure."""

from __future__ import annotations

import re
from typing import Any

from connect_core.sdk.flat import FlatEnd, FlatHub, FlatWriter, ignored, option
from connect_core.systems.rocketmq.options import AS_NEW_GROUP, GROUP, OTHERWISE, check_group

_STARTS = {"CONSUME_FROM_LAST_OFFSET": AS_NEW_GROUP, "CONSUME_FROM_FIRST_OFFSET": "earliest"}
_BEGINS = {AS_NEW_GROUP: "where RocketMQ lets a new group begin", "earliest": "at the oldest message"}
_GROUP_KEY = "task.group.id"


def _topic(into: FlatWriter, key: str, value: Any) -> None:
    """`topic` sets the topic of each record, and so wins over `connect.topicname` as it does there."""
    if "topic" in into.options:
        if into.options["topic"] != value:
            into.notice("topic and connect.topicname differ: topic is used")
        if key != "topic":
            return
    into.put(key, "topic", value)


def _topics(into: FlatWriter, key: str, value: Any) -> None:
    """Kafka Connect calls them `topics`."""
    if "topics" in into.options:
        into.refuse(key, "are named twice: leave out connect.topicnames, or topics")
        return
    into.put(key, "topics", [name.strip() for name in re.split("[;,]", str(value)) if name.strip()])


def _start(into: FlatWriter, key: str, value: Any) -> None:
    if start := _STARTS.get(str(value)):
        into.put(key, "start", start)
    else:
        into.refuse(key, f"{value!r} is not one of {', '.join(_STARTS)}")


def _to_main(into: FlatWriter) -> None:
    into.put("name", "connection", "main")


def _group(into: FlatWriter, key: str, value: Any) -> None:
    """It is only where this connector begins: see `_from_main`."""


def _from_main(into: FlatWriter) -> None:
    """RocketMQ Connect goes on from the offsets of the connector's group, and asks `consume.from.where` only where it
    has none. Without the group, what was sent while a connector moved here would be left out."""
    _to_main(into)
    given = str(into.given.get(_GROUP_KEY) or "").strip()
    group = given or f"connect-{into.given['name']}"
    try:
        check_group(group)
    except ValueError as error:
        into.refuse(_GROUP_KEY, f"the consumer group {group} {error}; name the one that the connector has there")
        return
    otherwise = into.options.get("start", AS_NEW_GROUP)
    into.put(_GROUP_KEY if given else "name", "start", f"{GROUP}{group}{OTHERWISE}{otherwise}")
    into.notice(
        f"{_GROUP_KEY}: queues that were never read begin at the offset of the consumer group {group}, which RocketMQ "
        f"Connect keeps for a connector of this name, and where it has none {_BEGINS[otherwise]}. Stop the connector "
        "there before the first plan, lag or run here, which fixes these offsets; if it has another name or group, say "
        f"so: {_GROUP_KEY}=GROUP"
    )


_REJECTS = "errors.deadletterqueue."


def _queues(into: FlatWriter, key: str, value: Any) -> None:
    """One number stands for both here: that of the queues that are written, where these differ."""
    text = str(value).strip()
    if not text.isdecimal() or int(text) < 1:
        into.refuse(key, f"{value!r} is not a number of queues, 1 or more")
    elif key.endswith("write.queue.nums") or f"{_REJECTS}write.queue.nums" not in into.given:
        into.put(key, "queues", int(text))
    elif str(into.given[f"{_REJECTS}write.queue.nums"]).strip() != text:
        into.ignore(key, "a topic is created with as many queues to read as to write")


HUB = FlatHub(
    source=FlatEnd(
        {
            "connect.topicnames": _topics,
            "topics": _topics,
            _GROUP_KEY: _group,
            "consume.from.where": _start,
        },
        {"connect.topicnames|topics": "the topics to read, separated by ;"},
        _from_main,
    ),
    sink=FlatEnd(
        {"topic": _topic, "connect.topicname": _topic},
        {"connect.topicname|topic": "the topic that {records} are sent to"},
        _to_main,
    ),
    rejects=FlatEnd(
        {
            f"{_REJECTS}topic.name": option("topic"),
            f"{_REJECTS}read.queue.nums": _queues,
            f"{_REJECTS}write.queue.nums": _queues,
            f"{_REJECTS}topic.replication.factor": ignored("how many copies there are, the brokers say"),
        },
        complete=_to_main,
    ),
    rejects_key=f"{_REJECTS}topic.name",
)
