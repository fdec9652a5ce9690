"""The files that a worker asks a Schema Registry for: those of Protobuf, with the files that they import."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from connect_core.replication.worker.schemas import lookup_of
from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.protobuf_schemas import fields_of, message_at
from tests.protobuf import descriptor_set
from tests.schema_registry import Registry, served

HEAD = 'syntax = "proto3"; package t; '
TIME = "google.protobuf.Timestamp"
MAIN = f'{HEAD} import "b.proto"; import "google/protobuf/timestamp.proto"; message M {{ B x = 1; {TIME} y = 2; }}'
B = f'{HEAD} import "c.proto"; message B {{ C c = 1; }}'
C = f"{HEAD} message C {{ int32 n = 1; }}"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served(Registry()) as one:
        yield one


def _added(registry: Registry, subject: str, content: bytes, *references: str) -> int:
    number = registry.add(subject, b64encode(content).decode())
    refers = [{"name": name, "subject": name, "version": 1} for name in references]
    registry.more[number] = {"schemaType": "PROTOBUF", "references": refers}
    return number


def _file(name: str) -> bytes:
    made = FileDescriptorSet.FromString(descriptor_set(MAIN, b=B, c=C))
    [found] = [one for one in made.file if one.name == name]
    found.name = "default"  # as a registry calls all that it makes of a text
    return bytes(found.SerializeToString())


def test_a_schema_comes_with_the_files_that_it_imports_and_is_asked_for_once(registry: Registry) -> None:
    _added(registry, "c.proto", _file("c.proto"))
    _added(registry, "b.proto", _file("b.proto"), "c.proto")
    number = _added(registry, "orders-value", _file("main.proto"), "b.proto")
    lookup = lookup_of({"parse": {"format": "protobuf", "registry": {"url": registry.url}}})
    assert lookup is not None
    for _ in range(2):
        files = lookup(number)
        assert isinstance(files, bytes)
        assert str(fields_of(message_at(files, (0,)))) == "{x: {c: {n: int32}}, y: timestamp(ns)}"
    assert len(registry.asked) == 6


def test_a_schema_that_cannot_be_read_has_a_reason(registry: Registry) -> None:
    lookup = lookup_of({"parse": {"format": "protobuf", "registry": {"url": registry.url}}})
    assert lookup is not None
    registry.add("avro", "{}")
    text = registry.add("text", "syntax")
    registry.more[text] = {"schemaType": "PROTOBUF"}
    noise = _added(registry, "noise", b"\xff\xff")
    lacks = _added(registry, "lacks", _file("main.proto"), "b.proto")
    for number, words in (
        (1, "no schema of Protobuf under that number"),
        (text, "does not give it as a FileDescriptorProto"),
        (noise, "the schema is no FileDescriptorProto"),
        (lacks, "names a schema of another subject that is not there"),
        (99, "none of that number"),
    ):
        with pytest.raises(Misfit, match=words):
            lookup(number)
