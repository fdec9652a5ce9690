"""The topic that is made of a record, and what a record that gives none becomes."""

from __future__ import annotations

import pytest

from connect_core.systems.mqtt.templates import Named, TopicTemplate, Unfit

RECORD = Named("orders", "new", "7", {"MQTT_TOPIC": "devices/7/state", "site": "berlin"})
BARE = Named(None, None, None, {})


@pytest.mark.parametrize(
    ("template", "topic"),
    [
        ("fixed/topic", "fixed/topic"),
        ("devices/{key}/cmd", "devices/7/cmd"),
        ("{topic}/{tags}/{header:site}", "orders/new/berlin"),
        ("{header:MQTT_TOPIC|topic}", "devices/7/state"),
        ("{header:none|topic}", "orders"),
        ("a/{header:none|tags|key}", "a/new"),
        ("{header:MQTT_TOPIC[2:]}", "7/state"),
        ("north/{header:MQTT_TOPIC[2:]}", "north/7/state"),
        ("{header:MQTT_TOPIC[3]}/{header:MQTT_TOPIC[1]}", "state/devices"),
        ("a/{header:MQTT_TOPIC[4:]|header:MQTT_TOPIC[4]|key[1:]}", "a/7"),
    ],
)
def test_a_topic_is_made_of_a_record(template: str, topic: str) -> None:
    assert TopicTemplate.parse(template).fill(RECORD) == topic


@pytest.mark.parametrize("template", ["{key}", "a/{tags}", "{header:x|topic}/b", "{key[1:]}", "{header:x[2]}"])
def test_a_record_without_what_its_topic_is_made_of_is_unfit(template: str) -> None:
    unfit = TopicTemplate.parse(template).fill(BARE)
    assert isinstance(unfit, Unfit)
    assert unfit.kind == "NoTopic"
    assert "has no" in unfit.message


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
    unfit = TopicTemplate.parse("{key}").fill(BARE._replace(key=value))
    assert isinstance(unfit, Unfit)
    assert unfit.kind == "IllegalTopic"
    assert why in unfit.message
    assert value not in unfit.message.replace("wildcard, + or #", "")


@pytest.mark.parametrize(
    "template",
    [
        *("", "a/+", "#", "{", "a}b", "{name}", "{header:}", "{topic|}", "$SYS/{key}", "{}"),
        *("{topic[0]}", "{topic[:2]}", "{topic[2:3]}", "{name[1]}", "{header:[1]}", "{[1]}", "{topic[1][1]}"),
    ],
)
def test_what_can_be_no_template_is_a_fault(template: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        TopicTemplate.parse(template)


def test_a_topic_that_has_not_so_many_levels_is_unfit() -> None:
    unfit = TopicTemplate.parse("a/{header:MQTT_TOPIC[4:]}").fill(RECORD)
    assert isinstance(unfit, Unfit)
    assert "has no header:MQTT_TOPIC[4:]" in unfit.message


def test_whether_every_record_has_the_same_topic() -> None:
    assert TopicTemplate.parse("a/b").fixed
    assert not TopicTemplate.parse("a/{key}").fixed
