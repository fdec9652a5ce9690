"""Rows of the log -> events as Debezium writes them, in JSON. Pure.

A change is the same bytes whenever it is read: nothing in an event depends on when, or by whom.
https://debezium.io/documentation/reference/stable/connectors/mysql.html, "Data change events"
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from connect_core.sdk.values import Json
from connect_core.systems.mysql.binlog.columns import LoggedField
from connect_core.systems.mysql.binlog.log_events import LogEvent
from connect_core.systems.mysql.binlog.schema_changes import TableChange
from connect_core.systems.mysql.binlog.table_maps import TableMap
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.tables.change_events import Event, UnfitForEvent

Values = Sequence[bytes | None]


class Spot(NamedTuple):
    """Where a change is: file, place of its event in it, and its number there."""

    file: str
    at: int
    row: int = 0


class ChangeWriter:
    """Of one stream."""

    def __init__(self, name: str, *, schemas: bool) -> None:
        self._name, self._schemas = name, schemas
        self._heads: dict[tuple[TableName, tuple[LoggedField, ...]], str] = {}
        self._id, self._gtid, self._number, self._by_table = "", "", 0, dict[TableName, int]()

    def begins(self, transaction: str, gtid: str) -> None:
        self._id, self._gtid, self._number, self._by_table = transaction, gtid, 0, {}

    def passed(self, name: TableName) -> None:
        """A change that was delivered before is counted in its transaction all the same."""
        self._order(name)

    def change(self, table: TableMap, operation: str, images: Sequence[Values], event: LogEvent, spot: Spot) -> Event:
        """`r` is a row of a snapshot."""
        unfit: list[str] = []
        written = [_row(table, values, unfit) for values in images]
        before = "null" if operation in ("c", "r") else written[0]
        after = "null" if operation == "d" else written[-1]
        key = _key(table, images[-1])
        head = self._head(table)
        rest = self._rest(table.name, operation, event, spot)
        value = f'{head}{{"before":{before},"after":{after},{rest}}}{"}" if head else ""}'
        return Event(_topic(table.name), key, value.encode(), event.at_s * 1000, unfit[0] if unfit else "")

    def truncated(self, name: TableName, event: LogEvent, spot: Spot) -> Event:
        head = self._head(TableMap(name, (), (), ()))
        value = f"{head}{{{self._rest(name, 't', event, spot)}}}{'}' if head else ''}"
        return Event(_topic(name), None, value.encode(), event.at_s * 1000)

    def schema_changed(self, changes: Sequence[TableChange], ddl: str, event: LogEvent, spot: Spot) -> Event:
        """A statement about tables, of which there is at least one; the topic is the database of the first one."""
        name, at_ms = changes[0].table, event.at_s * 1000
        listed = ",".join(f'{{"type":"{one.does}","id":{quoted(_quoted_name(one.table))}}}' for one in changes)
        value = (
            f'{{{self._source(name, "false", event, spot)},"ts_ms":{at_ms},"databaseName":{quoted(name.database)},'
            f'"schemaName":null,"ddl":{quoted(ddl)},"tableChanges":[{listed}]}}'
        )
        if self._schemas:
            value = f'{{"schema":{_OF_SCHEMAS},"payload":{value}}}'
        return Event(name.database, name.database, value.encode(errors="replace"), at_ms)

    def unreadable(self, why: str, name: TableName | None, event: LogEvent, original: bytes) -> Event:
        """Something that is no event; `why` is told."""
        if name:
            self._order(name)
        return Event(_topic(name) if name else "", None, original, event.at_s * 1000, why)

    def _head(self, table: TableMap) -> str:
        """What is before an event in its payload: its schema, where it has one."""
        if not self._schemas:
            return ""
        described = (table.name, table.columns)
        if described not in self._heads:
            self._heads[described] = f'{{"schema":{schema_text(table)},"payload":'
        return self._heads[described]

    def _order(self, name: TableName) -> tuple[int, int]:
        self._number += 1
        within = self._by_table[name] = self._by_table.get(name, 0) + 1
        return self._number, within

    def _rest(self, name: TableName, operation: str, event: LogEvent, spot: Spot) -> str:
        number, within = self._order(name)
        snapshot = "incremental" if operation == "r" else "false"
        return (
            f"{self._source(name, snapshot, event, spot)},"
            f'"transaction":{{"id":{quoted(self._id)},"total_order":{number},'
            f'"data_collection_order":{within}}},"op":"{operation}","ts_ms":{event.at_s * 1000}'
        )

    def _source(self, name: TableName, snapshot: str, event: LogEvent, spot: Spot) -> str:
        return (
            f'"source":{{"version":"1","connector":"mysql","name":{quoted(self._name)},"ts_ms":{event.at_s * 1000},'
            f'"snapshot":"{snapshot}","db":{quoted(name.database)},"table":{quoted(name.table)},'
            f'"server_id":{event.server_id},"gtid":{quoted(self._gtid) if self._gtid else "null"},'
            f'"file":{quoted(spot.file)},"pos":{spot.at},"row":{spot.row}}}'
        )


def _quoted_name(name: TableName) -> str:
    return f'"{name.database}"."{name.table}"'


def _topic(name: TableName) -> str:
    return f"{name.database}.{name.table}"


def _row(table: TableMap, values: Values, unfit: list[str]) -> str:
    try:
        members = [
            label + ("null" if raw is None else form.to_json(raw))
            for label, form, raw in zip(table.labels, table.forms, values, strict=True)
        ]
    except UnfitForEvent:
        return _members(table, values, unfit, range(len(values)))
    return "{" + ",".join(members) + "}"


def _members(table: TableMap, values: Values, unfit: list[str], places: Iterable[int]) -> str:
    return "{" + ",".join(table.labels[one] + _value(table, one, values, unfit) for one in places) + "}"


def _value(table: TableMap, place: int, values: Values, unfit: list[str]) -> str:
    raw = values[place]
    if raw is None:
        return "null"
    try:
        return table.forms[place].to_json(raw)
    except UnfitForEvent as why:
        unfit.append(f"{quoted(table.columns[place].name)} {why}")
        return f'"{raw.hex()}"'


def _key(table: TableMap, values: Values) -> str | None:
    """Of one column its text; of several an object."""
    if not table.key:
        return None
    if len(table.key) > 1:
        return _members(table, values, [], table.key)
    text = _value(table, table.key[0], values, [])
    return str(json.loads(text)) if text.startswith('"') else text


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "int64"}
_MAYBE = {**_TEXT, "optional": True}
_SOURCE = dict.fromkeys(("version", "connector", "name"), _TEXT) | {"ts_ms": _NUMBER}
_SOURCE |= dict.fromkeys(("snapshot", "db", "table"), _TEXT) | {"server_id": _NUMBER, "gtid": _MAYBE}
_SOURCE |= {"file": _TEXT, "pos": _NUMBER, "row": {"type": "int32"}}
_TRANSACTION = {"id": _TEXT, "total_order": _NUMBER, "data_collection_order": _NUMBER}


def schema_text(table: TableMap) -> str:
    """Of an event of the table."""
    row = [
        {**form.schema, "optional": True, "field": column.name}
        for column, form in zip(table.columns, table.forms, strict=True)
    ]
    fields: list[Json] = [
        *({"type": "struct", "fields": row, "optional": True, "field": name} for name in ("before", "after")),
        _struct("source", _SOURCE),
        _struct("transaction", _TRANSACTION),
        {**_TEXT, "optional": False, "field": "op"},
        {**_NUMBER, "optional": True, "field": "ts_ms"},
    ]
    return _text_of(fields)


def _struct(name: str, fields: Mapping[str, Json]) -> Json:
    within = [{"optional": False, **of, "field": one} for one, of in fields.items()]
    return {"type": "struct", "fields": within, "optional": False, "field": name}


def _text_of(fields: list[Json]) -> str:
    schema = {"type": "struct", "fields": fields, "optional": False}
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


_CHANGED: Json = {"type": "struct", "fields": [{**_TEXT, "optional": False, "field": one} for one in ("type", "id")]}
_OF_SCHEMAS = _text_of(
    [
        _struct("source", _SOURCE),
        {**_NUMBER, "optional": True, "field": "ts_ms"},
        *({**_TEXT, "optional": True, "field": one} for one in ("databaseName", "schemaName", "ddl")),
        {"type": "array", "items": {**_CHANGED, "optional": False}, "optional": False, "field": "tableChanges"},
    ]
)
"""That of statements about tables."""
