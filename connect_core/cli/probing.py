"""What the world says of one end of a document, for `check --probe`: are the servers and paths there?

Reads only, but for one message to the topic of Waybill's own with which a RocketMQ sink waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from connect_core.errors import WaybillError

if TYPE_CHECKING:
    from connect_core.rocketmq import Client
    from connect_core.sdk.plugin import Role
    from connect_core.sdk.values import Json
    from connect_core.systems.rocketmq.options import RocketMQSourceOptions
    from connect_core.work import Side

Seen = dict[str, Any]
"""`ok` and, in words, `what` was seen."""


def probe_side(role: Role, side: Side) -> list[Seen]:
    """A line for each thing looked at; an end whose system nothing is known of has none."""
    from connect_core.config import reveal

    looks = {"file": _files, "mqtt": _mqtt, "rocketmq": _rocketmq}
    look = looks.get(side.system)
    told: list[Seen] = []
    try:
        told.extend(look(role, reveal(side.options)) if look else ())
    except WaybillError as error:
        told.append(_seen(False, f"{role}: {error}"))
    return told


def _files(role: Role, options: Json) -> Iterator[Seen]:
    path = options["path"]
    if role == "source":
        yield from _files_read(path, binary=bool(options.get("binary")))
        return
    from connect_core.systems.file.options import path_of_task
    from connect_core.systems.file.probing import hindrance

    tasks = options.get("tasks", 1)
    for task in range(tasks):
        written = path_of_task(path, task, tasks)
        why = hindrance(written)
        yield _seen(not why, f"sink: {written} " + (f"cannot be written: {why}" if why else "can be written"))


def _files_read(path: str, *, binary: bool) -> Iterator[Seen]:
    from connect_core.systems.file.content import refusal
    from connect_core.systems.file.folders import matching_files
    from connect_core.systems.file.identity import OpenFile

    found = [match for match in matching_files(path) if os.path.isfile(match)]
    yield _seen(bool(found), f"source: {len(found):,} files match {path}")
    for match in found:
        if not os.access(match, os.R_OK):
            yield _seen(False, f"source: {match} cannot be read")
            continue
        with OpenFile(match) as file:
            if why := refusal(file, binary=binary):
                yield _seen(False, f"source: {match} is {why} and will be refused")


def _mqtt(role: Role, options: Json) -> Iterator[Seen]:
    """Connects as nobody who has anything there."""
    if role == "source":
        from connect_core.systems.mqtt.asking import seen_by
        from connect_core.systems.mqtt.options import MqttSourceOptions

        yield from (_seen(ok, f"source: {what}") for ok, what in seen_by(MqttSourceOptions.model_validate(options)))
        return
    from connect_core.systems.mqtt.probing import granted, missing
    from connect_core.systems.mqtt.sink_options import MqttSinkOptions

    given = MqttSinkOptions.model_validate(options)
    seen = granted(given)
    yield _seen(True, f"sink: the broker {given.where} answers; {seen.told()}")
    yield from (_seen(False, f"sink: {what}") for what in missing(given, seen))


def _rocketmq(role: Role, options: Json) -> Iterator[Seen]:
    from connect_core.rocketmq import Client
    from connect_core.systems.rocketmq.clusters import ClusterOptions
    from connect_core.systems.rocketmq.options import RocketMQSourceOptions

    cluster = ClusterOptions.of(options)
    with Client(cluster.client_options()) as client:
        topics, names = set(client.topics.all_names()), client.topics.names()
        effect = _effect(client) if role == "sink" else []
    yield _seen(True, f"{role}: the name server answers ({', '.join(cluster.name_servers)})")
    yield from effect
    if role == "source":
        yield from _topics_read(RocketMQSourceOptions.model_validate(options), names, topics)
        return
    if options.get("client") == "native":
        yield _native_client()
    own = () if options.get("only_rule_topics") else (options["topic"],)
    for topic in (*own, *(options.get("rule_topics") or ())):
        yield _topic_written(topic, topic in topics, options.get("create", True))


def _topic_written(topic: str, there: bool, made: bool) -> Seen:
    from connect_core.systems.rocketmq.options import TOPIC

    if TOPIC in topic:
        return _seen(
            True, f"sink: a topic {topic} for each of the source; missing ones {'will' if made else 'may not'} be made"
        )
    words = "is there" if there else "will be created" if made else "does not exist"
    return _seen(there or made, f"sink: topic {topic} {words}")


def _effect(client: Client) -> list[Seen]:
    """What the sink promises here: with its visibility barrier on every master, or without it (delivery rule 4)."""
    from connect_core.rocketmq import PermissionRefused
    from connect_core.systems.rocketmq.finding import BARRIER_S

    try:
        for broker in sorted(client.brokers.masters()):
            client.barrier(broker, deadline=time.monotonic() + BARRIER_S)
    except PermissionRefused as error:
        return [_seen(False, f"sink: at least once: what is under way cannot be waited for. {error}")]
    return [_seen(True, "sink: exactly once: what is under way can be waited for")]


def _native_client() -> Seen:
    from connect_core.systems.rocketmq.native_library import missing

    lacking = missing()
    return _seen(lacking is None, f"sink: {lacking or 'the native client and its library are there'}")


def _topics_read(options: RocketMQSourceOptions, names: Sequence[str], topics: Collection[str]) -> Iterator[Seen]:
    """`topics` are all there are, `names` those that people made."""
    from connect_core.systems.rocketmq.options import is_pattern

    for topic in options.topics:
        if is_pattern(topic):
            meant = sum(options.reads(name) and fnmatchcase(name, topic) for name in names)
            yield _seen(True, f"source: {topic} means {meant:,} topic{'' if meant == 1 else 's'} now")
        else:
            yield _seen(topic in topics, f"source: topic {topic} {'is there' if topic in topics else 'does not exist'}")


def _seen(ok: bool, what: str) -> Seen:
    return {"ok": ok, "what": what}
