"""The rules of a document, checked: what they name, and where they lead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import Settings, check, read_text

Faults = Callable[..., list[str]]

RULED = """\
version: 1
name: x
source: {file: {path: a}}
sink: {SINK}
rules:
- {RULE}
"""
TO_ROCKETMQ = "rocketmq: {connection: main, topic: b}"


def ruled(rule: str, sink: str = TO_ROCKETMQ) -> str:
    return RULED.replace("{SINK}", f"{{{sink}}}").replace("{RULE}", f"{{{rule}}}")


@pytest.mark.parametrize(
    "rule",
    [
        "name: a",
        "name: a, filter: 'site/+/temp/#', when: \"$.value > 30 AND topic[1] = 'site'\", to: alarms, enabled: false",
        "name: a, tags: '{topic[2]}-{$.unit}', keys: '{header:id}', when: ''",
    ],
)
def test_rules(rule: str, faults: Faults) -> None:
    assert faults(ruled(rule).replace("file: {path: a}", "mqtt: {host: b, filters: ['in/#']}")) == []


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("filter: a", "rules.0.name: line 6: is missing"),
        ("name: a b", "rules.0.name: line 6: 'a b' cannot name a rule"),
        ("name: a, filter: 'a/#/b'", "rules.0.filter: line 6: # may be the last level only"),
        ("name: a, filter: 'a+'", "rules.0.filter: line 6: + and # stand for whole levels"),
        ("name: a, filter: '$share/g/a'", "rules.0.filter: line 6: is a shared subscription"),
        ("name: a, when: '$.a >'", "rules.0.when: line 6: is not a condition: it cannot be read at its end"),
        ("name: a, when: \"$.a > 'x'\"", "rules.0.when: line 6: > compares numbers only"),
        ("name: a, when: \"HEADER:x = 'a'\"", "rules.0.when: line 6: 'HEADER:x' names nothing"),
        ("name: a, tags: '{id}'", "rules.0.tags: line 6: 'id' names nothing: write $.name of the payload"),
        ("name: a, keys: '{topic'", "rules.0.keys: line 6: the brace at character 1 is not part of a pair"),
        (
            "name: a, to: '{$.a}'",
            "rules.0.to: line 6: must be the name of one topic; a template needs dynamic_topics",
        ),
        ("name: a, to: 'a/b'", "rules.0.to: line 6: must be 1 to 127 of the characters"),
        ("name: a, to: WAYBILL_BARRIER", "rules.0.to: line 6: is a topic that RocketMQ or Waybill uses for itself"),
        ("name: a, enabled: 'no'", "rules.0.enabled: line 6: input should be a valid boolean"),
        ("name: a, want: b", 'rules.0.want: line 6: unknown key "want"'),
    ],
)
def test_a_rule_that_means_nothing(rule: str, fault: str, faults: Faults) -> None:
    (told,) = faults(ruled(rule))
    assert told.startswith(fault), told


def test_two_rules_with_one_name(faults: Faults) -> None:
    assert faults(ruled("name: a") + "- {name: a}\n") == ['rules: line 5: two rules have the name "a"']


def test_a_sink_without_topics_takes_none(faults: Faults) -> None:
    told = faults(ruled("name: a, to: b", "file: {path: b}"))
    assert told == ["rules.0.to: line 6: names a topic, but file has no topics: leave it out"]
    assert faults(ruled("name: a, tags: b", "file: {path: b}")) == []


def test_a_rule_does_not_feed_its_own_source(faults: Faults) -> None:
    text = ruled("name: a, to: alarms").replace("file: {path: a}", "rocketmq: {connection: main, topics: ['al*']}")
    assert faults(text) == ["rules.0.to: line 6: is a topic that the source reads, in the same cluster"]
    assert faults(text.replace("'al*'", "'or*'")) == []
    other = text.replace("connection: main, topic: b", "name_servers: ['other:9876'], topic: b")
    assert faults(other) == []


def test_groups_are_not_kept_in_step_through_rules(faults: Faults) -> None:
    text = ruled("name: a", "rocketmq: {name_servers: ['other:9876'], topic: b, groups: [g]}")
    text = text.replace("file: {path: a}", "rocketmq: {connection: main, topics: [a]}")
    (told,) = faults(text)
    assert told.startswith("sink.rocketmq.groups: line 4: cannot be kept in step through rules")


def test_rules_that_are_all_disabled_are_legal_and_told(home: Path, settings: Settings) -> None:
    def notices(text: str) -> tuple[str, ...]:
        return check(read_text(text, where="x")[0], home, settings).notices

    off = ruled("name: a, enabled: false")
    assert notices(off) == ("rules: all are disabled, so every record is filtered",)
    assert (
        notices(off + "- {name: b}\n") == notices(RULED.split("rules")[0].replace("{SINK}", f"{{{TO_ROCKETMQ}}}")) == ()
    )


TO_MQTT = "mqtt: {host: b, topic: out}"


@pytest.mark.parametrize("to", ["alarms", "alarms/{topic[2]}", "{header:target}"])
def test_any_topic_of_mqtt_may_be_named(to: str, faults: Faults) -> None:
    elsewhere = ruled(f"name: a, to: '{to}'", TO_MQTT)
    assert faults(elsewhere.replace("file: {path: a}", "mqtt: {host: c, filters: ['in/#']}")) == []
    text = ruled(f"name: a, to: 'no/{to}'", TO_MQTT)
    assert faults(text.replace("file: {path: a}", "mqtt: {host: b, filters: ['in/#']}")) == []


def test_a_target_that_cannot_be_read_again_is_not_verified(faults: Faults) -> None:
    text = ruled("name: a", TO_MQTT) + "verify: {every: 1d}\n"
    assert faults(text) == ["verify: line 7: a target of MQTT cannot be read again: leave verify out"]


@pytest.mark.parametrize(
    ("to", "fault"),
    [
        ("alarms/+", "makes a topic that holds a wildcard"),
        ("$SYS/x", "makes a topic that begins with $"),
        ("in/alarms", "is a topic that the source reads, at the same broker"),
        ("{topic}", "is a topic that the source reads, at the same broker"),
        ("{topic[1]}/alarms", "is a topic that the source reads, at the same broker"),
    ],
)
def test_a_topic_of_mqtt_that_cannot_be_named(to: str, fault: str, faults: Faults) -> None:
    text = ruled(f"name: a, to: '{to}'", TO_MQTT).replace("file: {path: a}", "mqtt: {host: b, filters: ['in/#']}")
    (told,) = faults(text)
    assert told.startswith(f"rules.0.to: line 6: {fault}"), told
    if "source" in fault:
        assert faults(text.replace("host: b, filters", "host: c, filters")) == []
