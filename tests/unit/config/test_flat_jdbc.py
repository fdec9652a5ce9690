"""Flat documents of JDBC connectors."""

from __future__ import annotations

from typing import Any

import pytest

from connect_core.errors import ConfigError
from connect_core.systems.tables.jdbc_keys import PACKAGES
from tests.unit.config.test_flat import Read, read

__all__ = ["read"]

JSON = "org.apache.kafka.connect.json.JsonConverter"
SINK = {
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "connection.url": "jdbc:mysql://db.example.com:3307/shop?useSSL=false",
    "connection.user": "writer",
    "connection.password": "${env:SHOP_PASSWORD}",
    "insert.mode": "UPSERT",
    "pk.mode": "record_value",
    "pk.fields": "id, region",
    "auto.create": "true",
    "auto.evolve": "false",
    "batch.size": "100",
    "max.retries": "10",
    "table.name.format": "copy_${topic}",
    "connect.topicnames": "orders",
    "value.converter": JSON,
    "waybill.fields": '{"id": "int64", "region": "text"}',
}
SOURCE = {
    "connector.class": "JdbcSourceConnector",
    "connection.url": "jdbc:postgresql://db.example.com/shop?sslmode=verify-full",
    "connection.user": "reader",
    "mode": "incrementing",
    "incrementing.column.name": "id",
    "table.whitelist": "sales.orders",
    "poll.interval.ms": "500",
    "topic.prefix": "shop-",
    "connect.topicname": "orders",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
}
QUERY = "SELECT i.id, o.customer FROM items i JOIN orders o ON o.id = i.of_order"
QUERIED = {key: value for key, value in SOURCE.items() if key != "table.whitelist"} | {"query": QUERY}
TIMED = {**SOURCE, "mode": "timestamp+incrementing", "timestamp.column.name": "changed"}


@pytest.mark.parametrize("package", [of_sinks for of_sinks, _ in PACKAGES])
def test_a_sink(read: Read, package: str) -> None:
    checked = read({**SINK, "connector.class": f"{package}JdbcSinkConnector"})
    assert checked.data["sink"] == {
        "mysql": {
            "host": "db.example.com",
            "port": 3307,
            "database": "shop",
            "user": "writer",
            "password": "${env:SHOP_PASSWORD}",
            "mode": "upsert",
            "key": ["id", "region"],
            "create_table": True,
            "table": "copy_orders",
        }
    }
    assert checked.data["source"]["rocketmq"]["topics"] == ["orders"]
    assert checked.data["parse"] == {"format": "json-schema", "fields": {"id": "int64", "region": "text"}}


