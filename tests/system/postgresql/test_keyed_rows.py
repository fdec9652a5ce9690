"""A table that is written by the keys of a topic, as peers write them there; and keys that are written into a topic, as
a client that knows nothing of formats has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_core.rocketmq.wire import properties
from tests.faults.kit.topics import fill
from tests.postgres_tables import Database
from tests.site import Site
from tests.system.replication.test_rules import arrived

pytestmark = pytest.mark.server

SCHEMA = {"type": "struct", "fields": [{"type": "int64", "optional": False, "field": "id"}], "optional": False}


def enveloped(number: object) -> str:
    return json.dumps({"schema": SCHEMA, "payload": {"id": number}})


def keyed(site: Site, database: Database, form: str, records: list[tuple[str | None, object]]) -> None:
    said = [properties.encode({"KEYS": key} if key is not None else {}) for key, _ in records]
    fill(site.name_servers, site.topic, [[json.dumps(value).encode() for _, value in records]], [said])
    parse = {"format": "json", "fields": {"name": "text"}, "key_format": form, "key_fields": {"id": "int64"}}
    document: dict[str, Any] = {
        "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [site.topic]}},
        "sink": database.sink("people", mode="upsert", key=["id"]),
        "parse": parse,
        "errors": {"tolerance": "all"},
    }
    site.apply("people", document)
    site.waybill("run", "people", "--engine", "inline")


@pytest.mark.parametrize(("form", "key"), [("json", '{{"id": {}}}'.format), ("json-schema", enveloped)])
def test_rows_are_replaced_by_the_key_of_their_messages(
    sqlite_site: Site, postgres_url: str, form: str, key: Any
) -> None:
    database = Database(postgres_url)
    database.run("CREATE TABLE people (id bigint PRIMARY KEY, name text)")
    ann, bob, zoe = {"name": "Ann"}, {"name": "Bob"}, {"name": "Zoë"}
    keyed(sqlite_site, database, form, [(key(1), ann), (key(2), bob), ("3", bob), (None, bob), (key(1), zoe)])
    assert database.run("SELECT id, name FROM people ORDER BY id") == [(1, "Zoë"), (2, "Bob")]
    letters = sqlite_site.json("dead-letters", "list", "people")["dead_letters"]
    assert [(one["stage"], one["kind"]) for one in letters] == [("parse", "NotParsed")] * 2
    assert all(one["message"].startswith(f"Its key is not of format {form}: ") for one in letters)


def test_keys_are_made_of_fields(sqlite_site: Site) -> None:
    site = sqlite_site
    (site.folder / "a.log").write_text('{"id": 7, "name": "Zoë B"}\n{"id": 8, "name": null}\n')
    parse = {"format": "json", "fields": {"id": "int64", "name": "text"}}
    sink = {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 1}}
    encode = {"format": "csv", "columns": ["id"], "key_format": "json", "key_fields": ["name", "id"]}
    site.apply("keys", {"source": {"file": {"path": "*.log"}}, "sink": sink, "parse": parse, "encode": encode})
    site.waybill("run", "keys", "--engine", "inline")
    found = [(one["KEYS"], one["body"]) for one in arrived(site, site.topic)]
    assert found == [('{"name":"Zoë B","id":7}', "7"), ('{"name":null,"id":8}', "8")]


def test_fields_are_inferred_beside_those_of_the_key(sqlite_site: Site) -> None:
    site = sqlite_site
    bodies = [b'{"name": "Ann"}', b'{"name": "Bob"}']
    fill(site.name_servers, site.topic, [bodies], [[properties.encode({"KEYS": f'{{"id":{n}}}'}) for n in (1, 2)]])
    document: dict[str, Any] = {
        "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [site.topic]}},
        "sink": {"file": {"path": str(site.folder / "out.jsonl")}},
        "parse": {"format": "json", "fields": "infer", "key_format": "json", "key_fields": {"id": "int64"}},
        "encode": {"format": "json"},
    }
    site.apply("inferred", document)
    site.waybill("run", "inferred", "--engine", "inline")
    assert (site.folder / "out.jsonl").read_text().splitlines() == ['{"id":1,"name":"Ann"}', '{"id":2,"name":"Bob"}']
    [found] = site.json("trace", "inferred", "--when", "$.id = 2", "--range", f"{partition(site)}:0-2")["records"]
    assert found["offset"] == 1
    document["parse"]["key_fields"] = {"name": "text"}
    document["sink"]["file"]["path"] = str(site.folder / "other.jsonl")
    (site.folder / "b.json").write_text(json.dumps({"version": 1, "name": "both", **document}))
    refused = site.waybill("apply", "b.json", code=2)
    assert "name is a field of the key and of the payload: key_prefix: key_ makes key_name of the key's" in refused


def partition(site: Site) -> str:
    [connector] = site.json("lag", "inferred")["connectors"]
    return str(connector["partitions"][0]["partition"])
