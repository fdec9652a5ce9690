"""Rows of RECORD_SCHEMA -> publishes: the inverse of `records`; and which of them have expired. Pure.

The value is the payload, byte for byte. Headers that the MQTT source writes become again what they were made of; the
others, key (KEYS) and tags (TAGS) become user properties. 3.1.1 has no properties: there they are left out.

How much of a message's time is left says its header `MQTT_EXPIRY_S` and when it came (MQTT 5, section 3.3.2.3.3: who
hands a message on takes off what it has waited). The clock of this host is compared with that of the one which received
the message, or of its producer. A message that seems to come from the future has all of its time.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.sdk.records import decode_headers
from connect_core.sdk.templates import NothingNamed, Reference, Template, template
from connect_core.systems.mqtt.packets import MAX_PACKET_BYTES, NO_PROPERTIES, Properties
from connect_core.systems.mqtt.sink_options import RECORD, MqttSinkOptions
from connect_core.systems.topic_filters import CONTROL, MAX_BYTES, fault_in_topic

EXPIRY = "MQTT_EXPIRY_S"
_HAS_EXPIRY = f"{EXPIRY}\x01"
_MAX_EXPIRY_S = 0xFFFFFFFF
MOST_STRETCHES = 256
"""So many are kept with the progress of a range: a few kilobytes. Then the range ends, and is settled."""
_PREFIX, _USER = "MQTT_", "MQTT_USER_"
_ALL_USER = "MQTT_USER_PROPERTIES"
_ABOUT_DELIVERY = frozenset({"MQTT_TOPIC", "MQTT_QOS", "MQTT_RETAIN", "MQTT_DUP"})


class Publication(NamedTuple):
    """One PUBLISH. `packet_bytes` is at least what it takes on the wire."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties
    packet_bytes: int


class Unfit(NamedTuple):
    """Why a record can never be published: a class and a sentence, without anything of the record in it."""

    kind: str
    message: str


class _Named(NamedTuple):
    """What a record can be addressed by."""

    topic: str | None
    tags: str | None
    key: str | None
    headers: Mapping[str, str]

    def value(self, wanted: Reference) -> str | None:
        value: str | None = self.headers.get(wanted.name) if wanted.kind == "header" else getattr(self, wanted.kind)
        return value


def retained(topic: str, payload: bytes) -> Publication:
    """One that the broker keeps as the last of its topic. An empty one clears that (MQTT 5, section 3.3.1.3)."""
    return Publication(topic, payload, 1, True, NO_PROPERTIES, len(topic) + len(payload) + 16)


class _Illegal(ValueError):
    """A header does not hold what its name says."""


