"""Flat documents of Debezium's connectors for MySQL and MariaDB."""

from __future__ import annotations

from typing import Any

import pytest

from connect_core.errors import ConfigError
from tests.unit.config.test_flat import Read, read

__all__ = ["read"]

KAFKA = "org.apache.kafka.connect.json.JsonConverter"
GIVEN = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "tasks.max": "1",
    "database.hostname": "db.example.com",
    "database.port": "3307",
    "database.user": "reader",
    "database.server.id": "5401",
    "database.ssl.mode": "verify_identity",
    "topic.prefix": "shop",
    "table.include.list": r"shop.orders, sales\.items",
    "snapshot.mode": "no_data",
    "schema.history.internal.kafka.topic": "history",
    "value.converter": KAFKA,
    "value.converter.schemas.enable": "false",
    "key.converter": KAFKA,
    "connect.topicname": "changes",
}


@pytest.mark.parametrize(
    "kind", [GIVEN["connector.class"], "io.debezium.connector.mariadb.MariaDbConnector", "DebeziumMysqlConnector"]
)
def test_a_document_becomes_a_native_one(read: Read, kind: str) -> None:
    checked = read({**GIVEN, "connector.class": kind})
    assert checked.data["source"] == {
        "mysql_changes": {
            "host": "db.example.com",
            "port": 3307,
            "user": "reader",
            "database": "shop",
            "server_id": 5401,
            "tls": True,
            "tables": ["shop.orders", "sales.items"],
            "snapshot": "never",
            "schemas": False,
        }
    }
    told = {notice.partition(":")[0] for notice in checked.notices}
    assert {"tombstones.on.delete", "include.schema.changes", "offsets"} <= told


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("table.include.list", "orders", "has no database"),
        ("snapshot.mode", "initial_only", "at any time"),
        ("bigint.unsigned.handling.mode", "precise", "not available"),
        ("time.precision.mode", "connect", "not available"),
        ("database.ssl.mode", "required", "use verify_identity"),
        ("skipped.operations", "u", "every kind of change comes"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_key(read: Read, key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read({**GIVEN, key: value})
    [fault] = caught.value.faults
    assert fault.path == key
    assert words in str(fault)


@pytest.mark.parametrize(("mode", "snapshot"), [("initial", "initial"), ("schema_only", "never"), (None, None)])
def test_rows_that_are_there_come_as_with_debezium(read: Read, mode: str | None, snapshot: str | None) -> None:
    """`initial` is the default of both."""
    given: dict[str, Any] = {**GIVEN, "incremental.snapshot.chunk.size": "500", "snapshot.mode": mode}
    if mode is None:
        del given["snapshot.mode"]
    source = read(given).data["source"]["mysql_changes"]
    assert (source.get("snapshot"), source["snapshot_rows"]) == (snapshot, 500)
