"""Fields, transforms and what is delivered, in a document."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connect_core.config import load_document
from connect_core.config.row_types import last_rows
from connect_core.config.ruling import pipeline_of
from connect_core.pipeline.digest import pipeline_digest
from connect_core.rows.types import as_written

Faults = Callable[..., list[str]]

ENDS = "version: 1\nname: x\nsource: {file: {path: logs/*.log}}\nsink: {rocketmq: {connection: main, topic: lines}}\n"
FIELDS = "parse: {format: json, fields: {id: int64, who: {name: text}, tags: [text]}}\n"
EVENTS = "parse: {format: debezium, fields: {id: int64, who: {name: text}, tags: [text]}}\n"
CSV = "parse: {format: csv, columns: [site, temp]}\n"


@pytest.mark.parametrize(
    ("rest", "place", "words"),
    [
        ("transforms: [{drop: [a]}]", "transforms", "needs records whose fields are known; say what they are: parse:"),
        ("encode: {format: json}", "encode", "needs records whose fields are known"),
        ("parse: {format: logfmt}\ntransforms: [{drop: [a]}]", "transforms", "needs records whose fields are known"),
        ("parse: {format: json, fields: {id: integer}}", "parse.fields", "id: 'integer' is no type; did you mean"),
        ("parse: {format: json, fields: {}}", "parse.fields", "needs at least one field"),
        ("parse: {format: csv, columns: [a], fields: {a: int64}}", "parse", "fields goes with format json"),
        ("parse: {format: json, unknown: drop}", "parse", "unknown goes with fields"),
        ("parse: {format: json-schema}", "parse", "format json-schema needs fields, as {id: int64}"),
        ("encode: {flavor: kafka}", "encode", "flavor goes with format json-schema"),
        ("encode: {format: json-schema}", "encode", "needs records whose fields are known"),
        (
            FIELDS + "encode: {format: text}",
            "encode",
            "text is for records with one field that is a single value",
        ),
        (FIELDS + "transforms: [{drop: [ide]}]", "transforms.0", "did you mean"),
        (FIELDS + "transforms: [{drop: [id]}, {cast: {id: text}}]", "transforms.1", "id"),
        (FIELDS + "transforms: [{throw: [id]}]", "transforms.0", "throw"),
        (FIELDS + "transforms: [{drop: [id], keep: [tags]}]", "transforms.0", "one"),
        (FIELDS + "transforms: [{filter: '$.id >'}]", "transforms.0", ""),
        (FIELDS + 'rules: [{name: a, keys: "{$.ids}"}]', "rules.0.keys", "no field of the payload; did you mean $.id?"),
        (FIELDS + 'rules: [{name: a, keys: "{$.who.nam}"}]', "rules.0.keys", "names no field of the payload"),
        (FIELDS + 'transforms: [{drop: [id]}]\nrules: [{name: a, keys: "{$.id}"}]', "rules.0.keys", "names no field"),
        (
            FIELDS + "transforms: [{set: {a: '{topic[2]}'}}]",
            "transforms.0",
            "set: 'topic[2]' names the topic",
        ),
        (FIELDS + "transforms: [{filter: header:x IS NULL}]", "transforms.0", "filter: 'header:x' names a header"),
        (CSV + "transforms: [{cast: {temp: int32}}]\nfilter: {when: $.tmp > 1}", "filter.when", "did you mean $.temp?"),
        ("parse: {format: debezium}", "parse", "format debezium needs fields, those of the row"),
        (
            EVENTS + "encode: {format: json}",
            "encode.format",
            "json does not say that a row was deleted: leave deletes out",
        ),
        (EVENTS + "transforms: [{drop: [who]}]", "encode.format", "json does not say that a row was deleted"),
        (
            EVENTS + "transforms: [{filter: change:table = 'a'}]",
            "encode.format",
            "json does not say that a row was deleted",
        ),
        (FIELDS + "rules: [{name: a, when: change:table = 'b'}]", "rules.0.when", "which records of file do not"),
        (
            EVENTS + "transforms: [{explode: tags}]\nencode: {format: debezium}",
            "transforms.0",
            "explode: works on rows as they are alone",
        ),
        (
            FIELDS + "transforms: [{filter: change:operation = 'delete'}]",
            "transforms.0",
            "which records of file do not",
        ),
        (FIELDS + "encode: {format: debezium, origin: {ts_ms: a}}", "encode", "each event has ts_ms of its own"),
        (FIELDS + "encode: {format: json, schemas: true}", "encode", "schemas goes with format debezium"),
    ],
)
def test_what_cannot_be_is_a_fault_with_its_place(faults: Faults, rest: str, place: str, words: str) -> None:
    found = faults(ENDS + rest + "\n")
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


@pytest.mark.parametrize(
    "rest",
    [
        FIELDS,
        EVENTS,
        EVENTS + "transforms: [{drop: [who]}]\nencode: {format: debezium}",
        EVENTS + "transforms: [{filter: change:operation <> 'delete'}]",
        EVENTS + "transforms: [{set: {op: '{change:operation}'}}]",
        EVENTS + "rules: [{name: a, when: change:table = 'b', tags: '{change:table}'}]",
        FIELDS + 'rules: [{name: a, keys: "{$.who.name}-{$.tags[0]}"}]',
        FIELDS + 'transforms: [{rename: {who.name: first}}]\nrules: [{name: a, keys: "{$.who.first}"}]',
        FIELDS + "encode: {format: json}",
        CSV + "encode: {format: json}\nfilter: {when: $.temp > 1}",
    ],
)
def test_sound_documents(faults: Faults, rest: str) -> None:
    assert faults(ENDS + rest + "\n") == []


def test_fields_behind_the_last_transform() -> None:
    import yaml

    rest = "transforms: [{flatten: _}, {cast: {id: text}}, {set: {n: 1}}]\n"
    document = load_document(yaml.safe_load(ENDS + FIELDS + rest))
    rows = last_rows(document)
    assert rows is not None
    assert as_written(rows) == {"id": "text", "who_name": "text", "tags": ["text"], "n": "int64"}


def test_documents_without_fields_keep_the_pipeline_that_they_had() -> None:
    import yaml

    document = load_document(yaml.safe_load(ENDS))
    assert pipeline_of(document) == {"transforms": []}
    assert pipeline_digest(pipeline_of(document)) == "350b39b9d3427f53"