def test_a_source(read: Read) -> None:
    checked = read(SOURCE)
    assert checked.data["source"] == {
        "postgresql": {
            "host": "db.example.com",
            "database": "shop",
            "tls": True,
            "user": "reader",
            "incrementing": "id",
            "table": "sales.orders",
            "every_s": 0.5,
        }
    }
    assert checked.data["sink"] == {"rocketmq": {"connection": "main", "topic": "orders"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"timestamp": "changed", "incrementing": "id"}),
        ({"mode": "timestamp"}, {"timestamp": "changed"}),
        ({"mode": "incrementing"}, {"incrementing": "id"}),
        (
            {"timestamp.delay.interval.ms": "5000"},
            {"timestamp": "changed", "incrementing": "id", "delay_s": 5.0},
        ),
        ({"timestamp.delay.interval.ms": "0"}, {"timestamp": "changed", "incrementing": "id"}),
    ],
)
def test_modes_of_a_source(read: Read, given: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read({**TIMED, **given}).data["source"]["postgresql"]
    names = ("timestamp", "incrementing", "delay_s")
    assert {name: found[name] for name in names if name in found} == expected


@pytest.mark.parametrize(
    ("url", "system"),
    [("jdbc:mariadb://h/d", "mysql"), ("jdbc:mysql://h/d", "mysql"), ("jdbc:postgresql://h/d", "postgresql")],
)
def test_the_url_says_which_database(read: Read, url: str, system: str) -> None:
    assert list(read({**SINK, "connection.url": url}).data["sink"]) == [system]


def test_a_table_with_transforms(read: Read) -> None:
    transform = {"transforms": "drop", "transforms.drop.type": "org.apache.kafka.connect.transforms.ReplaceField$Value"}
    given = {**SINK, **transform, "transforms.drop.exclude": "region", "pk.fields": "id"}
    checked = read(given)
    assert checked.data["parse"]["fields"] == {"id": "int64", "region": "text"}
    assert "encode" not in checked.data
    assert checked.data["transforms"]


def test_a_table_has_the_name_of_its_topic(read: Read) -> None:
    given: dict[str, Any] = {**SINK}
    del given["table.name.format"]
    assert read(given).data["sink"]["mysql"]["table"] == "orders"


def test_several_tables_and_their_topics(read: Read) -> None:
    found = read({**SOURCE, "table.whitelist": "sales.orders, pay_in", "connect.topicname": "shop-{topic}"})
    assert found.data["source"]["postgresql"]["tables"] == ["sales.orders", "pay_in"]
    assert "table" not in found.data["source"]["postgresql"]
    assert found.data["sink"]["rocketmq"]["topic"] == "shop-{topic}"
    assert any("stands for the name of a table" in notice for notice in found.notices)


def test_bulk_reads_the_whole_table_by_its_primary_key(read: Read) -> None:
    found = read({**SOURCE, "mode": "bulk"})
    source = found.data["source"]["postgresql"]
    assert (source["bulk"], "incrementing" in source, source["every_s"]) == (True, False, 0.5)
    assert any("tells rows apart" in notice for notice in found.notices)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"mode": "bulk"}, {"bulk": True}),
        ({"mode": "timestamp", "timestamp.column.name": "at"}, {"timestamp": "at"}),
        ({"mode": "timestamp+incrementing", "timestamp.column.name": "at"}, {"timestamp": "at"}),
        ({"table.whitelist": "", "query.suffix": ""}, {}),
    ],
)
@pytest.mark.parametrize("package", [of_sources for _, of_sources in PACKAGES])
def test_a_query_has_numbers_in_each_mode(
    read: Read, package: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = read({**QUERIED, **given, "connector.class": f"{package}JdbcSourceConnector"})
    source = found.data["source"]["postgresql"]
    names = ("query", "incrementing", "bulk", "timestamp", "table", "tables")
    assert {name: source[name] for name in names if name in source} == {
        "query": QUERY,
        "incrementing": "id",
        **expected,
    }
    assert found.data["sink"] == {"rocketmq": {"connection": "main", "topic": "orders"}}


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        (
            {**SINK, "connection.url": "jdbc:oracle:thin:@h:1521/d"},
            "connector.class",
            "is here for mysql and postgresql",
        ),
        ({**SINK, "connection.url": "jdbc:mysql:nonsense"}, "connection.url", "jdbc:KIND://HOST:PORT/DATABASE"),
        ({**SINK, "connection.url": "jdbc:mysql://h/d?user=a"}, "connection.url", "write connection.user"),
        ({**SINK, "connection.url": "jdbc:mysql://h/d?useSSL=true"}, "connection.url", "sslmode=verify-full"),
        ({**SINK, "insert.mode": "update"}, "insert.mode", "insert and upsert"),
        ({**SINK, "delete.enabled": "true"}, "delete.enabled", "change events"),
        ({**SINK, "auto.create": "yes"}, "auto.create", "neither true nor false"),
        ({**SINK, "pk.mode": "kafka"}, "pk.mode", "record_value"),
        ({**SINK, "connect.topicnames": "a;b"}, "table.name.format", "one table"),
        ({key: value for key, value in SINK.items() if key != "waybill.fields"}, "waybill.fields", "is missing"),
        ({**SOURCE, "mode": "query"}, "mode", "there are bulk, incrementing, timestamp and timestamp+incrementing"),
        ({**SOURCE, "mode": "timestamp"}, "mode", "needs timestamp.column.name"),
        ({**TIMED, "timestamp.column.name": "changed,made"}, "timestamp.column.name", "takes no NULL"),
        ({**TIMED, "timestamp.delay.interval.ms": "long"}, "timestamp.delay.interval.ms", "milliseconds"),
        ({**SOURCE, "table.whitelist": " , "}, "table.whitelist", "name a table"),
        ({**SOURCE, "poll.interval.ms": "soon"}, "poll.interval.ms", "milliseconds"),
        ({**SOURCE, "db.timezone": "Europe/Paris"}, "db.timezone", "UTC"),
        ({**SOURCE, "query": "SELECT 1"}, "query", "a query or tables"),
        ({**QUERIED, "incrementing.column.name": ""}, "query", "needs incrementing.column.name in each mode"),
        ({**QUERIED, "query.suffix": "LIMIT 10"}, "query.suffix", "write it into the query"),
        ({**SOURCE, "value.converter.schemas.enable": "true"}, "value.converter.schemas.enable", "set it to false"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_key(read: Read, given: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(given)
    [fault] = caught.value.faults
    assert fault.path == key
    assert words in str(fault)


def test_a_file_of_sqlite(read: Read) -> None:
    """As the quick starts of Kafka Connect have it."""
    checked = read({**SINK, "connection.url": "jdbc:sqlite:shop.db"})
    sink = checked.data["sink"]["sql"]
    assert sink.pop("url").endswith("/shop.db")
    assert sink == {"table": "copy_orders", "mode": "upsert", "key": ["id", "region"], "create_table": True}
    checked = read({**SOURCE, "connection.url": "jdbc:sqlite:shop.db", "table.whitelist": "orders"})
    source = checked.data["source"]["sql"]
    assert source.pop("url").endswith("/shop.db")
    assert source == {"table": "orders", "incrementing": "id", "every_s": 0.5}
    checked = read({**SOURCE, "connection.url": "jdbc:sqlite:shop.db", "table.whitelist": "orders,items"})
    assert checked.data["source"]["sql"]["tables"] == ["orders", "items"]
    checked = read({**QUERIED, "connection.url": "jdbc:sqlite:shop.db"})
    assert checked.data["source"]["sql"]["query"] == QUERIED["query"]
    checked = read({**TIMED, "connection.url": "jdbc:sqlite:shop.db", "table.whitelist": "orders"})
    assert checked.data["source"]["sql"]["timestamp"] == TIMED["timestamp.column.name"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("connection.url", "jdbc:sqlite:", "nothing but the path of a file"),
        ("connection.url", "jdbc:sqlite::memory:", "nothing but the path of a file"),
        ("connection.url", "jdbc:sqlite:a.db?cache=shared", "nothing but the path of a file"),
        ("connection.url", "jdbc:sqlite:/etc/a.db", "is outside of the folders"),
        ("query", "SELECT 1", "a connector reads a query or tables"),
    ],
)
def test_what_a_file_of_sqlite_has_not(read: Read, key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read({**SOURCE, "connection.url": "jdbc:sqlite:shop.db", "table.whitelist": "orders", key: value})
