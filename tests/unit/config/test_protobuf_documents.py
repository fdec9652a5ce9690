"""What a document says of Protobuf: all that does not go together is a fault before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import Settings, check, load_document, read_text
from connect_core.config.row_types import last_rows, registered_schema
from connect_core.config.ruling import pipeline_of
from tests.protobuf import descriptor_set, descriptors

Faults = Callable[..., list[str]]

ENDS = "version: 1\nname: x\nsource: {file: {path: logs/*.log}}\nsink: {rocketmq: {connection: main, topic: lines}}\n"
TEXT = """syntax = "proto3"; package t; import "google/protobuf/struct.proto";
message Id { int64 id = 1; } message S { google.protobuf.Struct x = 1; int64 id = 2; } message R { R x = 1; }
"""
SET = descriptors(TEXT)
IMPORTING = descriptors(
    'syntax = "proto3"; import "o.proto"; message M { O x = 1; }', o='syntax = "proto3"; message O {int32 a=1;}'
)
ID = f"message: t.Id, descriptors: {SET}"
FIELDS = "parse: {format: json, fields: {id: int64}}\n"
REGISTRY = "framing: registry, registry: {url: 'http://x'}"


@pytest.mark.parametrize(
    ("rest", "place", "words"),
    [
        (
            "parse: {format: protobuf}",
            "parse",
            "format protobuf needs message and descriptors; or fields, framing: reg",
        ),
        (f"parse: {{format: protobuf, descriptors: {SET}}}", "parse", "descriptors need message, the full name of"),
        ("parse: {format: protobuf, message: t.Id}", "parse", "message needs descriptors; or framing: registry and"),
        (f"parse: {{format: json, {ID}}}", "parse", "message goes with format protobuf"),
        (f"parse: {{format: avro, descriptors: {SET}}}", "parse", "descriptors goes with format protobuf"),
        (
            f"parse: {{format: protobuf, {ID}, framing: single-object}}",
            "parse",
            "framing single-object goes with forma",
        ),
        (f"parse: {{format: protobuf, {ID}, framing: registry}}", "parse", "framing: registry needs schema_id"),
        (f"parse: {{format: protobuf, {ID}, schema_id: 1}}", "parse", "schema_id goes with framing: registry"),
        (f"parse: {{format: protobuf, message: t.Id, {REGISTRY}}}", "parse", "format protobuf needs message and descr"),
        (
            f"parse: {{format: protobuf, message: Id, descriptors: {SET}}}",
            "parse",
            "no message 'Id'; did you mean t.Id?",
        ),
        (
            "parse: {format: protobuf, message: t.Id, descriptors: Zm9v}",
            "parse.descriptors",
            "are not a FileDescriptorSet",
        ),
        ("parse: {format: protobuf, message: t.Id, descriptors: {a: 1}}", "parse.descriptors", "valid string"),
        (
            f"parse: {{format: protobuf, message: t.S, descriptors: {SET}}}",
            "parse",
            "x: the schema says message google",
        ),
        (f"parse: {{format: protobuf, message: t.R, descriptors: {SET}}}", "parse", "x: the schema has t.R in itself"),
        (
            f"parse: {{format: protobuf, {ID}, fields: {{id: int32}}}}",
            "parse",
            "id: the schema says int64, the documen",
        ),
        (f"parse: {{format: protobuf, {ID}, fields: {{x: text}}}}", "parse", "id: in the schema, but not declared"),
        ("parse: {format: json, unknown: drop}", "parse", "unknown goes with fields"),
        (
            "encode: {format: protobuf}",
            "encode",
            "format protobuf needs message and descriptors, which give fields the",
        ),
        (f"encode: {{format: protobuf, {ID}}}", "encode", "needs records whose fields are known"),
        (
            f"parse: {{format: json, fields: {{id: text}}}}\nencode: {{format: protobuf, {ID}}}",
            "encode",
            "id: text, and the sch",
        ),
        (
            f"parse: {{format: json, fields: {{n: text}}}}\nencode: {{format: protobuf, {ID}}}",
            "encode",
            "n: the schema has no suc",
        ),
        (f"{FIELDS}encode: {{format: protobuf, {ID}, record: A}}", "encode", "record goes with format avro"),
        (
            f"{FIELDS}encode: {{format: protobuf, message: M, descriptors: {IMPORTING}, {REGISTRY}}}",
            "encode",
            "its file imports o.proto, which a registry has by itself: say schema_id",
        ),
        (
            "parse: {format: protobuf, message: t.Id, descriptors: {path: no.desc}}",
            "parse.descriptors",
            "no.desc cannot be read: No such f",
        ),
        (
            "parse: {format: protobuf, message: t.Id, descriptors: {path: ../no.desc}}",
            "parse.descriptors",
            "is outside of the folders that",
        ),
        (
            "parse: {format: protobuf, message: t.Id, descriptors: {path: big.desc}}",
            "parse.descriptors",
            "big.desc is longer than 1 MiB",
        ),
    ],
)
def test_what_cannot_be_is_a_fault_with_its_place(
    faults: Faults, tmp_path: Path, rest: str, place: str, words: str
) -> None:
    (tmp_path / "big.desc").write_bytes(bytes((1 << 20) + 1))
    found = faults(ENDS + rest + "\n")
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


def test_a_file_is_read_once_and_its_descriptors_are_stored(home: Path, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "id.desc").write_bytes(descriptor_set(TEXT))
    part = "{format: protobuf, message: t.Id, descriptors: {path: schemas/id.desc}}"
    [written] = read_text(f"{ENDS}parse: {part}\nencode: {part}\n", where="test.yaml")
    checked = check(written, home, settings)
    assert checked.data["parse"]["descriptors"] == checked.data["encode"]["descriptors"] == SET
    (tmp_path / "schemas" / "id.desc").unlink()
    document = load_document(checked.data)
    assert str(last_rows(document)) == "{id: int64}"
    assert pipeline_of(document)["parse"] == {"format": "protobuf", "message": "t.Id", "descriptors": SET}


@pytest.mark.parametrize(
    ("more", "subject"),
    [("", "lines-value"), (", strategy: record", "t.Id"), (", strategy: topic-record", "lines-t.Id")],
)
def test_the_subject_is_that_of_the_strategy(home: Path, settings: Settings, more: str, subject: str) -> None:
    encode = f"encode: {{format: protobuf, {ID}, framing: registry, registry: {{url: 'http://x'{more}}}}}\n"
    connection = home.parent / "conf" / "connections" / "main.yaml"
    connection.parent.mkdir(parents=True, exist_ok=True)
    connection.write_text("rocketmq: {name_servers: 127.0.0.1:9876}\n")
    [written] = read_text(f"{ENDS}{FIELDS}{encode}", where="test.yaml")
    found = registered_schema(check(written, home, settings).document)
    assert found is not None
    assert (found.subject, found.kind) == (subject, "PROTOBUF")
