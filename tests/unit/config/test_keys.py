"""Formats of keys in a document."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from connect_core.config import load_document
from connect_core.config.named_fields import impossible_in
from connect_core.config.row_types import last_rows
from connect_core.config.ruling import pipeline_of
from connect_core.rows.types import as_written

Faults = Callable[..., list[str]]

LINES = "version: 1\nname: x\nsource: {file: {path: logs/*.log}}\nsink: {rocketmq: {connection: main, topic: lines}}\n"
TOPIC = "version: 1\nname: x\nsource: {rocketmq: {connection: main, topics: [a]}}\nsink: {file: {path: out.txt}}\n"
TABLE = TOPIC.replace(
    "{file: {path: out.txt}}",
    "{postgresql: {host: localhost, database: d, user: u, table: t, mode: upsert, key: [id]}}",
)
KEYED = "parse: {format: json, fields: {name: text}, key_format: json, key_fields: {id: int64}}\n"
FIELDS = "parse: {format: json, fields: {id: int64, name: text}}\n"
WRITES = "encode: {key_format: json, key_fields: [id]}\n"


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (TOPIC + "parse: {format: json, fields: {a: text}, key_format: json}", "parse", "needs key_fields, as {id: in"),
        (TOPIC + "parse: {format: json, fields: {a: text}, key_fields: {id: int64}}", "parse", "key_fields goes with"),
        (
            TOPIC + "parse: {format: json, fields: {a: text}, key_prefix: k_}",
            "parse",
            "key_prefix goes with key_format",
        ),
        (
            TOPIC + KEYED.replace("name: text", "id: text"),
            "parse",
            "id is a field of the key and of the payload: key_prefix: key_ makes key_id of the key's",
        ),
        (
            TOPIC + KEYED.replace("key_format: json", "key_format: avro"),
            "parse.key_format",
            "one text, and cannot be av",
        ),
        (TOPIC + KEYED.replace("key_format: json", "key_format: yaml"), "parse.key_format", "'text', 'json' or"),
        (TOPIC + KEYED.replace("id: int64", "id: integer"), "parse.key_fields", "id: 'integer' is no type; did you"),
        (
            TOPIC + "parse: {key_format: json, key_fields: {id: int64}}",
            "parse",
            "needs a payload whose fields are known",
        ),
        (
            TOPIC + "parse: {format: logfmt, key_format: json, key_fields: {id: int64}}",
            "parse",
            "needs a payload whose",
        ),
        (TOPIC + KEYED.replace("}, key", "}, unknown: evolve, key"), "parse", "the fields of a key do not evolve"),
        (
            TOPIC + "parse: {format: debezium, fields: {n: text}, key_format: json, key_fields: {id: int64}}",
            "parse",
            "the row of format debezium has the fields of its key: leave it out",
        ),
        (
            TOPIC + KEYED.replace("}}", '}, key_prefix: "\\ud800"}'),
            "parse",
            "key_prefix holds half of a surrogate pair",
        ),
        (LINES + KEYED, "parse.key_format", "records of file have no key: leave it out"),
        (TABLE + FIELDS.replace("id:", "iden:"), "sink.postgresql", "key names id, which is no field of the records"),
        (
            TABLE + FIELDS + "transforms: [{rename: {id: ids}}]\n",
            "sink.postgresql",
            "key names id, which is no field of the records: is it ids?",
        ),
        (LINES + WRITES, "encode", "needs records whose fields are known"),
        (LINES + FIELDS + "encode: {key_format: json}", "encode", "key_format json needs key_fields, as [id]"),
        (
            LINES + FIELDS + "encode: {key_fields: [id]}",
            "encode",
            "key_fields goes with key_format json or json-schema",
        ),
        (LINES + FIELDS + WRITES.replace("[id]", "[id, id]"), "encode", "key_fields: 'id' is there twice"),
        (
            LINES + FIELDS + WRITES.replace("[id]", "[ids]"),
            "encode.key_fields",
            "there is no field ids (there are id, n",
        ),
        (
            LINES + FIELDS + WRITES + "transforms: [{drop: [id]}]",
            "encode.key_fields",
            "there is no field id (there are n",
        ),
        (LINES + FIELDS + WRITES.replace("json", "protobuf"), "encode.key_format", "one text, and cannot be protobuf"),
        (
            LINES + FIELDS + WRITES + 'transforms: [{record: {key: "{$.id}"}}]',
            "transforms.0",
            "record: sets the key, and encode.key_format replaces it",
        ),
        (
            LINES + FIELDS + WRITES + 'rules: [{name: a, keys: "{$.id}"}]',
            "rules.0.keys",
            "rule a replaces the key that encode.key_format makes",
        ),
        (LINES + FIELDS + "encode: {flavor: kafka, key_format: json, key_fields: [id]}", "encode", "flavor goes with"),
        (TABLE + KEYED + WRITES, "encode", "postgresql takes fields and no payloads"),
        (TOPIC + KEYED + "rules: [{name: a, when: $.ids > 1}]", "rules.0.when", "did you mean $.id?"),
    ],
)
def test_what_cannot_be_is_a_fault_with_its_place(faults: Faults, text: str, place: str, words: str) -> None:
    found = faults(text + "\n")
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


@pytest.mark.parametrize(
    "text",
    [
        TOPIC + KEYED,
        TABLE + KEYED,
        TOPIC + KEYED.replace("name: text", "id: text").replace("}}", "}, key_prefix: key_}"),
        TOPIC + "parse: {format: json, fields: infer, key_format: json-schema, key_fields: {id: int64}}",
        TOPIC + "parse: {format: text, unknown: drop, key_format: json, key_fields: {id: int64}}",
        LINES + FIELDS + WRITES,
        LINES + FIELDS + WRITES + 'rules: [{name: a, tags: "{key}"}]',
        LINES + FIELDS + WRITES + "rules: [{name: a}]\ntransforms: [{record: {tags: a}}]",
        LINES + FIELDS + "encode: {flavor: kafka, key_format: json-schema, key_fields: [id]}",
    ],
)
def test_sound_documents(faults: Faults, text: str) -> None:
    assert faults(text + "\n") == []


def test_the_fields_of_a_record() -> None:
    document = load_document(yaml.safe_load(TOPIC + KEYED))
    rows = last_rows(document)
    assert rows is not None
    assert as_written(rows) == {"id": "int64", "name": "text"}
    assert impossible_in("$.id = 7", document) == []
    assert "did you mean $.id?" in impossible_in("$.ids = 7", document)[0]


def test_documents_without_formats_of_keys_keep_the_pipeline_that_they_had() -> None:
    document = load_document(yaml.safe_load(LINES + FIELDS))
    assert pipeline_of(document)["parse"] == {"format": "json", "fields": {"id": "int64", "name": "text"}}
