"""Flat documents of Debezium's connector for PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from connect_core.errors import ConfigError
from tests.unit.config.test_flat import Read, read

__all__ = ["read"]

KAFKA = "org.apache.kafka.connect.json.JsonConverter"
GIVEN = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "tasks.max": "1",
    "database.hostname": "db.example.com",
    "database.port": "5433",
    "database.user": "reader",
    "database.dbname": "shop",
    "database.sslmode": "verify-full",
    "topic.prefix": "shop",
    "plugin.name": "decoderbufs",
    "table.include.list": r"public.orders, sales\.items",
    "slot.name": "debezium",
    "publication.name": "all_of_it",
    "publication.autocreate.mode": "disabled",
    "snapshot.mode": "no_data",
    "snapshot.fetch.size": "2000",
    "tombstones.on.delete": "false",
    "interval.handling.mode": "string",
    "decimal.handling.mode": "precise",
    "skipped.operations": "t",
    "poll.interval.ms": "500",
    "value.converter": KAFKA,
    "value.converter.schemas.enable": "false",
    "key.converter": KAFKA,
    "connect.topicname": "changes",
}


@pytest.mark.parametrize("kind", [GIVEN["connector.class"], "DebeziumPostgresConnector"])
def test_a_document_becomes_a_native_one(read: Read, kind: str) -> None:
    checked = read({**GIVEN, "connector.class": kind})
    assert checked.data["source"] == {
        "postgresql_changes": {
            "host": "db.example.com",
            "port": 5433,
            "user": "reader",
            "database": "shop",
            "tls": True,
            "tables": ["public.orders", "sales.items"],
            "slot": "debezium",
            "publication": "all_of_it",
            "snapshot": "never",
            "snapshot_rows": 2000,
            "schemas": False,
        }
    }
    assert checked.data["sink"] == {"rocketmq": {"connection": "main", "topic": "changes"}}
    told = {notice.partition(":")[0] for notice in checked.notices}
    assert {"slot.name", "plugin.name", "skipped.operations", "key.converter", "poll.interval.ms"} <= told
    assert not told & {"tombstones.on.delete", "interval.handling.mode", "publication.name"}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("table.include.list", r"public\.o.*", "is an expression"),
        ("snapshot.mode", "always", "waybill snapshot"),
        ("decimal.handling.mode", "string", "not available"),
        ("time.precision.mode", "connect", "not available"),
        ("database.sslmode", "require", "use verify-full"),
        ("skipped.operations", "u,t", "every kind of change comes"),
        ("snapshot.fetch.size", "many", "not a number"),
        ("column.include.list", "public.orders.id", "unknown key"),
        ("slot.drop.on.stop", "true", "not available"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_key(read: Read, key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read({**GIVEN, key: value})
    [fault] = caught.value.faults
    assert fault.path == key
    assert words in str(fault)


def test_what_debezium_does_by_itself_is_told(read: Read) -> None:
    given: dict[str, Any] = {**GIVEN}
    for key in ("tombstones.on.delete", "interval.handling.mode"):
        del given[key]
    told = {notice.partition(":")[0] for notice in read(given).notices}
    assert {"tombstones.on.delete", "interval.handling.mode"} <= told
