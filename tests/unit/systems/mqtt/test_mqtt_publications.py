"""Records become publishes: the rows of the table in docs/mqtt-sink.md, and the way there and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.properties import VariableByteIntegers

from connect_core.sdk.records import encode_headers
from connect_core.sdk.templates import template
from connect_core.sdk.testing.driving import records
from connect_core.systems.mqtt.packets import NO_PROPERTIES, Packet, Properties
from connect_core.systems.mqtt.publications import Composer, Publication, Unfit
from connect_core.systems.mqtt.records import record_batch
from connect_core.systems.mqtt.session_state import Arrival

COMPOSER = Composer(template("{header:MQTT_TOPIC|topic}"), "waybill/u/")


def composed(
    value: bytes = b"x", *, composer: Composer = COMPOSER, most: int = 10**6, **columns: Any
) -> Publication | Unfit:
    headers = encode_headers(columns.pop("headers", {}).items())
    given = {"topic": "t", **columns}
    rows = records([value], headers=[headers or None], **{name: [one] for name, one in given.items()})
    [found] = composer.compose(rows, most)
    return found


def published(**given: Any) -> Publication:
    found = composed(**given)
    assert isinstance(found, Publication), found
    return found


def unfit(**given: Any) -> Unfit:
    found = composed(**given)
    assert isinstance(found, Unfit)
    return found


def test_a_record_without_headers() -> None:
    assert published(value=b"\x00\xff")[:5] == ("t", b"\x00\xff", 1, False, NO_PROPERTIES)


def test_a_record_without_a_value_is_an_empty_payload() -> None:
    [found] = COMPOSER.compose(records([None], topic=["t"]))
    assert isinstance(found, Publication)
    assert found.payload == b""


def test_key_tags_and_other_headers_are_user_properties() -> None:
    found = published(key="k", tags="a", headers={"site": "berlin", "MQTT_USER_unit": "C"})
    assert found.properties.user == (("KEYS", "k"), ("TAGS", "a"), ("site", "berlin"), ("unit", "C"))


def test_a_topic_that_a_rule_names_goes_before_the_template() -> None:
    assert published(to="alarms/{key}", headers={"MQTT_TOPIC": "a"}).topic == "alarms/{key}"
    assert unfit(to="a/#").kind == "IllegalTopic"


def test_of_3_1_1_there_are_no_properties() -> None:
    composer = Composer(COMPOSER.template, "waybill/u/", properties=False)
    found = published(composer=composer, key="k", headers={"site": "b", "MQTT_CONTENT_TYPE": "c", "MQTT_QOS": "2"})
    assert (found.properties, found.qos) == (NO_PROPERTIES, 2)


def test_options_come_before_what_a_record_says() -> None:
    composer = Composer(template("a"), "w/", qos=2, retain=False, expiry_s=9, content_type="c")
    says = {"MQTT_QOS": "0", "MQTT_RETAIN": "1", "MQTT_EXPIRY_S": "5", "MQTT_CONTENT_TYPE": "d"}
    found = published(composer=composer, headers=says)
    assert found[:4] == ("a", b"x", 2, False)
    assert (found.properties.expiry_s, found.properties.content_type) == (9, "c")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"topic": None}, "NoTopic"),
        ({"topic": "a/+"}, "IllegalTopic"),
        ({"topic": "waybill/u/0123"}, "IllegalTopic"),
        ({"headers": {"MQTT_QOS": "3"}}, "IllegalProperty"),
        ({"headers": {"MQTT_QOS": "one"}}, "IllegalProperty"),
        ({"headers": {"MQTT_EXPIRY_S": str(2**32)}}, "IllegalProperty"),
        ({"headers": {"MQTT_CORRELATION_DATA": "?"}}, "IllegalProperty"),
        ({"headers": {"MQTT_USER_PROPERTIES": "{}x"}}, "IllegalProperty"),
        ({"headers": {"MQTT_USER_PROPERTIES": '[["a", 1]]'}}, "IllegalProperty"),
        ({"headers": {"MQTT_RESPONSE_TOPIC": "a/#"}}, "IllegalProperty"),
        ({"headers": {"MQTT_PAYLOAD_FORMAT": "1"}, "value": b"\xff"}, "IllegalProperty"),
        ({"headers": {"site": "a\0b"}}, "IllegalProperty"),
        ({"headers": {"site": "a\tb"}}, "IllegalProperty"),
        ({"key": "a\nb"}, "IllegalProperty"),
        ({"headers": {"site": "x" * 65_536}}, "IllegalProperty"),
        ({"value": b"x" * 200, "most": 200}, "MessageTooLarge"),
    ],
)
def test_what_can_never_be_published_is_unfit(given: dict[str, Any], kind: str) -> None:
    assert unfit(**given).kind == kind


@pytest.mark.parametrize("payload_bytes", [0, 120, 127, 128, 16_384, 2_097_140, 2_097_152])
@pytest.mark.parametrize("headers", [{}, {"site": "x", "MQTT_EXPIRY_S": "5", "MQTT_CORRELATION_DATA": "eHl6"}])
def test_a_packet_is_not_larger_than_is_said(payload_bytes: int, headers: dict[str, str]) -> None:
    """At the limit of a broker one byte more ends the connection."""
    found = published(value=b"x" * payload_bytes, headers=headers, most=10**7)
    packed = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    if headers:
        packed.UserProperty, packed.MessageExpiryInterval, packed.CorrelationData = ("site", "x"), 5, b"xyz"
    body = 2 + len(b"t") + 2 + len(packed.pack()) + payload_bytes  # type: ignore[no-untyped-call]
    packet = 1 + len(VariableByteIntegers.encode(body)) + body
    assert packet <= found.packet_bytes <= packet + 30


def test_headers_that_are_not_text_are_unfit() -> None:
    [found] = COMPOSER.compose(records([b""], topic=["t"], headers=[b"a\x01\xff\x02"]))
    assert isinstance(found, Unfit)
    assert found.kind == "IllegalProperty"


TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=20)
TOPIC = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="+#$"), min_size=1, max_size=20)
PROPERTIES = st.builds(
    Properties,
    content_type=st.none() | TEXT,
    response_topic=st.none() | TOPIC,
    correlation_data=st.none() | st.binary(min_size=1, max_size=20),
    payload_format=st.sampled_from([None, 0]),
    expiry_s=st.none() | st.integers(0, 2**32 - 1),
    user=st.lists(st.tuples(TEXT | st.just("PROPERTIES") | st.just(""), TEXT | st.just("")), max_size=4).map(tuple),
)


@given(TOPIC, st.binary(max_size=50), st.integers(0, 1), st.booleans(), PROPERTIES)
def test_what_came_from_mqtt_goes_back_as_it_was(
    topic: str, payload: bytes, qos: int, retain: bool, properties: Properties
) -> None:
    """Through the record form, which is what lies between in RocketMQ."""
    packet = Packet(topic.encode(), payload, qos, 1, retain=retain, properties=properties)
    batch, rejects = record_batch([Arrival(0, packet, 0, False)])
    assert rejects == ()
    [found] = COMPOSER.compose(batch)
    assert isinstance(found, Publication)
    assert found[:4] == (topic, payload, qos, retain)
    assert found.properties._replace(user=()) == properties._replace(user=())
    assert sorted(found.properties.user) == sorted(properties.user)
