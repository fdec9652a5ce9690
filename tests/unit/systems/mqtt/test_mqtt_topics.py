"""The topic that is made of a record, and what a record that gives none becomes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from connect_core.sdk.records import encode_headers
from connect_core.sdk.templates import template
from connect_core.sdk.testing.driving import records
from connect_core.systems.mqtt.publications import Composer, Unfit
from connect_core.systems.mqtt.sink_options import MqttSinkOptions

HEADERS = encode_headers([("MQTT_TOPIC", "devices/7/state"), ("site", "berlin"), ("a[0]b", "c")])


def topic_of(text: str, **columns: Any) -> str | Unfit:
    """For a record with these columns, else with one of each."""
    given = columns or {"topic": "orders", "tags": "new", "key": "7", "headers": HEADERS}
    [made] = Composer(template(text), "waybill/").compose(
        records([b"x"], **{name: [one] for name, one in given.items()})
    )
    return made if isinstance(made, Unfit) else made.topic


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("fixed/topic", "fixed/topic"),
        ("devices/{key}/cmd", "devices/7/cmd"),
        ("devices/{KEYS}/{TAGS}", "devices/7/new"),
        ("{topic}/{tags}/{header:site}", "orders/new/berlin"),
        ("{header:MQTT_TOPIC|topic}", "devices/7/state"),
        ("{header:none|topic}", "orders"),
        ("a/{header:none|tags|key}", "a/new"),
        ("{header:MQTT_TOPIC[2:]}", "7/state"),
        ("north/{header:MQTT_TOPIC[2:]}", "north/7/state"),
        ("{header:MQTT_TOPIC[3]}/{header:MQTT_TOPIC[1]}", "state/devices"),
        ("a/{header:MQTT_TOPIC[4:]|header:MQTT_TOPIC[4]|key[1:]}", "a/7"),
        ("{header:a[0]b}/{{}}", "c/{}"),
    ],
)
def test_a_topic_is_made_of_a_record(text: str, topic: str) -> None:
    assert topic_of(text) == topic


@pytest.mark.parametrize("text", ["{key}", "a/{tags}", "{header:x|topic}/b", "{key[1:]}", "{header:x[2]}"])
def test_a_record_without_what_its_topic_is_made_of_is_unfit(text: str) -> None:
    unfit = topic_of(text, topic=None)
    assert isinstance(unfit, Unfit)
    assert unfit.kind == "NoTopic"
    assert f"has no {text.partition('{')[2].partition('}')[0].replace('|', ' or ')}" in unfit.message


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a+", "wildcard"),
        ("#", "wildcard"),
        ("a\0b", "control character"),
        ("a\tb", "control character"),
        ("$SYS/x", "broker's own"),
        ("x" * 65_536, "65535 bytes"),
    ],
)
def test_a_value_that_makes_no_topic_is_unfit_and_not_told(value: str, why: str) -> None:
    unfit = topic_of("{key}", key=value)
    assert isinstance(unfit, Unfit)
    assert unfit.kind == "IllegalTopic"
    assert why in unfit.message
    assert value not in unfit.message.replace("wildcard, + or #", "")


@pytest.mark.parametrize(
    "text",
    [
        *("", "a/+", "#", "{", "a}b", "{name}", "{header:}", "{topic|}", "$SYS/{key}", "{}", "{$.id}"),
        *("{topic[0]}", "{topic[:2]}", "{topic[2:3]}", "{name[1]}", "{header:[1]}", "{[1]}", "{topic[1][1]}"),
        *("{header:MQTT_TOPIC[0:]}", "{header:MQTT_TOPIC[-1]}", "{key[a]}", "{header:x[]}", "{tags|header:x[0]}"),
    ],
)
def test_what_can_be_no_topic_is_a_fault(text: str) -> None:
    with pytest.raises(ValidationError, match=r"topic\n"):
        MqttSinkOptions.model_validate({"host": "h", "topic": text})


@pytest.mark.parametrize("text", ["{header:MQTT_TOPIC[0:]}", "{header:MQTT_TOPIC[-1]}", "{header:MQTT_TOPIC[a]}"])
def test_a_level_that_is_none_is_a_fault_that_says_what_to_write(text: str) -> None:
    with pytest.raises(ValidationError, match=r"levels count from 1, \[2\] is the second and \[2:\] all"):
        MqttSinkOptions.model_validate({"host": "h", "topic": text})


def test_a_topic_that_has_not_so_many_levels_is_unfit() -> None:
    unfit = topic_of("a/{header:MQTT_TOPIC[4:]}")
    assert isinstance(unfit, Unfit)
    assert "has no header:MQTT_TOPIC[4:]" in unfit.message
