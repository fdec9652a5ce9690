"""Schemas of events, as Kafka Connect's JsonConverter writes them: with one, a reader knows how many digits a decimal
has, and of which unit a time is. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from connect_core.sdk.values import Json
from connect_core.systems.postgresql.changes import values
from connect_core.systems.postgresql.changes.values import ColumnType

_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "int64"}


def _named(kind: str, name: str) -> Json:
    return {"type": kind, "name": f"io.debezium.{name}", "version": 1}


_PLAIN: Mapping[int, Json] = {
    values.BOOL: {"type": "boolean"},
    values.BYTEA: {"type": "bytes"},
    values.INT2: {"type": "int16"},
    values.INT4: {"type": "int32"},
    values.INT8: _NUMBER,
    values.OID: _NUMBER,
    values.FLOAT4: {"type": "float"},
    values.FLOAT8: {"type": "double"},
    values.DATE: _named("int32", "time.Date"),
    values.TIMESTAMPTZ: _named("string", "time.ZonedTimestamp"),
    values.TIMETZ: _named("string", "time.ZonedTime"),
    values.JSON: _named("string", "data.Json"),
    values.JSONB: _named("string", "data.Json"),
    values.UUID: _named("string", "data.Uuid"),
    values.XML: _named("string", "data.Xml"),
}


def _of(column: ColumnType) -> Json:
    if column.is_list:
        return {"type": "array", "items": {**_of(column._replace(is_list=False)), "optional": True}}
    in_ms, scale = values.is_in_ms(column.modifier), values.scale_of(column.modifier)
    if column.oid == values.TIME:
        return _named("int32", "time.Time") if in_ms else _named("int64", "time.MicroTime")
    if column.oid == values.TIMESTAMP:
        return _named("int64", "time.Timestamp" if in_ms else "time.MicroTimestamp")
    if column.oid == values.NUMERIC and scale >= 0:
        digits = {"scale": str(scale), "connect.decimal.precision": str((column.modifier - 4) >> 16)}
        name = "org.apache.kafka.connect.data.Decimal"
        return {"type": "bytes", "name": name, "version": 1, "parameters": digits}
    return _PLAIN.get(column.oid, _TEXT)


_SOURCE = dict.fromkeys(("version", "connector", "name"), _TEXT) | {"ts_ms": _NUMBER}
_SOURCE |= dict.fromkeys(("snapshot", "db", "schema", "table"), _TEXT) | {"txId": _NUMBER, "lsn": _NUMBER}
_TRANSACTION = {"id": _TEXT, "total_order": _NUMBER, "data_collection_order": _NUMBER}


def schema_text(columns: Sequence[tuple[str, ColumnType]]) -> str:
    """Of an event of a table with these columns."""
    row = [{**_of(column), "optional": True, "field": name} for name, column in columns]
    fields: list[Json] = [
        *({"type": "struct", "fields": row, "optional": True, "field": name} for name in ("before", "after")),
        _struct("source", _SOURCE),
        _struct("transaction", _TRANSACTION),
        {**_TEXT, "optional": False, "field": "op"},
        {**_NUMBER, "optional": True, "field": "ts_ms"},
    ]
    schema = {"type": "struct", "fields": fields, "optional": False}
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _struct(name: str, fields: Mapping[str, Json]) -> Json:
    within = [{**of, "optional": False, "field": one} for one, of in fields.items()]
    return {"type": "struct", "fields": within, "optional": False, "field": name}
