"""A PUBLISH without properties is read as paho reads it; every other one is left to paho."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt import _packet
from paho.mqtt.enums import MQTTProtocolVersion

from connect_core.systems.mqtt.packets import Packet, plain_publish

PUBLISH = 0x30
VERSIONS = {True: MQTTProtocolVersion.MQTTv5, False: MQTTProtocolVersion.MQTTv311}


def body(topic: bytes, packet_id: int | None, properties: bytes, payload: bytes) -> bytes:
    numbered = b"" if packet_id is None else packet_id.to_bytes(2, "big")
    return len(topic).to_bytes(2, "big") + topic + numbered + properties + payload


@given(
    topic=st.text(st.characters(exclude_characters="\0+#", exclude_categories=["Cs"]), min_size=1).map(str.encode),
    payload=st.binary(),
    packet_id=st.one_of(st.none(), st.integers(1, 65_535)),
    dup=st.booleans(),
    retain=st.booleans(),
    five=st.booleans(),
)
def test_it_is_what_paho_reads(
    topic: bytes, payload: bytes, packet_id: int | None, dup: bool, retain: bool, five: bool
) -> None:
    qos = 0 if packet_id is None else 1
    command = PUBLISH | dup << 3 | qos << 1 | retain
    sent = body(topic, packet_id, b"\0" if five else b"", payload)
    read = plain_publish(command, sent, five=five)
    assert read == Packet(topic, payload, qos, packet_id or 0, dup, retain)
    theirs = _packet.decode_publish(command, bytearray(sent), VERSIONS[five])
    assert (theirs.topic, bytes(theirs.payload), theirs.qos, theirs.dup, theirs.retain) == read[:3] + read[4:6]
    assert theirs.mid == (packet_id or 0)


@pytest.mark.parametrize(
    ("command", "sent", "five"),
    [
        (PUBLISH | 2, body(b"t", 1, b"\x02\x01\x01", b"x"), True),  # payload format indicator
        (PUBLISH | 4, body(b"t", 1, b"\0", b"x"), True),  # QoS 2
        (PUBLISH | 6, body(b"t", 1, b"\0", b"x"), True),  # no QoS at all
        (PUBLISH | 2, body(b"", 1, b"\0", b"x"), True),  # no topic, and no alias of one
        (PUBLISH | 2, b"\0\x05t", False),  # ends within its topic
        (PUBLISH | 2, b"\0\x01t\0", False),  # ends within its packet id
        (PUBLISH | 2, b"\0\x01t\0\x01", True),  # ends before its properties
        (PUBLISH, b"\0", False),
        (PUBLISH, b"", True),
    ],
)
def test_what_is_left_to_paho(command: int, sent: bytes, five: bool) -> None:
    assert plain_publish(command, sent, five=five) is None
