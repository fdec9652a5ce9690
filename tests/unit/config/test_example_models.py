"""Examples in a document: what may be written, and every bad input with its message."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connect_core.config import load_document
from connect_core.config.example_models import ExampleRecord, payload_bytes

Faults = Callable[..., list[str]]

DOCUMENT = """\
version: 1
name: x
source: {mqtt: {host: b, filters: ['in/#']}}
sink: {rocketmq: {connection: main, topic: b}}
examples:
- """


def test_a_mapping_is_compact_json_and_text_stays_as_it_is() -> None:
    assert payload_bytes({"a": [1, 2.5, None, True], "ä": ""}) == '{"a":[1,2.5,null,true],"ä":""}'.encode()
    assert payload_bytes([{}]) == b"[{}]"
    assert payload_bytes('{"a":  1}\n') == b'{"a":  1}\n'
    assert ExampleRecord().payload == ""


@pytest.mark.parametrize(
    "example",
    [
        "{record: {payload: a, topic: in/a, tags: t, key: k, headers: {h: v}}, becomes: {}}",
        "{name: one, record: {payload: {a: 1}}, becomes: [{payload: {a: 1}, to: null, tags: null, key: k}, {}]}",
        "{record: {payload: [1]}, becomes: {headers: {h: v, i: null}}}",
        "{record: {}, filtered: true}",
        "{record: {}, rejected: true}",
        "{record: {}, rejected: does not match, filtered: false}",
        "{record: {payload: '${env:HOME}'}, becomes: {tags: '${nothing'}}",
    ],
)
def test_what_an_example_may_say(example: str, faults: Faults) -> None:
    assert faults(DOCUMENT + example) == []


@pytest.mark.parametrize(
    ("example", "fault"),
    [
        ("{becomes: {}}", ".record: line 6: is missing: The record."),
        ("{record: {}}", ": line 6: needs one of becomes, filtered and rejected, found none"),
        ("{record: {}, filtered: false}", ": line 6: needs one of becomes, filtered and rejected, found none"),
        (
            "{record: {}, becomes: {}, rejected: true}",
            ": line 6: needs one of becomes, filtered and rejected, found becomes and rejected",
        ),
        ("{record: {}, becomes: []}", ".becomes: line 6: is empty: write filtered: true"),
        ("{record: {}, rejected: ''}", ".rejected: line 6: is true, a stage such as parse, or a part of the reason"),
        ("{record: {}, filtered: yes}", ".filtered: line 6: input should be a valid boolean"),
        ("{record: {}, filtred: true}", '.filtred: line 6: unknown key "filtred"; did you mean filtered?'),
        ("{record: {topik: a}, filtered: true}", '.record.topik: line 6: unknown key "topik"; did you mean topic?'),
        ("{record: {}, becomes: {tag: a}}", '.becomes.0.tag: line 6: unknown key "tag"; did you mean tags?'),
        ("{record: {}, becomes: {topic: a}}", '.becomes.0.topic: line 6: unknown key "topic" (known: headers, key,'),
        ("{record: {payload: 5}, filtered: true}", ".record.payload: line 6: must be text, or a mapping or list"),
        ("{record: {payload: null}, filtered: true}", ".record.payload: line 6: must be text, or a mapping or list"),
        ("{record: {payload: [1e999]}, filtered: true}", ".record.payload: line 6: holds a number that JSON cannot"),
        ('{record: {payload: "\\udc00"}, filtered: true}', ".record.payload: line 6: holds half of a surrogate pair"),
        ('{record: {payload: ["\\udc00"]}, filtered: true}', ".record.payload: line 6: holds half of a surrogate pair"),
        ('{record: {key: "\\udc00"}, filtered: true}', ".record.key: line 6: holds half of a surrogate pair"),
        ('{record: {headers: {h: "\\x02"}}, filtered: true}', ".record.headers.h: line 6: holds the character U+0001"),
        ('{record: {headers: {"\\x01": h}}, filtered: true}', ".record.headers.\x01: line 6: holds the character"),
        ("{record: {tags: 5}, filtered: true}", ".record.tags: line 6: input should be a valid string, found 5"),
        ("a", ": line 6: input should be a valid dictionary or instance of Example, found 'a'"),
    ],
)
def test_an_example_that_means_nothing(example: str, fault: str, faults: Faults) -> None:
    (told,) = faults(DOCUMENT + example)
    assert told.startswith(f"examples.0{fault}"), told


def test_what_is_not_given_is_told_from_null() -> None:
    end = {"file": {"path": "a"}}
    example = {"record": {}, "becomes": {"tags": None}}
    document = load_document({"version": 1, "name": "x", "source": end, "sink": end, "examples": [example]})
    (output,) = document.examples[0].becomes
    assert output.model_fields_set == {"tags"}
