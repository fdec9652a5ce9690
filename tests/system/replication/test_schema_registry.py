"""Avro with the number of a Schema Registry, from a file into a topic and back: the real command, broker and engine;
the registry is one that is written from its documentation."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from tests.schema_registry import Registry, served
from tests.site import Site

pytestmark = pytest.mark.server

SERVERS = "${stack:name_servers}"
LOGIN = "ann:top-secret"
FIELDS = {"id": "int64", "name": "text"}
GOOD = [{"id": number, "name": f"n{number}"} for number in range(3)]


def _to(site: Site, registry: Registry, **more: Any) -> dict[str, Any]:
    said = {"url": registry.url, "username": "ann", "password": f"${{file:{site.folder}/password}}", **more}
    return {
        "source": {"file": {"path": "in/*.log"}},
        "sink": {"rocketmq": {"name_servers": SERVERS, "topic": site.topic, "queues": 1}},
        "errors": {"tolerance": "all"},
        "parse": {"format": "json", "fields": FIELDS},
        "encode": {"format": "avro", "record": "shop.Order", "framing": "registry", "registry": said},
    }


def _from(site: Site, registry: Registry) -> dict[str, Any]:
    said = {"url": registry.url, "username": "ann", "password": f"${{file:{site.folder}/password}}"}
    return {
        "source": {"rocketmq": {"name_servers": SERVERS, "topics": [site.topic]}},
        "sink": {"file": {"path": "back.jsonl"}},
        "errors": {"tolerance": "all"},
        "parse": {"format": "avro", "framing": "registry", "registry": said, "fields": FIELDS},
        "encode": {"format": "json"},
    }


def test_numbers_are_asked_for_when_a_document_is_applied_and_schemas_when_records_are_read(site: Site) -> None:
    (site.folder / "password").write_text("top-secret\n")
    (site.folder / "in").mkdir()
    lines = [*map(json.dumps, GOOD), '{"id": "x"}']
    (site.folder / "in" / "a.log").write_text("".join(f"{line}\n" for line in lines))
    registry = Registry(login=LOGIN)
    with served(registry):
        _write(site, "to", _to(site, registry))
        assert f"is not registered under {site.topic}-value: there is no such subject" in site.waybill(
            "apply", "to.yaml", code=2
        )
        _write(site, "to", _to(site, registry, auto_register=True))
        assert (
            f"apply registers the schema under {site.topic}-value"
            in site.start("apply", "to.yaml", "--dry-run").communicate(timeout=60)[1]
        )
        assert registry.schemas == {}
        assert f"encode: the schema registry at {registry.url} answers" in site.waybill("check", "to.yaml", "--probe")
        registry.add("another", "{}")  # so that the number is no number of a first one
        site.waybill("apply", "to.yaml")
        site.waybill("apply", "to.yaml")
    assert list(registry.subjects[f"{site.topic}-value"]) == [2]

    # The registry is away, and nobody asks for it.
    site.waybill("run", "to")
    bodies = site.messages()
    assert bodies == [b"\0\0\0\0\2" + b"\2" + bytes([2 * one["id"]]) + b"\2\4" + one["name"].encode() for one in GOOD]
    [letter] = site.json("dead-letters", "list", "to")["dead_letters"]
    assert letter["stage"] == "parse"

    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        [queue] = client.offsets.bounds(site.topic)
        sender, deadline = client.sender(queue), time.monotonic() + 60
        sender.submit(encode_batch([b"\0\0\0\0\x63\2", b"no Avro"], [b"", b""]), deadline=deadline)
        sender.finish(deadline=deadline)
    _write(site, "from", _from(site, registry))
    site.waybill("apply", "from.yaml")
    words = site.waybill("run", "from", code=3)
    assert "The schema registry cannot be reached" in words
    assert "top-secret" not in words
    assert not (site.folder / "back.jsonl").exists() or (site.folder / "back.jsonl").read_text() == ""
    assert site.json("dead-letters", "list", "from")["dead_letters"] == []

    with served(registry):
        registry.login = "ann:another"
        assert "refused the login (401)" in site.waybill("run", "from", code=6)
        registry.login, registry.asked = LOGIN, []
        site.waybill("run", "from")
    back = [json.loads(line) for line in (site.folder / "back.jsonl").read_text().splitlines()]
    assert back == GOOD
    letters = site.json("dead-letters", "list", "from")["dead_letters"]
    assert sorted(one["message"] for one in letters) == [
        "Not of format avro: it does not begin with a zero byte and the number of a schema",
        "Not of format avro: schema 99: the registry has none of that number",
    ]
    assert sorted(registry.asked) == ["GET /schemas/ids/2", "GET /schemas/ids/99"]


def _write(site: Site, name: str, document: dict[str, Any]) -> None:
    (site.folder / f"{name}.yaml").write_text(json.dumps({"version": 1, "name": name, **document}))
