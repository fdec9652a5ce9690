"""The number of a schema, asked of a registry when a document is applied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_core.config import Checked, check, create_home, load_settings
from connect_core.config.written import Written
from connect_core.errors import ConfigError, Unreachable
from connect_core.replication.driver.schema_ids import with_schema_ids
from tests.protobuf import descriptors
from tests.schema_registry import Registry, served


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served(Registry()) as one:
        yield one


def _checked(folder: Path, registry: Registry, fields: dict[str, str], **more: Any) -> Checked:
    document = {
        "version": 1,
        "name": "orders",
        "source": {"rocketmq": {"name_servers": "127.0.0.1:9876", "topics": ["in"]}},
        "sink": {"rocketmq": {"name_servers": "127.0.0.1:9876", "topic": "orders"}},
        "parse": {"format": "json", "fields": fields},
        "encode": {"format": "avro", "framing": "registry", "registry": {"url": registry.url, **more}},
    }
    return check(Written(document, "orders.yaml"), folder, load_settings(folder))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return create_home()


def test_a_schema_is_not_registered_unless_the_document_says_so(home: Path, registry: Registry) -> None:
    with pytest.raises(ConfigError, match="not registered under orders-value: there is no such subject"):
        with_schema_ids([_checked(home, registry, {"id": "int64"})], register=True)
    said = _checked(home, registry, {"id": "int64"}, auto_register=True)
    [dry] = with_schema_ids([said], register=False)
    assert (registry.schemas, dry.document.encode.schema_id) == ({}, None)
    assert dry.notices[-1] == "encode.registry: apply registers the schema under orders-value"
    [applied] = with_schema_ids([said], register=True)
    assert applied.data["encode"]["schema_id"] == applied.document.encode.schema_id == 1
    [again] = with_schema_ids([_checked(home, registry, {"id": "int64"})], register=True)
    assert again.data["encode"]["schema_id"] == 1
    assert with_schema_ids([applied], register=True) == [applied], "it has its number"


def test_one_that_is_not_compatible_changes_nothing(home: Path, registry: Registry) -> None:
    registry.add("orders-value", json.dumps({"fields": []}))
    schema = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}
    said = _checked(home, registry, {"id": "int64"}, auto_register=True)
    said.data["encode"]["avro_schema"] = schema
    document = said.document.model_copy(
        update={"encode": said.document.encode.model_copy(update={"avro_schema": schema})}
    )
    changed = Checked(document, said.data, said.where)
    with pytest.raises(ConfigError, match="not compatible with the newest of orders-value"):
        with_schema_ids([changed], register=False)
    with pytest.raises(ConfigError, match="not compatible with those of its subject"):
        with_schema_ids([changed], register=True)
    with pytest.raises(ConfigError, match="its newest schema has the number 1"):
        with_schema_ids([_checked(home, registry, {"id": "int64"})], register=True)
    registry.failing = 500
    with pytest.raises(Unreachable):
        with_schema_ids([changed], register=True)


def test_a_file_of_protobuf_gets_its_number_as_a_schema_of_avro_does(home: Path, registry: Registry) -> None:
    text = descriptors('syntax = "proto3"; package t; message M { int64 id = 1; }')
    said = _checked(home, registry, {"id": "int64"}, auto_register=True)
    encode = {**said.data["encode"], "format": "protobuf", "message": "t.M", "descriptors": text}
    checked = check(Written({**said.data, "encode": encode}, "orders.yaml"), home, load_settings(home))
    [dry] = with_schema_ids([checked], register=False)
    assert (registry.schemas, dry.document.encode.schema_id) == ({}, None)
    [applied] = with_schema_ids([checked], register=True)
    assert (applied.document.encode.schema_id, registry.more[1]) == (1, {"schemaType": "PROTOBUF"})
    assert with_schema_ids([checked], register=False)[0].document.encode.schema_id == 1
