"""What a document names that no record of its source can have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connect_core.config import load_document

Faults = Callable[..., list[str]]

FILE = "file: {path: logs/*.log}"
MQTT = "mqtt: {host: h, filters: [a/#]}"
QUEUES = "rocketmq: {connection: main, topics: [other]}"
TO_TOPIC = "rocketmq: {connection: main, topic: lines}"
HEADERLESS = "which records of file do not have"


def _document(rest: str, source: str = FILE, sink: str = TO_TOPIC) -> str:
    return f"version: 1\nname: x\nsource: {{{source}}}\nsink: {{{sink}}}\n{rest}\n"


def _rule(options: str) -> str:
    return f"rules:\n- {{name: bad, {options}}}"


@pytest.mark.parametrize(
    ("options", "key", "words"),
    [
        ('when: "status = 500"', "when", f"'status' names a header, {HEADERLESS}; did you mean $.status?"),
        ('when: "$.a = 1 AND header:x-1 IS NULL"', "when", "did you mean $['x-1']?"),
        ("when: \"TAGS = 'a'\"", "when", f"'TAGS' names the tags, {HEADERLESS} (they have: $.NAME"),
        ('when: "KEYS IS NOT NULL"', "when", "'KEYS' names the key"),
        ("when: \"topic[1] = 'a'\"", "when", "'topic[1]' names the topic"),
        ("filter: a/+", "filter", "matches topics, which records of file do not have: leave it out"),
        ('keys: "{$.id}-{header:site}"', "keys", "'{header:site}' names a header"),
        ('tags: "{header:site|$.site}"', "tags", "'{header:site|$.site}' names a header"),
        ('tags: "{topic[2]}"', "tags", "names the topic"),
    ],
)
def test_lines_have_nothing_but_their_payload(faults: Faults, options: str, key: str, words: str) -> None:
    found = faults(_document(_rule(options)))
    assert len(found) == 1, found
    assert found[0].startswith(f"rules.0.{key}: line 6: rule bad: ")
    assert words in found[0]


@pytest.mark.parametrize(
    ("wanted", "place", "words"),
    [
        ("{tags: [a]}", "filter.tags", "names the tags"),
        ("{headers: {region: eu}}", "filter.headers.region", "'region' names a header"),
        ('{sql: "amount > 1"}', "filter.sql", "'amount' names a header"),
        ("{sql: \"TAGS = 'a'\"}", "filter.sql", "'TAGS' names the tags"),
        ('{when: "level = 1"}', "filter.when", "did you mean $.level?"),
    ],
)
def test_a_filter_names_what_may_be_there(faults: Faults, wanted: str, place: str, words: str) -> None:
    found = faults(_document(f"filter: {wanted}"))
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: line 5: ")
    assert words in found[0]


@pytest.mark.parametrize("source", [MQTT, QUEUES])
def test_where_headers_may_be_a_bare_word_is_one(faults: Faults, source: str) -> None:
    rules = _rule('when: "status = 500 AND TAGS = \'a\'", filter: a/b, keys: "{header:x|topic}"')
    wanted = "filter: {tags: [a], headers: {region: eu}, sql: \"amount > 1 AND TAGS = 'a'\"}"
    assert faults(_document(f"{rules}\n{wanted}", source)) == []


@pytest.mark.parametrize("source", [MQTT, QUEUES])
def test_messages_are_of_no_file(faults: Faults, source: str) -> None:
    (found,) = faults(_document(_rule("when: \"file:name = 'a'\""), source))
    assert "rule bad: 'file:name' names a file, which records of" in found
    assert faults(_document(_rule("when: \"payload:text CONTAINS 'a'\""), source)) == []


def test_a_sink_s_topic_names_no_file(faults: Faults) -> None:
    (found,) = faults(_document("", sink='mqtt: {host: h, topic: "{file:name}"}'))
    assert "names a file: give the topic by a rule (`to`), which can" in found


@pytest.mark.parametrize(
    "options",
    [
        'when: "$.status = 500"',
        'filter: "#"',
        'keys: "{$.id}"',
        "to: other",
        "when: \"payload:text CONTAINS 'a' AND file:name = 'a.log' AND file:offset > 7\"",
        'keys: "{file:path[2]}"',
    ],
)
def test_what_lines_have_is_no_fault(faults: Faults, options: str) -> None:
    assert faults(_document(_rule(options))) == []


def test_what_was_applied_before_runs_on() -> None:
    end = {"file": {"path": "/a"}}
    rules = [{"name": "hot", "when": "status = 500"}]
    document = load_document({"version": 1, "name": "x", "source": end, "sink": end, "rules": rules})
    assert document.rules[0].when == "status = 500"


def test_the_topic_of_a_sink_names_what_records_or_rules_give(faults: Faults) -> None:
    def to(topic: str) -> str:
        return f'mqtt: {{host: h, topic: "{topic}"}}'

    found = faults(_document("", sink=to("devices/{key}")))
    assert len(found) == 1, found
    assert found[0].startswith("sink.mqtt.topic: line 4: '{key}' names the key, which records of file do not have")
    assert faults(_document(_rule('keys: "{$.id}"'), sink=to("devices/{key}"))) == []
    assert faults(_document(_rule('tags: "{$.id}"'), sink=to("{header:MQTT_TOPIC|tags}"))) == []
    assert len(faults(_document("", sink=to("{header:MQTT_TOPIC|topic}")))) == 1
    assert faults(_document(_rule("to: a/b"), sink=to("{topic}"))) == [], "every rule names another topic"
