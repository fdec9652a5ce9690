"""Options of a broker: the password as the broker gets it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from connect_core.sdk.plugin import Role
from connect_core.systems.mqtt.guarantee import guarantee
from connect_core.systems.mqtt.options import MqttBrokerOptions
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


@pytest.mark.parametrize("address", ["", "b:", "b:0", "b:70000", "tcp://b:1", "me@b", "a b"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match='must be written as "host" or "host:port"'):
        MqttBrokerOptions.model_validate({"host": "a", "failover": [address]})


@pytest.mark.parametrize(("role", "qos", "told"), [("source", 1, True), ("sink", 1, True), ("source", 0, False)])
def test_what_several_addresses_depend_on_is_told(role: Role, qos: int, told: bool) -> None:
    options = {"filters": ["a"], "qos": qos}
    plain, several = guarantee(role, options), guarantee(role, {**options, "failover": ["b"]})
    assert any("one MQTT cluster" in one for one in several.conditions) == told
    assert plain.conditions == several.conditions[: len(plain.conditions)]


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
