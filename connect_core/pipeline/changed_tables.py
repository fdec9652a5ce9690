"""Of which tables the rows of change events are, beside the records: steps may write the events anew. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import pyarrow as pa

from connect_core.sdk.templates import Reference

_TABLE = "change.table"
"""A column behind those of records."""


def names_tables(names: Iterable[Reference]) -> bool:
    """Whether somebody asks for them."""
    return any(one.kind == "change" and one.name == "table" for one in names)


def with_tables(records: pa.RecordBatch) -> pa.RecordBatch:
    tables = [_table(value) for value in records.column("value").to_pylist()]
    return records.append_column(_TABLE, pa.array(tables, pa.string()))


def tables_of(records: pa.RecordBatch) -> pa.Array:
    """Null where it is not known."""
    place = records.schema.get_field_index(_TABLE)
    return records.column(place) if place >= 0 else pa.nulls(len(records), pa.string())


def without_tables(records: pa.RecordBatch) -> pa.RecordBatch:
    """As sinks have them."""
    return records.drop_columns([_TABLE]) if _TABLE in records.schema.names else records


def _table(event: bytes | None) -> str | None:
    """What `source` of an event calls it."""
    try:
        found = orjson.loads(event or b"")
        found = found["payload"] if found.keys() == {"schema", "payload"} else found
        table = found["source"]["table"]
    except (orjson.JSONDecodeError, AttributeError, LookupError, TypeError):
        return None
    return table if isinstance(table, str) and table else None
