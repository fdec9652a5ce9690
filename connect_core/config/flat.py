"""Flat documents of RocketMQ Connect (`connector.class`, `max.tasks`, …) to native ones, once, at the edge. Pure.

What has no meaning here is told in a notice; what cannot be kept, or is not known, is a fault at its flat key. The Java
class names stand for our systems; a class that has none is answered with those that do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connect_core.config import mqtt_keys
from connect_core.config.document import MAX_NAME_LENGTH
from connect_core.config.faults import nearest
from connect_core.config.written import Place, Written
from connect_core.errors import Fault
from connect_core.sdk.values import Json

CLASS = "connector.class"
_PACKAGES = ("org.apache.rocketmq.connect.file.", "org.apache.rocketmq.connect.mqtt.connector.")
_BYTES_THROUGH = ("StringConverter", "ByteArrayConverter")
_STARTS = {"CONSUME_FROM_LAST_OFFSET": "latest", "CONSUME_FROM_FIRST_OFFSET": "earliest"}


@dataclass
class Translated:
    """`origins` says from which flat key a native place came. Faults carry the flat key as their path."""

    name: str
    data: Json = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    origins: dict[Place, str] = field(default_factory=dict)

    def put(self, key: str, place: tuple[str, ...], value: Any) -> None:
        *outer, last = place
        holder = self.data
        for part in outer:
            holder = holder.setdefault(part, {})
        holder[last] = value
        self.origins[place] = key

    def ignore(self, key: str, why: str) -> None:
        self.notices.append(f"{key}: accepted without effect: {why}")

    def refuse(self, key: str, why: str) -> None:
        self.faults.append(Fault(key, why))


def is_flat(data: Mapping[str, Any]) -> bool:
    """Whether these are the flat keys of RocketMQ Connect."""
    return "version" not in data and any(str(key).startswith(("connector.", "connect.")) for key in data)


def name_for(written: Written) -> str:
    """A connector name from the document's file."""
    stem = written.file.stem if written.file else "connector"
    return re.sub(r"[^A-Za-z0-9._-]", "-", stem)[:MAX_NAME_LENGTH]


def translate(flat: Mapping[str, Any], name: str) -> Translated:
    """The native document of a flat one. Values may be text, as in properties files."""
    into = Translated(str(flat.get("name") or name))
    into.put("name", ("version",), 1)
    into.put("name", ("name",), into.name)
    kind = _kind(flat, into)
    if kind is None:
        return into
    keys = {**_COMMON, **_KINDS[kind]}
    for key, value in flat.items():
        if handler := keys.get(key) or _by_prefix(key):
            handler(into, key, value)
        else:
            into.refuse(key, f'unknown key "{key}"' + nearest(key, keys))
    _complete(kind, flat, into)
    return into


def with_lines(translated: Translated, written: Written) -> Written:
    """The native data, with the lines of the flat keys it came from."""
    lines = {place: line for place, key in translated.origins.items() if (line := written.lines.get((key,)))}
    return Written(translated.data, written.where, lines, written.file)


# ---------------------------------------------------------------------------------------------------------- the class


def _kind(flat: Mapping[str, Any], into: Translated) -> str | None:
    if CLASS not in flat:
        into.refuse(CLASS, "is missing: the class says what is read and written")
        return None
    given = str(flat[CLASS]).strip()
    kind = given
    for package in _PACKAGES:
        kind = kind.removeprefix(package)
    kind = kind if kind.endswith("Connector") else f"{kind}Connector"
    if kind in _KINDS:
        return kind
    into.refuse(
        CLASS,
        f"there is no {given!r} here; there are {' and '.join(sorted(_KINDS))} "
        "(and any two systems in a native document: waybill init SOURCE SINK)",
    )
    return None


def _complete(kind: str, flat: Mapping[str, Any], into: Translated) -> None:
    """What the other side of the connector is, and which keys must be there."""
    for key, what in _MUST[kind].items():
        if not any(one in flat for one in key.split("|")):
            into.refuse(key.split("|")[0], f"is missing: {what}")
    if kind.endswith("SourceConnector"):
        into.put("name", ("sink", "rocketmq", "connection"), "main")
        return
    _complete_start(flat, into)