@dataclass(frozen=True)
class Composer:
    """What the options say, None where each record says itself; a topic that a rule names for a record goes before the
    template. `reserved` is a topic under which no record may go, `properties` whether there are any (MQTT 5)."""

    template: Template
    reserved: str
    qos: int | None = None
    retain: bool | None = None
    expiry_s: int | None = None
    content_type: str | None = None
    properties: bool = True

    @classmethod
    def of(cls, options: MqttSinkOptions) -> Composer:
        return cls(
            template(options.topic),
            f"{options.progress_topic}/{options.uid}/",
            None if options.qos == RECORD else int(options.qos),
            None if options.retain == RECORD else bool(options.retain),
            options.expiry_s,
            options.content_type or None,
            options.protocol == "5",
        )

    def compose(self, records: pa.RecordBatch, most_bytes: int = MAX_PACKET_BYTES) -> Iterator[Publication | Unfit]:
        """One for each row, in order. Those of which a header says how long they are good for have all of that:
        `on_time` takes off what they have waited."""
        names = ("to", "topic", "tags", "key", "headers", "value")
        for to, topic, tags, key, headers, value in zip(*(records.column(n).to_pylist() for n in names), strict=True):
            yield self._composed(to, topic, tags, key, headers, value or b"", most_bytes)

    def on_time(self, one: Publication, came_ms: int | None, now_ms: int) -> Publication:
        """As it is published at this moment. With `expiry_s` its time begins now."""
        given = one.properties.expiry_s
        if given is None or self.expiry_s is not None:
            return one
        left = left_s(given, came_ms, now_ms)
        return one._replace(properties=one.properties._replace(expiry_s=left))

    def _composed(
        self,
        to: str | None,
        topic: str | None,
        tags: str | None,
        key: str | None,
        encoded: bytes | None,
        payload: bytes,
        most: int,
    ) -> Publication | Unfit:
        try:
            headers = decode_headers(encoded) if encoded else {}
            record = _Named(topic, tags, key, headers)
            target = self.template.fill(record.value) if to is None else to
            if wrong := fault_in_topic(target):
                return Unfit("IllegalTopic", f"The topic made of the record {wrong}")
            if target.startswith(self.reserved):
                return Unfit("IllegalTopic", "The topic made of the record is the one of this connector's progress")
            properties = self._properties(record) if self.properties else NO_PROPERTIES
            qos, retain = self._qos(headers), self._retain(headers)
        except NothingNamed as missing:
            return Unfit("NoTopic", f"The record has no {missing}, and its topic is made of that")
        except UnicodeDecodeError:
            return Unfit("IllegalProperty", "The headers are not UTF-8")
        except _Illegal as illegal:
            return Unfit("IllegalProperty", str(illegal))
        return _checked(Publication(target, payload, qos, retain, properties, 0), most)

    def _qos(self, headers: Mapping[str, str]) -> int:
        if self.qos is not None:
            return self.qos
        text = headers.get("MQTT_QOS", "1")
        return _number("MQTT_QOS", text, 2)

    def _retain(self, headers: Mapping[str, str]) -> bool:
        return headers.get("MQTT_RETAIN") == "1" if self.retain is None else self.retain

    def _properties(self, record: _Named) -> Properties:
        headers = record.headers
        correlation = headers.get("MQTT_CORRELATION_DATA")
        kind, interval = headers.get("MQTT_PAYLOAD_FORMAT"), headers.get(EXPIRY)
        own = None if interval is None else _number(EXPIRY, interval, _MAX_EXPIRY_S)
        return Properties(
            self.content_type or headers.get("MQTT_CONTENT_TYPE"),
            headers.get("MQTT_RESPONSE_TOPIC"),
            None if correlation is None else _binary(correlation),
            None if kind is None else _number("MQTT_PAYLOAD_FORMAT", kind, 1),
            own if self.expiry_s is None else self.expiry_s,
            tuple(_user(record)),
        )


def _user(record: _Named) -> Iterator[tuple[str, str]]:
    """A key that is the topic of the MQTT message it came with says nothing more."""
    headers = record.headers
    if record.key and record.key != headers.get("MQTT_TOPIC"):
        yield "KEYS", record.key
    if record.tags:
        yield "TAGS", record.tags
    whole = headers.get(_ALL_USER)
    if whole is not None:
        yield from _pairs(whole)
    for name, value in headers.items():
        if name.startswith(_USER):
            if whole is None:
                yield name.removeprefix(_USER), value
        elif name not in _KNOWN:
            yield name, value


_KNOWN = _ABOUT_DELIVERY | {
    f"{_PREFIX}{name}" for name in ("CONTENT_TYPE", "RESPONSE_TOPIC", "CORRELATION_DATA", "PAYLOAD_FORMAT", "EXPIRY_S")
}


def _pairs(text: str) -> list[tuple[str, str]]:
    try:
        pairs = [(name, value) for name, value in json.loads(text)]
    except (ValueError, TypeError):
        raise _Illegal(f"{_ALL_USER} is not a JSON list of pairs") from None
    if not all(isinstance(one, str) for pair in pairs for one in pair):
        raise _Illegal(f"{_ALL_USER} holds something else than text")
    return pairs


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _Illegal("MQTT_CORRELATION_DATA is not base64") from None


def _number(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= most):
        raise _Illegal(f"{name} is not a number from 0 to {most}")
    return int(text)


def _checked(one: Publication, most_bytes: int) -> Publication | Unfit:
    """With its size. A packet has at most 5 bytes before the variable header, 1 for the length of properties where
    there are none and 4 where there are some, and 5 for each property (MQTT 5, sections 2.2.2 and 3.3)."""
    size = 5 + 2 + len(one.topic.encode()) + 2 + 1 + len(one.payload)
    if one.properties != NO_PROPERTIES:
        texts = list(_texts(one.properties))
        wrong = next(filter(None, map(_wrong, texts)), "") or _wrong_about(one)
        if wrong:
            return Unfit("IllegalProperty", wrong)
        size += 4 + 2 + 5 + sum(5 + len(text.encode()) for text in texts)
        size += 5 + len(one.properties.correlation_data or b"")
    if size > most_bytes:
        return Unfit("MessageTooLarge", f"The packet would have {size} bytes, the broker takes {most_bytes}")
    return one._replace(packet_bytes=size)


