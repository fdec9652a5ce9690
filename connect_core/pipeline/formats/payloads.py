"""Records with other payloads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.sdk.batches import own_fields

Rows = TypeVar("Rows", pa.RecordBatch, pa.StructArray)


def with_values(records: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
    """Other payloads, of which there is no other form yet (`sdk.batches.own_field`)."""
    other_forms = own_fields(records.schema, of_value=True)
    changed = {"value": values, **{one.name: pa.nulls(len(records), one.type) for one in other_forms}}
    columns = [changed.get(name, column) for name, column in zip(records.schema.names, records.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=records.schema)


def with_column(records: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    place = records.schema.get_field_index(name)
    return records.set_column(place, records.schema.field(place), values)


def only(rows: pa.StructArray, names: Iterable[str]) -> pa.StructArray:
    """Those of these fields that there are."""
    fields = [rows.type.field(name) for name in names if rows.type.get_field_index(name) >= 0]
    return pa.StructArray.from_arrays([rows.field(one.name) for one in fields], fields=fields)


def without(records: pa.RecordBatch, gone: Sequence[int]) -> pa.RecordBatch:
    """The other rows."""
    return taken(records, others(len(records), gone))


def taken(records: Rows, places: NDArray[np.int64]) -> Rows:
    """Of a batch, or of rows, those at these places."""
    return records if len(places) == len(records) else records.take(pa.array(places))


def others(rows: int, gone: Sequence[int]) -> NDArray[np.int64]:
    """Of so many rows the places of those that are not gone, ascending."""
    stays = np.ones(rows, dtype=np.bool_)
    stays[list(gone)] = False
    return np.flatnonzero(stays)