def _complete_start(flat: Mapping[str, Any], into: Translated) -> None:
    if "connect.topicnames" not in flat:
        into.refuse("connect.topicnames", "is missing: the topics to read, separated by ;")
    into.put("name", ("source", "rocketmq", "connection"), "main")
    if "consume.from.where" not in flat:
        into.put("name", ("source", "rocketmq", "start"), "latest")


# ------------------------------------------------------------------------------------------------------- the flat keys

Handler = Callable[[Translated, str, Any], None]


def _nothing(into: Translated, key: str, value: Any) -> None:
    """Read elsewhere."""


def _ignored(why: str) -> Handler:
    return lambda into, key, value: into.ignore(key, why)


def _only(expected: str, why: str) -> Handler:
    """The key may stand there with the one value that changes nothing."""

    def handle(into: Translated, key: str, value: Any) -> None:
        if str(value).strip().lower() != expected:
            into.refuse(key, why)

    return handle


def _filename(role: str) -> Handler:
    return lambda into, key, value: into.put(key, (role, "file", "path"), value)


def _file(role: str) -> Handler:
    def handle(into: Translated, key: str, value: Any) -> None:
        into.put(key, (role, "file", "path"), value)
        into.notices.append("file: taken as filename, which is RocketMQ Connect's name for it")

    return handle


def _topic(into: Translated, key: str, value: Any) -> None:
    """`topic` sets the topic of each record, and so wins over `connect.topicname` as it does there."""
    place = ("sink", "rocketmq", "topic")
    if place in into.origins:
        if into.data["sink"]["rocketmq"]["topic"] != value:
            into.notices.append("topic and connect.topicname differ: topic is used")
        if key != "topic":
            return
    into.put(key, place, value)


def _topics(into: Translated, key: str, value: Any) -> None:
    names = [name.strip() for name in re.split("[;,]", str(value)) if name.strip()]
    into.put(key, ("source", "rocketmq", "topics"), names)


def _start(into: Translated, key: str, value: Any) -> None:
    if value in _STARTS:
        into.put(key, ("source", "rocketmq", "start"), _STARTS[value])
    else:
        into.refuse(key, f"{value!r} is not one of {', '.join(_STARTS)}")


def _mqtt(role: str) -> dict[str, Handler]:
    """The keys that say which broker it is, and who we are to it."""

    def url(into: Translated, key: str, value: Any) -> None:
        try:
            options = mqtt_keys.of_url(str(value))
        except ValueError as wrong:
            into.refuse(key, str(wrong))
            return
        for name, option in options.items():
            into.put(key, (role, "mqtt", name), option)

    def user(into: Translated, key: str, value: Any) -> None:
        into.put(key, (role, "mqtt", "user"), value)

    def secret(into: Translated, key: str, value: Any) -> None:
        into.put(key, (role, "mqtt", "password"), value)
        into.put(key, (role, "mqtt", "signature"), True)

    return {"mqttBrokerUrl": url, "mqttAccessKey": user, "mqttSecretKey": secret}


def _max_tasks(into: Translated, key: str, value: Any) -> None:
    text = str(value).strip()
    if not text.isdecimal() or int(text) < 1:
        into.refuse(key, f"{value!r} is not a number of tasks, 1 or more")
    elif int(text) > 1:
        into.ignore(key, "a file connector has one task, as in RocketMQ Connect")


def _tolerance(into: Translated, key: str, value: Any) -> None:
    word = str(value).strip().lower()
    if word in {"none", "all"}:
        into.put(key, ("errors", "tolerance"), word)
    else:
        into.refuse(key, f"{value!r} is neither none nor all")


