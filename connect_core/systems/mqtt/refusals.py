"""What a broker says against a publish or a subscription, as errors of our tree (MQTT 5, sections 3.4.2.1, 3.5.2.1,
3.9.3). 0x10, that nobody has subscribed, is no refusal. None of this is said in 3.1.1: such a broker acknowledges what
it drops, or closes the connection."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
from paho.mqtt.reasoncodes import ReasonCode

from connect_core.errors import DataError, Refused, Retriable, WaybillError

NOT_AUTHORISED = 0x87
OF_ONE_RECORD = frozenset({0x90, 0x95, 0x99})
"""Codes that concern this message alone, and for good: its topic, its size, its payload's format."""
OF_ONE_TOPIC = OF_ONE_RECORD | {NOT_AUTHORISED}
"""The same where a document says that a topic to which nobody lets us publish concerns its records alone."""


class RefusedPublish(Exception):
    """The record at `offset` was refused; `error` is for whoever runs the connector. `row` is the record where the
    refusal concerns it alone."""

    def __init__(self, offset: int, error: WaybillError, row: pa.RecordBatch | None) -> None:
        super().__init__(offset, error)
        self.offset, self.error, self.row = offset, error, row


_KINDS: dict[int, tuple[type[WaybillError], str]] = {
    0x83: (Retriable, "Look at the broker's log"),
    NOT_AUTHORISED: (
        Refused,
        "Let this user publish and subscribe to it, or change the sink's topic. With on_refused: reject such records "
        "become dead letters, and the others are delivered",
    ),
    0x90: (Refused, "The broker does not take this topic: change the sink's topic, or filter such records out"),
    0x91: (Retriable, "Try again; if it stays, look at the broker's log"),
    0x95: (DataError, "Set max_packet_bytes to what the broker takes: larger records are rejected then"),
    0x97: (Retriable, "Wait, raise the broker's quota, or move less: limits.records_per_second"),
    0x99: (
        DataError,
        "The payload does not match its format indicator: correct the source, or filter such records out",
    ),
    0x9A: (Refused, "Let the broker keep retained messages, or set retain: false"),
    0x9B: (Refused, "Lower qos"),
}


def refusal(
    offset: int,
    topic: str,
    reason: ReasonCode,
    row: pa.RecordBatch | None,
    *,
    where: str,
    alone: Collection[int] = OF_ONE_RECORD,
) -> RefusedPublish:
    """`alone` are the codes that concern no other record."""
    kind, advice = _KINDS.get(reason.value, (Retriable, "Look at the broker's log"))
    what = f"The broker refuses a message for topic {topic}: {reason}"
    error = kind(what, where=f"{where}, offset {offset}", next_step=advice)
    return RefusedPublish(offset, error, row if reason.value in alone else None)


def no_subscription(topic: str, reason: ReasonCode, *, where: str) -> Refused:
    return Refused(
        f"The broker does not grant a subscription to {topic}: {reason}",
        where=where,
        next_step="Let this user publish and subscribe to it, or change progress_topic",
    )
