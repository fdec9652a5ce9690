"""Avro and Protobuf with the numbers of Apicurio Registry, which has the REST API of Confluent's: from a file into a
topic and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apicurio import Apicurio
from tests.protobuf import descriptor_set
from tests.site import Site

pytestmark = pytest.mark.server

SERVERS = "${stack:name_servers}"
FIELDS = {"id": "int64", "name": "text"}
RECORDS = [{"id": number, "name": f"n{number}"} for number in range(300)]
SET = descriptor_set("""syntax = "proto3"; package shop;
message Order { optional int64 id = 1; optional string name = 2; }
""")
PROTOBUF = {"format": "protobuf", "message": "shop.Order"}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "avro": ({"format": "avro", "record": "shop.Order"}, {"format": "avro"}),
    "protobuf": ({**PROTOBUF, "descriptors": {"path": "order.desc"}}, PROTOBUF),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_written_with_the_numbers_of_a_registry_is_read_by_its_schemas(
    site: Site, apicurio: Apicurio, way: str
) -> None:
    encode, parse = WAYS[way]
    (site.folder / "in").mkdir()
    (site.folder / "order.desc").write_bytes(SET)
    (site.folder / "in" / "a.log").write_text("".join(f"{json.dumps(one)}\n" for one in RECORDS))
    apicurio.add("another", '{"type": "string"}')  # so that the number is no number of a first one
    registry = {"framing": "registry", "registry": {"url": apicurio.url, "auto_register": True}}
    _write(site, "to", parse={"format": "json", "fields": FIELDS}, encode={**encode, **registry})
    assert (
        f"apply registers the schema under {site.topic}-value"
        in site.start("apply", "to.yaml", "--dry-run").communicate(timeout=60)[1]
    )
    site.waybill("apply", "to.yaml")
    site.waybill("run", "to")
    number = apicurio.newest(f"{site.topic}-value")
    assert number > 1
    assert {body[:5] for body in site.messages()} == {b"\0" + number.to_bytes(4, "big")}

    parse = {**parse, "framing": "registry", "registry": {"url": apicurio.url}, "fields": FIELDS}
    _write(site, "from", parse=parse, encode={"format": "json"})
    site.waybill("apply", "from.yaml")
    site.waybill("run", "from")
    assert [json.loads(line) for line in (site.folder / "back.jsonl").read_text().splitlines()] == RECORDS


def test_a_schema_that_the_registry_finds_incompatible_is_not_written(site: Site, apicurio: Apicurio) -> None:
    (site.folder / "in").mkdir()
    subject = f"{site.topic}-value"
    apicurio.add(subject, '{"type": "record", "name": "Order", "namespace": "shop", "fields": []}')
    apicurio.compare(subject, "BACKWARD")
    fields = {"id": "int64"}
    said = {"url": apicurio.url, "auto_register": True}
    order = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}
    encode = {"format": "avro", "avro_schema": order, "framing": "registry", "registry": said}
    _write(site, "to", parse={"format": "json", "fields": fields}, encode=encode)
    assert "not compatible" in site.waybill("apply", "to.yaml", "--dry-run", code=2)
    assert "not compatible" in site.waybill("apply", "to.yaml", code=2)
    assert site.json("connectors", "list")["connectors"] == []


def _write(site: Site, name: str, **more: Any) -> None:
    topic = {"rocketmq": {"name_servers": SERVERS}}
    ends: dict[str, Any] = {
        "to": {
            "source": {"file": {"path": "in/*.log"}},
            "sink": {"rocketmq": {**topic["rocketmq"], "topic": site.topic, "queues": 1}},
        },
        "from": {
            "source": {"rocketmq": {**topic["rocketmq"], "topics": [site.topic]}},
            "sink": {"file": {"path": "back.jsonl"}},
        },
    }
    (site.folder / f"{name}.yaml").write_text(json.dumps({"version": 1, "name": name, **ends[name], **more}))