def _converter(into: Translated, key: str, value: Any) -> None:
    if str(value).rpartition(".")[2] in _BYTES_THROUGH:
        into.ignore(key, "records pass as the bytes they are")
    else:
        into.refuse(key, f"{value!r} is not available; records pass as bytes: {' or '.join(_BYTES_THROUGH)}")


def _encoding(into: Translated, key: str, value: Any) -> None:
    if str(value).replace("-", "").upper() != "UTF8":
        into.refuse(key, f"{value!r} is not available; records pass as the bytes they are")
    else:
        into.ignore(key, "records pass as the bytes they are")


def _by_prefix(key: str) -> Handler | None:
    if re.fullmatch(r"(key|value)\.converter\.(de)?serializer\.encoding", key):
        return _encoding
    if key.startswith(("key.converter.", "value.converter.")):
        return _ignored("no converter that is available here has it")
    if key == "transforms" or key.startswith("transforms."):
        return _only("", "this version passes records as they are and has no transforms")
    return None


_RETRIES = "a run that fails is tried again as a whole, by whoever started it"
_REJECTS = "rejected records are kept in the ledger: waybill dead-letters list NAME"
_COMMON: dict[str, Handler] = {
    CLASS: _nothing,
    "name": _nothing,
    "max.tasks": _max_tasks,
    "key.converter": _converter,
    "value.converter": _converter,
    "errors.tolerance": _tolerance,
    "errors.retry.timeout": _ignored(_RETRIES),
    "errors.retry.delay.max.ms": _ignored(_RETRIES),
    "errors.log.enable": _ignored(_REJECTS),
    "errors.log.include.messages": _ignored(_REJECTS),
    "errors.deadletterqueue.topic.name": _ignored(_REJECTS),
    "errors.deadletterqueue.read.queue.nums": _ignored(_REJECTS),
    "errors.deadletterqueue.write.queue.nums": _ignored(_REJECTS),
    "errors.deadletterqueue.context.properties.enable": _ignored(_REJECTS),
    "connector.direct.enable": _only("false", "direct mode is written as a native document: waybill init SOURCE SINK"),
}
_MUST: dict[str, dict[str, str]] = {
    "FileSourceConnector": {
        "filename|file": "the file to read or write",
        "connect.topicname|topic": "the topic that lines are sent to",
    },
    "FileSinkConnector": {"filename|file": "the file to read or write"},
    "MqttSourceConnector": {
        **mqtt_keys.MUST,
        "sourceTopic": "the topic filter to subscribe to",
        "connect.topicname|topic": "the topic that messages are sent to",
    },
    "MqttSinkConnector": {**mqtt_keys.MUST, "sinkTopic": "the topic to publish to"},
}
"""By kind the keys of which one must be there, and what for."""
_KINDS: dict[str, dict[str, Handler]] = {
    "MqttSourceConnector": {
        **_mqtt("source"),
        "sourceTopic": lambda into, key, value: into.put(key, ("source", "mqtt", "filters"), [str(value)]),
        "topic": _topic,
        "connect.topicname": _topic,
        "ordering.msg.enable": _ignored("messages keep the order in which they arrive"),
    },
    "MqttSinkConnector": {
        **_mqtt("sink"),
        "sinkTopic": lambda into, key, value: into.put(key, ("sink", "mqtt", "topic"), value),
        "connect.topicnames": _topics,
        "task.group.id": _ignored("offsets are kept in the ledger; each connector has a group of its own"),
        "consume.from.where": _start,
    },
    "FileSourceConnector": {
        "filename": _filename("source"),
        "file": _file("source"),
        "topic": _topic,
        "connect.topicname": _topic,
        "batch.size": _ignored("how much is read at a time follows limits and time; RocketMQ Connect ignores it too"),
        "ordering.msg.enable": _ignored("the lines of a file always keep their order"),
    },
    "FileSinkConnector": {
        "filename": _filename("sink"),
        "file": _file("sink"),
        "connect.topicnames": _topics,
        "task.group.id": _ignored("offsets are kept in the ledger; each connector has a group of its own"),
        "consume.from.where": _start,
    },
}
