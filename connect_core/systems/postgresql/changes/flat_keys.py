"""The keys of Debezium's connector for PostgreSQL. Pure.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html, "Connector properties"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_core.sdk.flat import FlatEnd, FlatHandler, FlatWriter, ignored, option
from connect_core.systems.tables.debezium_keys import (
    COMMON,
    encrypted,
    flat_class,
    number,
    only,
    snapshot_mode,
    tables,
    tombstones,
)


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


def _complete(into: FlatWriter) -> None:
    """Debezium sends truncates and tombstones in its own way also where no key says so."""
    if "tombstones.on.delete" not in into.given:
        tombstones(into, "tombstones.on.delete", "true")
    if "interval.handling.mode" not in into.given:
        into.notice("interval.handling.mode: an interval is its text here, which keeps months")


_KEYS: Mapping[str, FlatHandler] = {
    **COMMON,
    "database.dbname": option("database"),
    "database.sslmode": encrypted,
    "database.sslrootcert": option("tls_ca"),
    "database.sslcert": option("tls_certificate"),
    "database.sslkey": option("tls_key"),
    "table.include.list": tables,
    "table.whitelist": tables,
    "plugin.name": _plugin,
    "slot.name": _slot,
    "slot.drop.on.stop": only("false"),
    "publication.name": _publication,
    "publication.autocreate.mode": ignored("see publication.name"),
    "snapshot.mode": snapshot_mode(),
    "snapshot.fetch.size": number("snapshot_rows"),
    "incremental.snapshot.chunk.size": number("snapshot_rows"),
    "time.precision.mode": only("adaptive"),
    "interval.handling.mode": only("string"),
    "hstore.handling.mode": only("text"),
    "unavailable.value.placeholder": only("__debezium_unavailable_value"),
    "signal.data.collection": ignored("waybill snapshot NAME brings rows once more"),
    "heartbeat.interval.ms": ignored("the slot moves on with each run, also where other tables alone change"),
    "status.update.interval.ms": ignored("the slot moves on when receipts are settled"),
}
_MUST = {
    "database.hostname": "where the database is",
    "database.user": "who reads",
    "database.dbname": "the database",
    "table.include.list|table.whitelist": "whose changes are read",
}


_END = FlatEnd(_KEYS, _MUST, _complete)
CLASSES = (
    flat_class("PostgresConnector", "io.debezium.connector.postgresql.", _END),
    flat_class("DebeziumPostgresConnector", "org.apache.rocketmq.connect.debezium.postgres.", _END),
)