def _texts(properties: Properties) -> Iterator[str]:
    yield from (one for one in (properties.content_type, properties.response_topic) if one is not None)
    for pair in properties.user:
        yield from pair


def _wrong(text: str) -> str:
    if CONTROL.search(text):
        return "A property holds a control character, at which a broker may end the connection"
    try:
        return f"A property has more than {MAX_BYTES} bytes" if len(text.encode()) > MAX_BYTES else ""
    except UnicodeEncodeError:
        return "A property is not text"


def _wrong_about(one: Publication) -> str:
    about: list[tuple[Callable[[], bool], str]] = [
        (
            lambda: "+" in (one.properties.response_topic or "") or "#" in (one.properties.response_topic or ""),
            "MQTT_RESPONSE_TOPIC holds a wildcard, + or #",
        ),
        (
            lambda: len(one.properties.correlation_data or b"") > MAX_BYTES,
            f"MQTT_CORRELATION_DATA has more than {MAX_BYTES} bytes",
        ),
        (
            lambda: one.properties.payload_format == 1 and not _is_text(one.payload),
            "MQTT_PAYLOAD_FORMAT says that the payload is text, and it is not UTF-8",
        ),
    ]
    return next((message for is_wrong, message in about if is_wrong()), "")


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def left_s(interval_s: int, came_ms: int | None, now_ms: int) -> int:
    """Seconds, at least 1 for a message that is sent at all; of one that has no time all of the interval."""
    return interval_s if came_ms is None else max(interval_s - _waited_ms(came_ms, now_ms) // 1000, 1)


def is_over(interval_s: int, came_ms: int | None, now_ms: int) -> bool:
    return came_ms is not None and _waited_ms(came_ms, now_ms) >= interval_s * 1000


def _waited_ms(came_ms: int, now_ms: int) -> int:
    return max(now_ms - came_ms, 0)


def expired(records: pa.RecordBatch, now_ms: int) -> NDArray[np.bool_]:
    """For each row of RECORD_SCHEMA whether the time that its header gives it is over."""
    headers = records.column("headers")
    found = np.zeros(len(records), dtype=np.bool_)
    named = pc.fill_null(pc.match_substring(headers, _HAS_EXPIRY), False).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(named)
    if len(rows):
        chosen = pa.array(rows)
        intervals = [_interval(one) for one in headers.take(chosen).to_pylist()]
        times = came_ms(records.take(chosen))
        found[rows] = [
            interval is not None and is_over(interval, came, now_ms)
            for interval, came in zip(intervals, times, strict=True)
        ]
    return found


def came_ms(records: pa.RecordBatch) -> list[int | None]:
    """When each record was received or born, in milliseconds since 1970, UTC."""
    times: list[int | None] = records.column("timestamp").cast(pa.int64()).to_pylist()
    return times


def _interval(headers: bytes) -> int | None:
    """None where a record has none, or something else."""
    text = decode_headers(headers).get(EXPIRY, "")
    return int(text) if text.isascii() and text.isdecimal() else None


class Stretches:
    """Where records of a range were left out: stretches [begin, end) of offsets, in order. Within one nothing was sent,
    whatever else has an offset there."""

    def __init__(self, known: Sequence[tuple[int, int]]) -> None:
        self._all = list(known)
        self._goes_on = False

    def add(self, offsets: NDArray[np.int64], late: NDArray[np.bool_]) -> None:
        """Of rows behind all that is known, which of them are left out."""
        if not len(late):
            return
        flags = np.concatenate([[False], late, [False]])
        changes = np.flatnonzero(flags[1:] != flags[:-1])
        for first, behind in zip(changes[::2], changes[1::2], strict=True):
            end = int(offsets[behind - 1]) + 1
            if first == 0 and self._goes_on:
                self._all[-1] = (self._all[-1][0], end)
            else:
                self._all.append((int(offsets[first]), end))
        self._goes_on = bool(late[-1])

    def before(self, position: int) -> tuple[tuple[int, int], ...]:
        return tuple(one for one in self._all if one[0] < position)

    def too_many_before(self, offset: int) -> bool:
        return len(self._all) > MOST_STRETCHES and self._all[MOST_STRETCHES][0] < offset
