"""The keys of Debezium's connector for PostgreSQL. Pure.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html, "Connector properties"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatHandler, FlatWriter, ignored, option

_TABLE = re.compile(r"[\w$]+(?:\\?\.[\w$]+)?")
"""A name, where Debezium takes an expression: its point may be escaped."""


def _tables(into: FlatWriter, key: str, value: Any) -> None:
    names = [one.strip() for one in str(value).split(",") if one.strip()]
    if unfit := [one for one in names if not _TABLE.fullmatch(one)]:
        words = "is an expression: name tables, or use a native document, with patterns such as sales.*"
        into.refuse(key, f"{unfit[0]!r} {words}")
        return
    into.put(key, "tables", [one.replace("\\.", ".") for one in names])


def _number(name: str) -> FlatHandler:
    def put(into: FlatWriter, key: str, value: Any) -> None:
        text = str(value).strip()
        if text.isdecimal():
            into.put(key, name, int(text))
        else:
            into.refuse(key, f"{value!r} is not a number")

    return put


def _snapshot(into: FlatWriter, key: str, value: Any) -> None:
    meant = {"initial": "initial", "never": "never", "no_data": "never"}.get(str(value).strip().lower())
    if meant:
        into.put(key, "snapshot", meant)
    else:
        step = "waybill snapshot NAME brings the rows of tables at any time"
        into.refuse(key, f"{value!r} is not available; there are initial and no_data; {step}")


def _plugin(into: FlatWriter, key: str, value: Any) -> None:
    if str(value).strip() != "pgoutput":
        into.notice(f"{key}: changes are read by pgoutput here, which each server has")


def _slot(into: FlatWriter, key: str, value: Any) -> None:
    into.put(key, "slot", str(value).strip())
    into.notice(
        f"{key}: the slot is read from where it is. Stop the connector of Debezium first; what it has read and did not"
        " confirm comes once more; and set snapshot.mode=never where it has brought the rows"
    )


def _publication(into: FlatWriter, key: str, value: Any) -> None:
    into.put(key, "publication", str(value).strip())
    if str(into.given.get("publication.autocreate.mode", "all_tables")).strip() != "disabled":
        into.notice(f"{key}: it must be there; without this key one is made of the tables")


def _sslmode(into: FlatWriter, key: str, value: Any) -> None:
    word = str(value).strip().lower()
    if word in ("verify-full", "verify_full"):
        into.put(key, "tls", True)
    elif word in ("require", "required", "verify-ca", "verify_ca"):
        into.refuse(key, f"{value!r} does not check the name of the server: use verify-full")
    else:
        into.ignore(key, "the connection is encrypted where the server can; verify-full demands and checks it")


def _only(*fit: str) -> FlatHandler:
    """The key may be there with a value that says what is done here."""

    def check(into: FlatWriter, key: str, value: Any) -> None:
        if str(value).strip().lower() not in fit:
            into.refuse(key, f"{value!r} is not available; events have what `{fit[0]}` gives")

    return check


def _skipped(into: FlatWriter, key: str, value: Any) -> None:
    skipped = {one.strip() for one in str(value).split(",")} - {"none", ""}
    if skipped - {"t"}:
        into.refuse(key, "every kind of change comes; filter.when of a native document leaves some out")
    elif skipped:
        into.notice(f"{key}: a truncate comes too, with op `t`")


def _tombstones(into: FlatWriter, key: str, value: Any) -> None:
    if str(value).strip().lower() != "false":
        into.notice(f"{key}: no topic has tombstones here: a delete is one record")


def _complete(into: FlatWriter) -> None:
    """Debezium sends truncates and tombstones in its own way also where no key says so."""
    if "tombstones.on.delete" not in into.given:
        _tombstones(into, "tombstones.on.delete", "true")
    if "interval.handling.mode" not in into.given:
        into.notice("interval.handling.mode: an interval is its text here, which keeps months")


_BATCHES = "how much is read at a time follows limits and time"
_ONE_TOPIC = "the topic is that of connect.topicname or topic"
_KEYS: Mapping[str, FlatHandler] = {
    "database.hostname": option("host"),
    "database.port": _number("port"),
    "database.user": option("user"),
    "database.password": option("password"),
    "database.dbname": option("database"),
    "database.sslmode": _sslmode,
    "database.sslrootcert": option("tls_ca"),
    "database.sslcert": option("tls_certificate"),
    "database.sslkey": option("tls_key"),
    "database.server.name": ignored(_ONE_TOPIC),
    "topic.prefix": ignored(_ONE_TOPIC),
    "table.include.list": _tables,
    "table.whitelist": _tables,
    "plugin.name": _plugin,
    "slot.name": _slot,
    "slot.drop.on.stop": _only("false"),
    "publication.name": _publication,
    "publication.autocreate.mode": ignored("see publication.name"),
    "snapshot.mode": _snapshot,
    "snapshot.fetch.size": _number("snapshot_rows"),
    "incremental.snapshot.chunk.size": _number("snapshot_rows"),
    "decimal.handling.mode": _only("precise"),
    "time.precision.mode": _only("adaptive"),
    "interval.handling.mode": _only("string"),
    "binary.handling.mode": _only("base64", "bytes"),
    "hstore.handling.mode": _only("text"),
    "tombstones.on.delete": _tombstones,
    "skipped.operations": _skipped,
    "provide.transaction.metadata": ignored("each event has its transaction"),
    "unavailable.value.placeholder": _only("__debezium_unavailable_value"),
    "signal.data.collection": ignored("waybill snapshot NAME brings rows once more"),
    "heartbeat.interval.ms": ignored("the slot moves on with each run, also where other tables alone change"),
    "status.update.interval.ms": ignored("the slot moves on when receipts are settled"),
    **dict.fromkeys(("max.batch.size", "max.queue.size", "poll.interval.ms"), ignored(_BATCHES)),
}
_MUST = {
    "database.hostname": "where the database is",
    "database.user": "who reads",
    "database.dbname": "the database",
    "table.include.list|table.whitelist": "whose changes are read",
}


def _class(name: str, package: str) -> FlatClass:
    end = FlatEnd(_KEYS, _MUST, _complete)
    return FlatClass(name, package, "source", end, records="events", gives_json=True, schemas_option="schemas")


CLASSES = (
    _class("PostgresConnector", "io.debezium.connector.postgresql."),
    _class("DebeziumPostgresConnector", "org.apache.rocketmq.connect.debezium.postgres."),
)
