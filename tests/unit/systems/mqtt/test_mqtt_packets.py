"""A PUBLISH is read as paho reads and writes it, and where paho gives up the connection, as MQTT has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt import _packet
from paho.mqtt.enums import MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from connect_core.systems.mqtt.packets import Packet, Properties, read_publish
from connect_core.systems.mqtt.records import record_batch
from connect_core.systems.mqtt.session_state import Arrival

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
    read = read_publish(command, sent, five=five)
    assert read == Packet(topic, payload, qos, packet_id or 0, dup, retain)
    theirs = _packet.decode_publish(command, bytearray(sent), VERSIONS[five])
    assert (theirs.topic, bytes(theirs.payload), theirs.qos, theirs.dup, theirs.retain) == read[:3] + read[4:6]
    assert theirs.mid == (packet_id or 0)


TEXTS = st.text(st.characters(exclude_characters="\0\ufeff", exclude_categories=["Cs", "Cc", "Cn"]))


@given(
    st.builds(
        Properties,
        st.none() | TEXTS,
        st.none() | TEXTS,
        st.none() | st.binary(),
        st.none() | st.integers(0, 1),
        st.none() | st.integers(0, 2**32 - 1),
        st.lists(st.tuples(TEXTS, TEXTS)).map(tuple),
    ),
    st.lists(st.integers(1, 268_435_455)),
    st.binary(),
)
def test_properties_are_what_paho_writes(properties: Properties, subscriptions: list[int], payload: bytes) -> None:
    told = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    names = ("ContentType", "ResponseTopic", "CorrelationData", "PayloadFormatIndicator", "MessageExpiryInterval")
    for name, value in zip(names, properties, strict=False):
        if value is not None:
            setattr(told, name, value)
    for one in properties.user:
        told.UserProperty = one
    for number in subscriptions:
        told.SubscriptionIdentifier = number
    sent = body(b"t", 7, told.pack(), payload)
    assert read_publish(PUBLISH | 2, sent, five=True) == Packet(
        b"t", payload, 1, 7, properties=properties, subscriptions=tuple(subscriptions)
    )


def test_texts_that_paho_refuses() -> None:
    """MQTT 5, 1.5.4: a zero width no-break space stays where it is."""
    said = b"\x03\x00\x05\xef\xbb\xbf{}" + b"\x26\x00\x03\xef\xbb\xbf\x00\x01C"
    packet = read_publish(PUBLISH | 2, body(b"t", 7, bytes([len(said)]) + said, b"x"), five=True)
    assert packet == Packet(b"t", b"x", 1, 7, properties=Properties("\ufeff{}", user=(("\ufeff", "C"),)))


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (b"\x01", "end too early"),
        (b"\x02\0\0\0", "end too early"),
        (b"\x09\0\x05abc", "end too early"),
        (b"\x26\0\x01a", "end too early"),
        (b"\x03\0\x01\xff", "not UTF-8"),
        (b"\x26\0\x01a\0\x03\xed\xa0\x80", "not UTF-8"),
        (b"\x0b\x80\x80\x80\x80\x01", "longer than four bytes"),
        (b"\x0b\x80", "end too early"),
        (b"\x7f", "no property 0x7f"),
    ],
)
def test_a_packet_whose_properties_cannot_be_read_is_one_with_a_fault(said: bytes, fault: str) -> None:
    packet = read_publish(PUBLISH | 3, body(b"t", 7, bytes([len(said)]) + said, b"x"), five=True)
    assert fault in packet.fault
    assert packet == Packet(b"t", b"x", 1, 7, retain=True, fault=packet.fault)
    arrivals = [Arrival(4, packet, 0, False), Arrival(5, Packet(b"t", b"y", 1, 8), 0, False)]
    records, [reject] = record_batch(arrivals)
    assert records.column("offset").to_pylist() == [5]
    assert (reject.offset, reject.kind, reject.original) == (4, "MalformedProperties", b"x")


_EARLY = "It ends too early"


@pytest.mark.parametrize(
    ("command", "sent", "five", "why"),
    [
        (PUBLISH | 4, body(b"t", 1, b"\0", b"x"), True, "QoS 2, which was not asked for"),
        (PUBLISH | 6, body(b"t", 1, b"\0", b"x"), True, "QoS 3"),  # there is none
        (PUBLISH | 2, body(b"", 1, b"\0", b"x"), True, "no topic"),  # and no alias of one
        (PUBLISH | 2, b"\0\x05t", False, _EARLY),  # within its topic
        (PUBLISH | 2, b"\0\x01t\0", False, _EARLY),  # within its packet id
        (PUBLISH | 2, b"\0\x01t\0\x01", True, _EARLY),  # before its properties
        (PUBLISH | 2, b"\0\x01t\0\x01\x05\x01\x01", True, "properties end too early"),
        (PUBLISH | 2, b"\0\x01t\0\x01\xff\xff\xff\xff\x01", True, "longer than four bytes"),
        (PUBLISH, b"\0", False, "no topic"),
        (PUBLISH, b"", True, "no topic"),
    ],
)
def test_what_is_no_publish(command: int, sent: bytes, five: bool, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_publish(command, sent, five=five)


@given(st.integers(0, 15), st.binary(max_size=60), st.booleans())
def test_any_bytes_are_a_packet_or_none(flags: int, sent: bytes, five: bool) -> None:
    try:
        packet = read_publish(PUBLISH | flags, sent, five=five)
    except ValueError:
        return
    record_batch([Arrival(1, packet, 0, False)])


def test_many_user_properties_cost_little() -> None:
    """Each name is looked for once, not once for each of the others."""
    many = tuple((f"name-{n}", "x") for n in range(16_000))
    [headers] = record_batch([Arrival(1, Packet(b"t", b"", 1, 1, properties=Properties(user=many)), 0, False)])[0][
        "headers"
    ].to_pylist()
    assert headers.count(b"MQTT_USER_name-") == 16_000
