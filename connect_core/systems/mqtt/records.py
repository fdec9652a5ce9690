"""Packets -> rows of RECORD_SCHEMA. The payload is the value, byte for byte; what MQTT says beside it becomes headers.

    MQTT                         record
    topic                        key, header MQTT_TOPIC
    QoS of the delivery          header MQTT_QOS
    retain flag                  header MQTT_RETAIN: 1 when it is set, else not there
    (may be a repeat)            header MQTT_DUP: 1 when the record may be in the target already, else not there
    content type                 header MQTT_CONTENT_TYPE
    response topic               header MQTT_RESPONSE_TOPIC
    correlation data             header MQTT_CORRELATION_DATA, base64
    payload format indicator     header MQTT_PAYLOAD_FORMAT: 0 or 1
    message expiry interval      header MQTT_EXPIRY_S: the seconds that were left when it came
    user property NAME           header MQTT_USER_NAME
    user properties that cannot  header MQTT_USER_PROPERTIES: all of them, a JSON list of pairs
    be headers

The DUP flag says that a broker has sent the packet before, to whichever connection. Most of these are no repeats for
whoever reads the target: the record came there for the first time, or the packet is dropped. So the flag itself is no
header, and what may be a repeat has one.

A user property has a prefix so that no device can set a header that means something to a target. It cannot be a header
when its name is empty or comes twice, its value is empty, or one of them holds the characters 1 or 2, with which
RocketMQ separates properties.

By the user property `WAYBILL_HOPS` a circle of connectors ends: it holds the uids of the connectors that mark, oldest
first, with commas between. It travels as a user property (MQTT 5), and through other systems as the header
`MQTT_USER_WAYBILL_HOPS`. Every circle that leads through a broker has an MQTT source that reads from it, so a source
alone needs to mark, and to look.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import pyarrow as pa

from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import OPERATION_NONE, encode_headers
from connect_core.sdk.values import Reject
from connect_core.systems.mqtt.packets import NO_PROPERTIES, Packet, Properties
from connect_core.systems.mqtt.session_state import Arrival

HOPS = "WAYBILL_HOPS"
_SEPARATORS = frozenset("\x01\x02")


def record_batch(arrivals: Sequence[Arrival], now: datetime | None = None) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    """Rows in the order of arrival, and what cannot be one: a packet whose topic is not text as MQTT has it, or whose
    properties cannot be read."""
    texts = {topic: _text(topic) for topic in {one.packet.topic for one in arrivals}}
    rejects = tuple(_reject(one) for one in arrivals if one.packet.fault or texts[one.packet.topic] is None)
    rejected = {one.offset for one in rejects}
    kept = [one for one in arrivals if one.number not in rejected] if rejects else arrivals
    topics = [texts[one.packet.topic] for one in kept]
    columns = {
        "topic": topics,
        "key": topics,
        "value": [one.packet.payload for one in kept],
        "headers": _all_headers(kept),
        "offset": [one.number for one in kept],
        "timestamp": [int((now or datetime.now(UTC)).timestamp() * 1000)] * len(kept),
        "trace": [one.trace or None for one in kept],
    }
    same = _same_in_all(len(kept))
    arrays = [
        pa.array(columns[one.name], type=one.type) if one.name in columns else same[one.name] for one in RECORD_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_SCHEMA), rejects


@lru_cache(maxsize=64)
def _same_in_all(rows: int) -> dict[str, pa.Array]:
    """Columns of which packets say nothing. Kept: a message that comes alone would wait for them to be made."""
    nothing = {one.name: pa.nulls(rows, one.type) for one in RECORD_SCHEMA if one.nullable}
    return nothing | {"operation": pa.array([OPERATION_NONE] * rows, type=RECORD_SCHEMA.field("operation").type)}


def _all_headers(arrivals: Sequence[Arrival]) -> list[bytes]:
    """Most packets have what others have too: everything but the payload and the packet id."""
    made: dict[tuple[object, ...], bytes] = {}
    headers = []
    for packet, doubtful in ((one.packet, one.doubtful) for one in arrivals):
        said = (packet.topic, packet.qos, doubtful, packet.retain, packet.properties)
        if said not in made:
            made[said] = _headers(packet, packet.topic.decode(), doubtful=doubtful)
        headers.append(made[said])
    return headers


def _headers(packet: Packet, topic: str, *, doubtful: bool) -> bytes:
    pairs = [("MQTT_TOPIC", _without_separators(topic)), ("MQTT_QOS", str(packet.qos))]
    if packet.retain:
        pairs.append(("MQTT_RETAIN", "1"))
    if doubtful:
        pairs.append(("MQTT_DUP", "1"))
    if packet.properties != NO_PROPERTIES:
        pairs += _described(packet.properties)
    return encode_headers(pairs)


def _described(properties: Properties) -> Iterator[tuple[str, str]]:
    if properties.content_type:
        yield "MQTT_CONTENT_TYPE", _without_separators(properties.content_type)
    if properties.response_topic:
        yield "MQTT_RESPONSE_TOPIC", _without_separators(properties.response_topic)
    if properties.correlation_data:
        yield "MQTT_CORRELATION_DATA", base64.b64encode(properties.correlation_data).decode()
    if properties.payload_format is not None:
        yield "MQTT_PAYLOAD_FORMAT", str(properties.payload_format)
    if properties.expiry_s is not None:
        yield "MQTT_EXPIRY_S", str(properties.expiry_s)
    times = Counter(name for name, _ in properties.user)
    legal = [(name, value) for name, value in properties.user if times[name] == 1 and _is_header(name, value)]
    yield from ((f"MQTT_USER_{name}", value) for name, value in legal)
    if len(legal) < len(properties.user):
        yield "MQTT_USER_PROPERTIES", json.dumps(properties.user)


def _is_header(name: str, value: str) -> bool:
    return bool(name and value) and name != "PROPERTIES" and not _SEPARATORS & {*name, *value}


def _without_separators(text: str) -> str:
    """Brokers need not take control characters (MQTT 5, section 1.5.4); from those that do, they are shown as such."""
    return text.replace("\x01", "\u2401").replace("\x02", "\u2402")


def _text(topic: bytes) -> str | None:
    try:
        return topic.decode()
    except UnicodeDecodeError:
        return None


def _reject(arrival: Arrival) -> Reject:
    kind, message = ("MalformedTopic", "The topic is not UTF-8")
    if arrival.packet.fault:
        kind, message = "MalformedProperties", arrival.packet.fault
    return Reject(arrival.number, 0, "read", kind, message, arrival.packet.payload[:65_536])


def sorted_out(arrivals: Sequence[Arrival], uid: str, most: int) -> tuple[list[Arrival], tuple[int, ...]]:
    """Those that go on, marked as having passed this connector; and the numbers of those that have passed it before, or
    `most` connectors."""
    kept, left_out = [], []
    for one in arrivals:
        before = hops_of(one.packet)
        if uid in before or len(before) >= most:
            left_out.append(one.number)
        else:
            kept.append(one._replace(packet=_marked(one.packet, [*before, uid])))
    return kept, tuple(left_out)


def hops_of(packet: Packet) -> list[str]:
    return [uid for name, text in packet.properties.user if name == HOPS for uid in text.split(",") if uid]


def _marked(packet: Packet, hops: Sequence[str]) -> Packet:
    others = [pair for pair in packet.properties.user if pair[0] != HOPS]
    user = (*others, (HOPS, ",".join(hops)))
    return packet._replace(properties=packet.properties._replace(user=user))
