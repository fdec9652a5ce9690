"""What a document says of Avro: all that does not go together is a fault before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import Settings, check, load_document, read_text
from connect_core.config.row_types import last_rows, registered_schema
from connect_core.config.ruling import pipeline_of

Faults = Callable[..., list[str]]

ENDS = "version: 1\nname: x\nsource: {file: {path: logs/*.log}}\nsink: {rocketmq: {connection: main, topic: lines}}\n"
ID = "{type: record, name: Id, fields: [{name: id, type: long}]}"
MAP = "{type: record, name: M, fields: [{name: id, type: long}, {name: m, type: {type: map, values: string}}]}"
LIST = "{type: record, name: L, fields: [{name: x, type: [int, string]}]}"
SELF = "{type: record, name: S, fields: [{name: x, type: ['null', S]}]}"
REGISTRY = "parse: {format: json, fields: {id: int64}}\nencode: {format: avro, framing: registry, registry: {"
FIELDS = "parse: {format: json, fields: {id: int64, at: time(ns)}}\n"


@pytest.mark.parametrize(
    ("rest", "place", "words"),
    [
        ("parse: {format: avro}", "parse", "format avro needs avro_schema"),
        (f"parse: {{format: json, avro_schema: {ID}}}", "parse", "avro_schema goes with format avro"),
        ("parse: {framing: single-object}", "parse", "framing goes with format avro"),
        (
            f"parse: {{format: avro, avro_schema: {ID}, framing: registry}}",
            "parse",
            "framing: registry needs schema_id",
        ),
        (f"parse: {{format: avro, avro_schema: {ID}, schema_id: 1}}", "parse", "schema_id goes with framing: registry"),
        (
            f"parse: {{format: avro, avro_schema: {ID}, framing: registry, schema_id: 0}}",
            "parse",
            "schema_id must be from 1 to 2,147,483,647",
        ),
        (f"parse: {{format: avro, avro_schema: {MAP}}}", "parse", "m: the schema says map, which no field can be"),
        (
            f"parse: {{format: avro, avro_schema: {LIST}}}",
            "parse",
            "x: the schema says a union of int, string, which no",
        ),
        (f"parse: {{format: avro, avro_schema: {SELF}}}", "parse.avro_schema", "x: the schema holds itself"),
        ("parse: {format: avro, avro_schema: {type: int}}", "parse.avro_schema", "the schema says int, not a record"),
        (
            f"parse: {{format: avro, avro_schema: {ID}, fields: {{id: int32}}}}",
            "parse",
            "id: the schema says long, the document int32",
        ),
        (
            f"parse: {{format: avro, avro_schema: {MAP}, fields: {{id: int64}}}}",
            "parse",
            "m: in the schema, but not decl",
        ),
        ("encode: {format: avro}", "encode", "needs records whose fields are known"),
        ("parse: {format: json, registry: {url: 'http://x'}}", "parse", "registry goes with format avro"),
        (
            f"parse: {{format: avro, avro_schema: {ID}, registry: {{url: 'http://x'}}}}",
            "parse",
            "registry goes with framing: registry",
        ),
        (
            "parse: {format: avro, framing: registry, registry: {url: 'http://x'}}",
            "parse",
            "format avro needs avro_schema; or fields, framing: registry and registry",
        ),
        (REGISTRY + "url: ftp://x}}", "encode.registry.url", "must begin with http:// or https:// and a host"),
        (
            REGISTRY + "url: 'http://ann:pw@x'}}",
            "encode.registry.url",
            "must not hold a login: write username and passw",
        ),
        (REGISTRY + "url: '${env:}'}}", "encode.registry.url", "does not have the form of"),
        (
            REGISTRY + "url: 'http://x', password: secret}}",
            "encode.registry.password",
            "is a secret in plain text; write",
        ),
        (REGISTRY + "url: 'http://x', timeout: 2m}}", "encode.registry.timeout", "less than or equal to 30"),
        (REGISTRY + "url: 'http://x'}}\nrules: [{name: a, to: b}]", "encode", "registry: records do not all go to one"),
        (FIELDS + "encode: {format: avro}", "encode", "at: Avro has no time(ns): cast it to time(us)"),
        (FIELDS + f"encode: {{format: avro, avro_schema: {ID}}}", "encode", "at: the schema has no such field"),
        (
            FIELDS + f"encode: {{format: avro, avro_schema: {ID}, record: A}}",
            "encode",
            "record goes with format avro, a",
        ),
        (FIELDS + "encode: {format: avro, record: a-b}", "encode.record", "'a-b' cannot name a record"),
        (
            "parse: {format: json, fields: {a b: text}}\nencode: {format: avro}",
            "encode",
            "a b: no name that Avro has (letters, digits and _): rename it",
        ),
        (
            "parse: {format: avro, avro_schema: {path: no.avsc}}",
            "parse.avro_schema",
            "no.avsc cannot be read: No such f",
        ),
        (
            "parse: {format: avro, avro_schema: {path: ../no.avsc}}",
            "parse.avro_schema",
            "is outside of the folders that",
        ),
        ("parse: {format: avro, avro_schema: {path: bad.avsc}}", "parse.avro_schema", "the schema is no JSON"),
    ],
)
def test_what_cannot_be_is_a_fault_with_its_place(
    faults: Faults, tmp_path: Path, rest: str, place: str, words: str
) -> None:
    (tmp_path / "bad.avsc").write_text("{")
    found = faults(ENDS + rest + "\n")
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


def test_a_file_is_read_once_and_its_schema_is_stored(home: Path, settings: Settings, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "Id", "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "id.avsc").write_text(json.dumps(schema))
    part = "{format: avro, avro_schema: {path: schemas/id.avsc}}"
    [written] = read_text(f"{ENDS}parse: {part}\nencode: {part}\n", where="test.yaml")
    checked = check(written, home, settings)
    assert checked.data["parse"]["avro_schema"] == checked.data["encode"]["avro_schema"] == schema
    (tmp_path / "schemas" / "id.avsc").unlink()
    document = load_document(checked.data)
    assert str(last_rows(document)) == "{id: int64}"
    assert pipeline_of(document)["parse"] == {"format": "avro", "avro_schema": schema}


@pytest.mark.parametrize(
    ("more", "subject"),
    [
        ("", "lines-value"),
        (", strategy: record", "shop.Order"),
        (", strategy: topic-record", "lines-shop.Order"),
        (", subject: mine", "mine"),
    ],
)
def test_the_subject_is_that_of_the_strategy(home: Path, settings: Settings, more: str, subject: str) -> None:
    encode = f"encode: {{format: avro, record: shop.Order, framing: registry, registry: {{url: 'http://x'{more}}}}}\n"
    connection = home.parent / "conf" / "connections" / "main.yaml"
    connection.parent.mkdir(parents=True, exist_ok=True)
    connection.write_text("rocketmq: {name_servers: 127.0.0.1:9876}\n")
    [written] = read_text(f"{ENDS}parse: {{format: json, fields: {{id: int64}}}}\n{encode}", where="test.yaml")
    checked = check(written, home, settings)
    found = registered_schema(checked.document)
    assert found is not None
    assert (found[0], found[1]["name"]) == (subject, "shop.Order")  # type: ignore[index]
