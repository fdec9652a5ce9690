"""What becomes of a message: the rows of the table in docs/mqtt-source.md."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import decode_headers
from connect_core.systems.mqtt.packets import Packet, Properties
from connect_core.systems.mqtt.records import record_batch
from connect_core.systems.mqtt.session_state import Arrival

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def row(packet: Packet, number: int = 7, trace: int = 0) -> dict[str, object]:
    batch, rejects = record_batch([Arrival(number, packet, trace, False)], NOW)
    assert (batch.schema, rejects) == (RECORD_SCHEMA, ())
    found: dict[str, object] = batch.to_pylist()[0]
    return found


def headers(**given: object) -> dict[str, str]:
    packet = Packet(b"t", b"", 1, 1, properties=Properties(**given))  # type: ignore[arg-type]
    found = decode_headers(row(packet)["headers"])  # type: ignore[arg-type]
    del found["MQTT_TOPIC"], found["MQTT_QOS"]
    return found


def test_the_payload_and_its_topic() -> None:
    found = row(Packet("räume/1".encode(), b"\x00\xff\x01", 1, 3), trace=9)
    assert (found["value"], found["key"], found["topic"]) == (b"\x00\xff\x01", "räume/1", "räume/1")
    assert (found["offset"], found["timestamp"], found["trace"]) == (7, NOW, 9)
    assert decode_headers(found["headers"]) == {"MQTT_TOPIC": "räume/1", "MQTT_QOS": "1"}  # type: ignore[arg-type]


def test_qos_0_has_no_trace() -> None:
    assert row(Packet(b"t", b"", 0))["trace"] is None


def test_the_retain_flag() -> None:
    found = row(Packet(b"t", b"", 1, 1, retain=True))
    assert decode_headers(found["headers"])["MQTT_RETAIN"] == "1"  # type: ignore[arg-type]


@pytest.mark.parametrize("dup", [True, False])
def test_what_may_be_a_repeat_says_so_and_the_flag_of_a_packet_does_not(dup: bool) -> None:
    """A broker sets DUP on all that it has sent before, also where nobody has written it."""
    packet = Packet(b"t", b"", 1, 1, dup=dup)
    batch, _ = record_batch([Arrival(1, packet, 0, False), Arrival(2, packet, 0, True)], NOW)
    first, second = (decode_headers(one) for one in batch.column("headers").to_pylist())
    assert ("MQTT_DUP" in first, second["MQTT_DUP"]) == (False, "1")


def test_properties_of_mqtt_5() -> None:
    assert headers(content_type="text/plain", response_topic="a/b", correlation_data=b"\x00\xff") == {
        "MQTT_CONTENT_TYPE": "text/plain",
        "MQTT_RESPONSE_TOPIC": "a/b",
        "MQTT_CORRELATION_DATA": "AP8=",
    }
    assert headers(payload_format=0, expiry_s=0) == {"MQTT_PAYLOAD_FORMAT": "0", "MQTT_EXPIRY_S": "0"}


def test_user_properties_have_a_prefix() -> None:
    assert headers(user=(("KEYS", "x"), ("WAYBILL", "y"))) == {"MQTT_USER_KEYS": "x", "MQTT_USER_WAYBILL": "y"}


@pytest.mark.parametrize(
    "pair", [("", "x"), ("name", ""), ("a\x01b", "x"), ("a", "b\x02"), ("PROPERTIES", "x"), ("twice", "x")]
)
def test_user_properties_that_cannot_be_headers(pair: tuple[str, str]) -> None:
    user = (("color", "red"), pair, *([("twice", "y")] if pair[0] == "twice" else []))
    found = headers(user=user)
    assert found.pop("MQTT_USER_COLOR" if "MQTT_USER_COLOR" in found else "MQTT_USER_color") == "red"
    assert json.loads(found.pop("MQTT_USER_PROPERTIES")) == [list(one) for one in user]
    assert found == {}


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=5))
def test_no_user_property_is_lost(user: list[tuple[str, str]]) -> None:
    found = headers(user=tuple(user))
    if "MQTT_USER_PROPERTIES" in found:
        assert json.loads(found["MQTT_USER_PROPERTIES"]) == [list(one) for one in user]
    else:
        assert found == {f"MQTT_USER_{name}": value for name, value in user}


def test_separators_in_a_topic_cut_no_header() -> None:
    found = row(Packet(b"a\x01b\x02WAYBILL\x01c", b"", 1, 1))
    assert [*decode_headers(found["headers"])] == ["MQTT_TOPIC", "MQTT_QOS"]  # type: ignore[arg-type]


def test_a_topic_that_is_no_text_is_rejected() -> None:
    batch, (reject,) = record_batch([Arrival(3, Packet(b"\xff", b"x", 1, 1), 5, False)])
    assert (len(batch), reject.offset, reject.kind, reject.original) == (0, 3, "MalformedTopic", b"x")
