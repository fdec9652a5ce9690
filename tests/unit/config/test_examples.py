"""Examples of a document beside what its pipeline makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import Settings, check, check_paths, read_text
from connect_core.config.checking import check_beside
from connect_core.config.ruling import pipeline_of
from connect_core.errors import ConfigError
from connect_core.masking import remember
from connect_core.pipeline.digest import pipeline_digest

Faults = Callable[[str], list[str]]

LINES = """\
version: 1
name: x
source: {file: {path: logs/*.log}}
sink: {rocketmq: {connection: main, topic: b}}
"""
RULES = """\
rules:
- {name: all, when: "$.v IS NOT NULL", keys: "{$.id}"}
- {name: hot, when: "$.v > 10", to: alarms, tags: "hot-{$.id}"}
"""
MESSAGES = LINES.replace("file: {path: logs/*.log}", "mqtt: {host: b, filters: ['in/#']}")
EXAMPLE = "examples:\n- "


@pytest.fixture
def unmet(home: Path, settings: Settings) -> Faults:
    """Every fault of a file with that text, as a person reads it."""

    def found(text: str) -> list[str]:
        (home.parent / "x.yaml").write_text(text)
        try:
            check_paths([Path("x.yaml")], home, settings)
        except ConfigError as error:
            return [str(fault).removeprefix("x.yaml: ") for fault in error.faults]
        return []

    (home.parent / "logs").mkdir()
    return found


@pytest.mark.parametrize(
    "example",
    [
        "{record: {payload: {v: 1, id: k}}, becomes: {to: null, tags: null, key: k, payload: {id: k, v: 1.0}}}",
        "{record: {payload: '{\"v\": 1}'}, becomes: {payload: '{\"v\": 1}', key: ''}}",
        "{record: {payload: {v: 11, id: k}}, becomes: [{}, {to: alarms, tags: hot-k, key: null}]}",
        "{record: {payload: no json}, filtered: true}",
    ],
)
def test_what_holds(example: str, unmet: Faults) -> None:
    assert unmet(LINES + RULES + EXAMPLE + example) == []


@pytest.mark.parametrize(
    ("example", "fault"),
    [
        (
            "{record: {payload: {v: 1, id: k}}, becomes: {key: q}}",
            "becomes.key: line 9: expected 'q'; the output has 'k'",
        ),
        (
            "{record: {payload: {v: 1, id: k}}, becomes: {to: q}}",
            "becomes.to: line 9: expected 'q'; the output has none",
        ),
        (
            "{record: {payload: {v: 1, id: k}}, becomes: {key: null}}",
            "becomes.key: line 9: expected none; the output has 'k'",
        ),
        (
            "{record: {payload: {v: 11}}, becomes: [{}, {tags: hot}]}",
            "becomes.1.tags: line 9: expected 'hot'; the output has 'hot-'",
        ),
        (
            "{record: {payload: {v: 11, id: k}}, becomes: {}}",
            "becomes: line 9: expected 1 output; the record becomes 2 outputs: key 'k'; to 'alarms', tags 'hot-k'",
        ),
        (
            "{record: {payload: {}}, becomes: [{}, {}]}",
            "becomes: line 9: expected 2 outputs; the record is filtered",
        ),
        (
            "{record: {payload: {v: 1}}, filtered: true}",
            "filtered: line 9: expected to be filtered; the record becomes 1 output: as it is",
        ),
        (
            "{record: {payload: {v: 1}}, rejected: true}",
            "rejected: line 9: expected to be rejected; the record becomes 1 output: as it is",
        ),
        (
            "{record: {payload: {v: 1}}, becomes: {payload: {v: true}}}",
            'becomes.payload: line 9: expected {"v": true}; the output has {"v": 1}',
        ),
        (
            "{record: {payload: {v: 1}}, becomes: {payload: '{\"v\": 1}'}}",
            "becomes.payload: line 9: expected '{\"v\": 1}'; the output has '{\"v\":1}'",
        ),
    ],
)
def test_what_does_not_hold(example: str, fault: str, unmet: Faults) -> None:
    assert unmet(LINES + RULES + EXAMPLE + example) == [f"examples.0.{fault}"]


def test_a_mapping_is_compared_with_a_payload_that_is_no_json(unmet: Faults) -> None:
    for payload in ("text", "[" * 5000):
        (told,) = unmet(f"{LINES}{EXAMPLE}{{record: {{payload: '{payload}'}}, becomes: {{payload: [1]}}}}")
        assert told.startswith(f"examples.0.becomes.payload: line 6: expected [1]; the output has '{payload[:150]}")


def test_rejected_for_a_stage_or_a_reason(unmet: Faults) -> None:
    text = LINES + "parse: {format: csv, columns: [a]}\nrules: [{name: a}]\n" + EXAMPLE
    for reason in ("true", "parse", "It has 2 columns"):
        assert unmet(f"{text}{{record: {{payload: 'a,b'}}, rejected: {reason}}}") == []
    said = "the record is rejected, stage parse: Not of format csv: It has 2 columns and not 1"
    assert unmet(f"{text}{{record: {{payload: 'a,b'}}, rejected: write}}") == [
        f"examples.0.rejected: line 8: expected to be rejected ('write'); {said}"
    ]
    assert unmet(f"{text}{{record: {{payload: 'a,b'}}, filtered: true}}") == [
        f"examples.0.filtered: line 8: expected to be filtered; {said}"
    ]


def test_every_example_is_run_and_its_name_and_line_told(unmet: Faults) -> None:
    text = LINES + RULES + "examples:\n- record: {payload: {v: 1}}\n  filtered: true\n"
    text += "- name: warm\n  record:\n    payload: {v: 9, id: k}\n  becomes:\n    tags: a\n    key: b\n"
    assert unmet(text) == [
        "examples.0.filtered: line 10: expected to be filtered; the record becomes 1 output: as it is",
        "examples.1.becomes.tags: line 15: example 'warm': expected 'a'; the output has none",
        "examples.1.becomes.key: line 16: example 'warm': expected 'b'; the output has 'k'",
    ]


def test_messages_are_made_as_their_source_makes_them(unmet: Faults) -> None:
    text = MESSAGES + 'rules: [{name: a, filter: in/+, tags: "{header:h}"}]\n' + EXAMPLE
    record = "record: {topic: in/a, headers: {h: v}}"
    assert unmet(f"{text}{{{record}, becomes: {{key: in/a, tags: v, headers: {{MQTT_TOPIC: in/a, h: v}}}}}}") == []
    assert unmet(f"{text}{{{record}, becomes: {{headers: {{h: w, i: null, j: x}}}}}}") == [
        "examples.0.becomes.headers.h: line 7: expected 'w'; the output has 'v'",
        "examples.0.becomes.headers.j: line 7: expected 'x'; the output has none",
    ]


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ("topic: a", "topic: line 6: records of file have no topic: leave it out"),
        ("headers: {a: b}", "headers: line 6: records of file have no headers: leave it out"),
        ('payload: "a\\n"', "payload: line 6: holds a line feed, which no line does"),
        ("path: other/a.log", "path: line 6: is no file that the source reads (/"),
        ("path: /elsewhere/a.log", "path: line 6: /elsewhere/a.log is outside of the folders that files may be in"),
    ],
)
def test_a_line_that_the_source_cannot_have(record: str, fault: str, unmet: Faults) -> None:
    (told,) = unmet(f"{LINES}{EXAMPLE}{{record: {{{record}}}, filtered: true}}")
    assert told.startswith(f"examples.0.record.{fault}"), told


def test_a_message_has_no_file(unmet: Faults) -> None:
    assert unmet(MESSAGES + EXAMPLE + "{name: a, record: {path: logs/a.log}, becomes: {}}") == [
        "examples.0.record.path: line 6: example 'a': records of mqtt have no path: leave it out"
    ]


def test_the_file_of_a_line(unmet: Faults, tmp_path: Path) -> None:
    text = LINES + 'rules: [{name: a, keys: "{file:path}"}]\n' + EXAMPLE
    key = tmp_path / "logs" / "a.log"
    for path in ("logs/a.log", key):
        assert unmet(f"{text}{{record: {{path: {path}}}, becomes: {{key: {key}}}}}") == []
    assert unmet(f"{text}{{record: {{}}, becomes: {{key: null}}}}") == [], "a pattern does not say which"
    text = text.replace("*", "a")
    assert unmet(f"{text}{{record: {{}}, becomes: {{key: {key}}}}}") == []
    text = text.replace("logs/a.log", '"${env:LOG}"')
    assert unmet(f"{text}{{record: {{path: logs/b.log}}, becomes: {{key: {tmp_path}/logs/b.log}}}}") == []
    assert unmet(f"{text}{{record: {{}}, becomes: {{key: null}}}}") == []


def test_the_file_of_a_line_is_stored_with_its_whole_path(home: Path, settings: Settings, unmet: Faults) -> None:
    text = LINES + EXAMPLE + "{record: {path: logs/a.log}, becomes: {}}\n- {record: {path: /etc/x}, becomes: {}}\n"
    checked = check(read_text(text, where="x")[0], home, settings)
    stored = checked.data["examples"]
    assert [one["record"]["path"] for one in stored] == [str(home.parent / "logs" / "a.log"), "/etc/x"]


def test_a_document_with_another_fault_is_not_tried(unmet: Faults) -> None:
    (told,) = unmet(LINES + RULES.replace("$.v >", "v >") + EXAMPLE + "{record: {payload: {v: 1}}, filtered: true}")
    assert told.startswith("rules.1.when: line 7")


def test_long_texts_are_cut_and_hide_secrets(unmet: Faults) -> None:
    remember("hidden-value", secret=True)
    text = "a" * 190 + "hidden-value" + "b" * 100
    (told,) = unmet(f"{LINES}{EXAMPLE}{{record: {{payload: {text}}}, becomes: {{payload: b}}}}")
    assert told.endswith(f"expected 'b'; the output has '{'a' * 190}***bbbbbb…")


def test_only_what_is_given_to_be_checked_is_tried(home: Path, settings: Settings, unmet: Faults) -> None:
    wrong = LINES + EXAMPLE + "{record: {}, filtered: true}\n"
    (written,) = read_text(wrong, where="x.yaml")
    standing = check(written, home, settings).data
    other = wrong.replace("name: x", "name: y").replace("filtered: true", "becomes: {}")
    (home.parent / "y.yaml").write_text(other)
    check_paths([home.parent / "y.yaml"], home, settings, {"x": standing})
    [notice] = check_beside(written, home, settings, {}).notices
    assert notice.startswith("examples.0.filtered does not hold: line 6: expected to be filtered")


def test_examples_are_no_part_of_the_pipeline_that_open_ranges_are_pinned_to(home: Path, settings: Settings) -> None:
    def digest(text: str) -> str:
        return pipeline_digest(pipeline_of(check(read_text(text, where="x")[0], home, settings).document))

    for text in (LINES, LINES + RULES):
        assert digest(text) == digest(text + EXAMPLE + "{record: {payload: a}, filtered: true}\n")
