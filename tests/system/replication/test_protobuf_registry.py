"""Protobuf with the number of a Schema Registry, from a file into a topic and back: the real command, broker and
engine; the registry is one that is written from its documentation."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.rows.protobuf_schemas import message_at
from tests.protobuf import descriptor_set
from tests.schema_registry import Registry, served
from tests.site import Site

pytestmark = pytest.mark.server

SERVERS = "${stack:name_servers}"
SET = descriptor_set("""syntax = "proto3"; package shop;
message Other { int32 x = 1; }
message Order { int64 id = 1; optional string name = 2; map<string, int32> parts = 3; }
""")
FIELDS: dict[str, Any] = {"id": "int64", "name": "text", "parts": [{"key": "text", "value": "int32"}]}
GOOD: list[dict[str, Any]] = [
    {"id": 0, "name": "", "parts": []},
    {"id": -1, "name": None, "parts": [{"key": "b", "value": 0}, {"key": "a", "value": 1}]},
]


def test_a_message_is_written_with_its_number_and_read_by_what_a_registry_gives(site: Site) -> None:
    (site.folder / "in").mkdir()
    (site.folder / "order.desc").write_bytes(SET)
    lines = [*map(json.dumps, GOOD), '{"id": null, "name": null, "parts": []}']
    (site.folder / "in" / "a.log").write_text("".join(f"{line}\n" for line in lines))
    with served(Registry()) as registry:
        registry.add("another", "{}")  # so that the number is no number of a first one
        said = {"url": registry.url, "auto_register": True}
        encode = {"format": "protobuf", "message": "shop.Order", "descriptors": {"path": "order.desc"}}
        to = {
            "source": {"file": {"path": "in/*.log"}},
            "sink": {"rocketmq": {"name_servers": SERVERS, "topic": site.topic, "queues": 1}},
            "errors": {"tolerance": "all"},
            "parse": {"format": "json", "fields": FIELDS},
            "encode": {**encode, "framing": "registry", "registry": said},
        }
        _write(site, "to", to)
        site.waybill("apply", "to.yaml")
    [number] = registry.subjects[f"{site.topic}-value"]
    file = FileDescriptorProto.FromString(b64decode(registry.schemas[number]))
    assert [one.name for one in file.message_type] == ["Other", "Order"]

    # The registry is away, and nobody asks for it.
    site.waybill("run", "to")
    order = GetMessageClass(message_at(FileDescriptorSet(file=[file]).SerializeToString(), (1,)))
    bodies = site.messages()
    assert [body[:7] for body in bodies] == [b"\0\0\0\0" + bytes([number]) + b"\2\2"] * 2
    found = [order.FromString(body[7:]) for body in bodies]
    assert [(one.id, one.HasField("name"), dict(one.parts)) for one in found] == [
        (0, True, {}),
        (-1, False, {"a": 1, "b": 0}),
    ]
    [letter] = site.json("dead-letters", "list", "to")["dead_letters"]
    assert letter["stage"] == "encode"

    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        [queue] = client.offsets.bounds(site.topic)
        sender, deadline = client.sender(queue), time.monotonic() + 60
        head = b"\0\0\0\0" + bytes([number])
        sent = [head + b"\0\x08\1", head + b"\2\2\xff", b"\0\0\0\0\x63\0"]
        sender.submit(encode_batch(sent, [b""] * len(sent)), deadline=deadline)
        sender.finish(deadline=deadline)
    parse = {"format": "protobuf", "message": "shop.Order", "framing": "registry", "fields": FIELDS}
    back = {
        "source": {"rocketmq": {"name_servers": SERVERS, "topics": [site.topic]}},
        "sink": {"file": {"path": "back.jsonl"}},
        "errors": {"tolerance": "all"},
        "parse": {**parse, "registry": {"url": registry.url}},
        "encode": {"format": "json"},
    }
    _write(site, "from", back)
    site.waybill("apply", "from.yaml")
    assert "The schema registry cannot be reached" in site.waybill("run", "from", code=3)
    with served(registry):
        site.waybill("run", "from")
    assert [json.loads(line) for line in (site.folder / "back.jsonl").read_text().splitlines()] == GOOD
    letters = site.json("dead-letters", "list", "from")["dead_letters"]
    assert sorted(one["message"] for one in letters) == [
        "Not of format protobuf: not Protobuf of its schema: it ends too early",
        f"Not of format protobuf: schema {number}: another message than shop.Order",
        "Not of format protobuf: schema 99: the registry has none of that number",
    ]


def _write(site: Site, name: str, document: dict[str, Any]) -> None:
    (site.folder / f"{name}.yaml").write_text(json.dumps({"version": 1, "name": name, **document}))
