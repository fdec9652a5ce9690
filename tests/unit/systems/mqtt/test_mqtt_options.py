"""Options of a broker: the password as the broker gets it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

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
