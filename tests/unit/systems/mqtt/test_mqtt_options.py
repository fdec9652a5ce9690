"""Options of a broker: the password as the broker gets it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from connect_core.sdk.plugin import Role
from connect_core.systems.mqtt.options import MqttBrokerOptions, MqttSourceOptions
from connect_core.systems.mqtt.plugin import guarantee
from connect_core.systems.mqtt.probing import looking_id
from connect_core.systems.mqtt.sink_options import MqttSinkOptions

BROKER = {"host": "a", "user": "me"}


def test_a_plain_password_goes_as_it_is() -> None:
    assert MqttBrokerOptions.model_validate({**BROKER, "password": "p"}).password_for("id") == "p"
    assert MqttBrokerOptions.model_validate(BROKER).password_for("id") is None


def test_a_signature_is_that_of_the_client_id() -> None:
    """Reckoned with `printf GID_a@@@b | openssl dgst -sha1 -hmac s -binary | base64`."""
    options = MqttBrokerOptions.model_validate({**BROKER, "password": "s", "signature": True})
    assert options.password_for("GID_a@@@b") == "JvAG+oceolvUSB2SeSbMwkk7kWg="
    assert options.password_for("other") != options.password_for("GID_a@@@b")


def test_a_signature_needs_a_key() -> None:
    with pytest.raises(ValidationError, match="signature needs password"):
        MqttBrokerOptions.model_validate({**BROKER, "signature": True})


RESTRICTED = {"broker": "rocketmq-mqtt", **BROKER}


def test_a_kind_of_broker_has_defaults_of_its_own() -> None:
    source = MqttSourceOptions.model_validate({**RESTRICTED, "filters": ["d/1"]})
    assert (source.protocol, source.keeps_its_word, source.keep_alive_s) == ("3.1.1", False, 30)
    sink = MqttSinkOptions.model_validate({**RESTRICTED, "topic": "d/1"})
    assert (sink.protocol, sink.in_flight, sink.retain, sink.max_packet_bytes) == ("3.1.1", 1, False, 65_536)
    asked = MqttSinkOptions.model_validate({**RESTRICTED, "topic": "d/1", "in_flight": 20, "retain": "record"})
    assert (asked.in_flight, asked.retain) == (20, "record")
    standard = MqttSinkOptions.model_validate({**BROKER, "topic": "d/1"})
    assert (standard.protocol, standard.in_flight, standard.retain, standard.keep_alive_s) == ("5", 1000, "record", 0)


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"protocol": "5"}, "has 3.1.1 alone"),
        ({"packet_ids": "count_up"}, "sends again under other ids"),
        ({"filters": ["$share/g/d/1"]}, "shared subscriptions need protocol 5"),
        ({"client_group": "GID@@@"}, "client_group"),
    ],
)
def test_what_it_does_not_do_is_refused(more: dict[str, object], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        MqttSourceOptions.model_validate({**RESTRICTED, "filters": ["d/1"], **more})


def test_a_group_comes_before_each_client_id() -> None:
    given = {**BROKER, "client_group": "GID_a", "uid": "u"}
    source = MqttSourceOptions.model_validate({**given, "filters": ["d/1"]})
    assert (source.client_id(0), source.client_id(1)) == ("GID_a@@@waybill-u-0", "GID_a@@@waybill-u-1")
    sink = MqttSinkOptions.model_validate({**given, "topic": "d/1"})
    assert sink.sink_client_id("live", "p") == "GID_a@@@waybill-u-sink-p"
    assert looking_id(sink).startswith("GID_a@@@waybill-u-look-")
    assert len(sink.model_copy(update={"uid": "0" * 12}).sink_client_id("live", "0" * 16)) <= 64


@pytest.mark.parametrize("version", [5, "5"])
def test_a_version_may_be_written_as_a_number(version: object) -> None:
    assert MqttBrokerOptions.model_validate({**BROKER, "protocol": version}).protocol == "5"
    with pytest.raises(ValidationError, match=r"'5' or '3\.1\.1'"):
        MqttBrokerOptions.model_validate({**BROKER, "protocol": 3})


def test_what_a_broker_cannot_refuse_cannot_be_rejected() -> None:
    sink = {"host": "a", "topic": "t", "on_refused": "reject"}
    assert MqttSinkOptions.model_validate(sink).on_refused == "reject"
    with pytest.raises(ValidationError, match="no way to refuse a publish"):
        MqttSinkOptions.model_validate({**sink, "protocol": "3.1.1"})


def test_addresses_are_tried_in_their_order_with_the_usual_port() -> None:
    failover = ["b", "c:1884", "[::1]:7", "::1"]
    options = MqttBrokerOptions.model_validate({"host": "a", "failover": failover})
    assert options.addresses == [("a", 1883), ("b", 1883), ("c", 1884), ("::1", 7), ("::1", 1883)]
    secured = MqttBrokerOptions.model_validate({"host": "a", "port": 1, "tls": True, "failover": "b"})
    assert secured.addresses == [("a", 1), ("b", 8883)]
    assert options.where == "a:1883", "which one answers does not change who it is"


@pytest.mark.parametrize(
    "address", ["", "b:", "b:0", "b:70000", "tcp://b:1", "me@b", "a b", ":18833", ":", "b:c", "b:1:2"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match='must be written as "host" or "host:port"'):
        MqttBrokerOptions.model_validate({"host": "a", "failover": [address]})


@pytest.mark.parametrize(("role", "qos", "told"), [("source", 1, True), ("sink", 1, True), ("source", 0, False)])
def test_what_several_addresses_depend_on_is_told(role: Role, qos: int, told: bool) -> None:
    options = {"filters": ["a"], "qos": qos}
    plain, several = guarantee(role, options), guarantee(role, {**options, "failover": ["b"]})
    assert any("one MQTT cluster" in one for one in several.conditions) == told
    assert plain.conditions == several.conditions[: len(plain.conditions)]


@pytest.mark.parametrize("path", ["m", "/m HTTP/1.1", "/m\r\nX-Injected: y"])
def test_the_path_of_a_websocket_is_one(path: str) -> None:
    with pytest.raises(ValidationError, match='must begin with "/"'):
        MqttBrokerOptions.model_validate({"host": "a", "websockets": path})


def test_headers_need_a_websocket_and_protocols_need_tls() -> None:
    for given, words in ({"websocket_headers": {"a": "b"}}, "without websockets"), ({"alpn": "mqtt"}, "without tls"):
        with pytest.raises(ValidationError, match=words):
            MqttBrokerOptions.model_validate({"host": "a", **given})
    whole = {"host": "a", "tls": True, "alpn": "mqtt", "websockets": "/", "websocket_headers": {"X-Tenant": "acme"}}
    assert MqttBrokerOptions.model_validate(whole).alpn == ("mqtt",)
    assert "acme" not in repr(MqttBrokerOptions.model_validate(whole))


@pytest.mark.parametrize("name", ["Host", "sec-websocket-key", "Upgrade", "a b", "a\r\nb", "", "é"])
def test_a_header_that_would_break_the_request_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="must be the name of a header"):
        MqttBrokerOptions.model_validate({"host": "a", "websockets": "/", "websocket_headers": {name: "x"}})
    with pytest.raises(ValidationError, match="must be printable ASCII"):
        MqttBrokerOptions.model_validate({"host": "a", "websockets": "/", "websocket_headers": {"a": f"x\r\n{name}"}})
