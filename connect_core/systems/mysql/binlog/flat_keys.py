"""The keys of Debezium's connectors for MySQL and MariaDB. Pure.

https://debezium.io/documentation/reference/stable/connectors/mysql.html, "Connector properties"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatHandler, FlatWriter, ignored, option
from connect_core.systems.tables.debezium_keys import encrypted, number, only, skipped, tables, tombstones


def _tables(into: FlatWriter, key: str, value: Any) -> None:
    """The connection is to the database of the first one."""
    tables(into, key, value)
    names = [str(one) for one in into.options.get("tables", ())]
    if unfit := [one for one in names if "." not in one]:
        into.refuse(key, f"{unfit[0]!r} has no database: write DATABASE.TABLE")
    elif names:
        into.put(key, "database", names[0].partition(".")[0])


def _snapshot(into: FlatWriter, key: str, value: Any) -> None:
    if str(value).strip().lower() in ("never", "no_data", "schema_only"):
        into.put(key, "snapshot", "never")
    else:
        into.refuse(key, f"{value!r} is not available: rows that are there before do not come; there is no_data")


def _schema_changes(into: FlatWriter, key: str, value: Any) -> None:
    if str(value).strip().lower() != "false":
        into.notice(f"{key}: changes of the schema are no records here")


def _complete(into: FlatWriter) -> None:
    """Debezium sends tombstones and changes of the schema also where no key says so."""
    if "tombstones.on.delete" not in into.given:
        tombstones(into, "tombstones.on.delete", "true")
    if "include.schema.changes" not in into.given:
        _schema_changes(into, "include.schema.changes", "true")
    into.notice("offsets: reading begins where the log ends; what Debezium has read up to is not taken over")


_ONE_TOPIC = "the topic is that of connect.topicname or topic"
_NO_HISTORY = "the log has the columns of each row: no history of the schema is kept"
_BATCHES = "how much is read at a time follows limits and time"
_HISTORY = ("kafka.bootstrap.servers", "kafka.topic", "name.srv.addr", "rocketmq.topic", "internal")
_KEYS: Mapping[str, FlatHandler] = {
    "database.hostname": option("host"),
    "database.port": number("port"),
    "database.user": option("user"),
    "database.password": option("password"),
    "database.server.id": number("server_id"),
    "database.ssl.mode": encrypted,
    "database.server.name": ignored(_ONE_TOPIC),
    "topic.prefix": ignored(_ONE_TOPIC),
    "database.include.list": ignored("table.include.list names databases too"),
    "database.whitelist": ignored("table.include.list names databases too"),
    "table.include.list": _tables,
    "table.whitelist": _tables,
    "snapshot.mode": _snapshot,
    "include.schema.changes": _schema_changes,
    "decimal.handling.mode": only("precise"),
    "bigint.unsigned.handling.mode": only("long"),
    "time.precision.mode": only("adaptive_time_microseconds"),
    "binary.handling.mode": only("base64", "bytes"),
    "tombstones.on.delete": tombstones,
    "skipped.operations": skipped,
    "provide.transaction.metadata": ignored("each event has its transaction"),
    "heartbeat.interval.ms": ignored("the position moves on with each run, also where other tables alone change"),
    **dict.fromkeys(("max.batch.size", "max.queue.size", "poll.interval.ms"), ignored(_BATCHES)),
    **dict.fromkeys((f"schema.history.internal.{one}" for one in _HISTORY), ignored(_NO_HISTORY)),
    **dict.fromkeys((f"database.history.{one}" for one in _HISTORY), ignored(_NO_HISTORY)),
    **dict.fromkeys(("database.history", "schema.history.internal"), ignored(_NO_HISTORY)),
}
_MUST = {
    "database.hostname": "where the server is",
    "database.user": "who reads",
    "table.include.list|table.whitelist": "whose changes are read",
    "snapshot.mode": "no_data: rows that are there before do not come",
}


def _class(name: str, package: str) -> FlatClass:
    end = FlatEnd(_KEYS, _MUST, _complete)
    return FlatClass(name, package, "source", end, records="events", gives_json=True, schemas_option="schemas")


CLASSES = (
    _class("MySqlConnector", "io.debezium.connector.mysql."),
    _class("MariaDbConnector", "io.debezium.connector.mariadb."),
    _class("DebeziumMysqlConnector", "org.apache.rocketmq.connect.debezium.mysql."),
)
