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


COMBINED = "parse: {format: combined}\n"
CSV = "parse: {format: csv, columns: [site, outer temp]}\n"


@pytest.mark.parametrize(
    ("parse", "options", "words"),
    [
        (
            COMBINED,
            'when: "status = 500"',
            f"'status' names a header, {HEADERLESS}; did you mean $.status? (they have:",
        ),
        (COMBINED, 'when: "colour = 1"', f"'colour' names a header, {HEADERLESS} (they have: $.client, $.ident,"),
        (COMBINED, 'when: "$.staus = 500"', "'$.staus' names no field of the payload; did you mean $.status?"),
        (COMBINED, 'when: "$.status.x = 500"', "'$.status.x' names no field of the payload; did you mean $.status?"),
        (CSV, 'keys: "{$.temp}"', "'{$.temp}' names no field of the payload (they have: $.site, $['outer temp'];"),
        ("parse: {format: grok, pattern: '%{INT:n} %{WORD:w}'}\n", 'when: "$.m = 1"', "(they have: $.n, $.w; payload"),
    ],
)
def test_a_format_says_which_fields_there_are(faults: Faults, parse: str, options: str, words: str) -> None:
    (found,) = faults(_document(parse + _rule(options)))
    assert words in found


@pytest.mark.parametrize(
    ("parse", "options"),
    [
        (COMBINED, 'when: "$.status >= 500 AND $.method = \'GET\'", keys: "{$.client}"'),
        (CSV, "when: \"$['outer temp'] > 20\""),
        ("parse: {format: logfmt}\n", 'when: "$.level = 1"'),
        ("parse: {format: json}\n", 'when: "$.a.b[0] = 1"'),
    ],
)
def test_fields_of_a_format_may_be_named(faults: Faults, parse: str, options: str) -> None:
    assert faults(_document(parse + _rule(options))) == []
    assert faults(_document(parse + _rule(options), MQTT)) == []


def test_where_headers_may_be_a_format_does_not_hide_them(faults: Faults) -> None:
    assert faults(_document(COMBINED + _rule('when: "status = 500"'), MQTT)) == []


@pytest.mark.parametrize(
    ("parse", "words"),
    [
        ("{format: xml}", "parse.format: line 5: "),
        ("{format: regex}", "format regex needs pattern"),
        ("{format: csv}", "format csv needs columns"),
        ("{format: json, pattern: x}", "pattern goes with format regex or grok"),
        ("{format: logfmt, columns: [a]}", "columns goes with format csv"),
        ("{format: logfmt, delimiter: ;}", "delimiter goes with format csv"),
        ("{format: csv, columns: [a, a]}", "two fields have the name 'a'"),
        ("{format: csv, columns: [a], delimiter: '\"'}", "delimiter cannot be a quotation mark"),
        ("{format: regex, pattern: '(?P<a>x)(?P<a>y)'}", "two fields have the name 'a'"),
        ("{format: regex, pattern: '(?P<a>x'}", "pattern is not one of RE2: Invalid regular expression: missing )"),
        ("{format: regex, pattern: '(?=x)(?P<a>y)'}", "pattern is not one of RE2: Invalid regular expression"),
        ("{format: regex, pattern: '(x)'}", "pattern is not one of RE2: Regular expression contains unnamed groups"),
        ("{format: regex, pattern: 'x'}", "pattern makes no field: name a group"),
        ("{format: grok, pattern: '%{WRD:a}'}", "grok has no 'WRD'; did you mean WORD?"),
        ("{format: grok, pattern: '%{INT:n:int}'}", "names no field"),
        ("{format: grok, pattern: '%{INT}'}", "pattern makes no field"),
        ("{format: grok, pattern: '" + "%{TIMESTAMP_ISO8601}" * 100 + "'}", "pattern must have at most 10000"),
    ],
)
def test_a_format_that_means_nothing(faults: Faults, parse: str, words: str) -> None:
    (found,) = faults(_document(f"parse: {parse}"))
    assert words in found, found


def test_what_a_step_has_set_is_there_behind_it(faults: Faults) -> None:
    fields = "parse: {format: json, fields: {id: text}}\ntransforms:\n"
    step = '- record: {key: "{$.id}", headers: {site: x}}\n'
    condition = "- filter: header:site IS NOT NULL\n"
    rule = _rule("when: \"header:site = 'x' AND KEYS IS NOT NULL\"")
    assert faults(_document(f"{fields}{step}{condition}{rule}")) == []
    [before] = faults(_document(f"{fields}{condition}{step}"))
    assert "transforms.0" in before
    assert HEADERLESS in before
    [other] = faults(_document(f"{fields}{step}" + _rule("when: \"TAGS = 'a'\"")))
    assert "names the tags" in other
