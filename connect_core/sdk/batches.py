"""Records in columns: their schema, batches of them, and what is asked of a column everywhere.

Apart from `records`, because most commands move nothing: Arrow and NumPy take longer to load than such a command works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.sdk.records import OPERATION_NONE, Record, encode_headers

if TYPE_CHECKING:
    from connect_core.sdk.plugin import TypedRecord

RECORD_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("key", pa.string()),
        pa.field("tags", pa.string()),
        pa.field("value", pa.binary()),
        # User properties in one encoded column (`encode_headers`): a map column costs four times as much.
        pa.field("headers", pa.binary()),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("operation", pa.int8(), nullable=False),
        # By what a source that pushes recognises this record when it is sent again: above zero, and nobody else's to
        # read. It travels with the coordinates, so that `scan` gives it back.
        pa.field("trace", pa.int64()),
        # Of what rules made of a record: the target's topic that a rule names (null: where the sink's options say),
        # which of the record's outputs it is, from 0 (null: 0), and how many it has in all (null: 1). The outputs of
        # one record are rows behind each other with the same offset.
        pa.field("to", pa.string()),
        pa.field("ordinal", pa.int32()),
        pa.field("outputs", pa.int32()),
    ]
)

_OF_THE_VALUE = {b"form of": b"value"}
"""Metadata of a column with another form of the payload."""


def own_field(system: str, name: str, kind: pa.DataType, *, of_value: bool = False) -> pa.Field:
    """A column of what only this system knows, behind those of RECORD_SCHEMA. A source gives it where it is told that
    its sink is of the same system; everybody else hands it on. `of_value`: it holds another form of the payload, and is
    emptied where the payload is changed."""
    return pa.field(f"{system}.{name}", kind, metadata=_OF_THE_VALUE if of_value else None)


def own_fields(schema: pa.Schema, *, of_value: bool) -> list[pa.Field]:
    """Those of the columns that `own_field` has made."""
    own = (field for field in schema if "." in field.name)
    return [field for field in own if (field.metadata == _OF_THE_VALUE) is of_value]


ROW, BEFORE = "row", "before"
"""Two more columns, behind these, of records whose fields have types: a struct of the fields; and of changes the row as
it was before, null where that is not known. A sink is given both where it takes rows (`sdk.sink.TakesRows`)."""


def ordinals(records: pa.RecordBatch) -> NDArray[np.int64] | None:
    """Of each row; None where all are 0, as in most batches."""
    return _filled(records.column("ordinal"), 0)


def outputs(records: pa.RecordBatch) -> NDArray[np.int64] | None:
    """How many each row's input has; None where all have one."""
    return _filled(records.column("outputs"), 1)


def _filled(column: pa.Array, default: int) -> NDArray[np.int64] | None:
    if column.null_count == len(column):
        return None
    numbers: NDArray[np.int64] = without_nulls(column, default).to_numpy().astype(np.int64)
    return numbers if (numbers != default).any() else None


def without_nulls(column: pa.Array, instead: int | str | bytes) -> pa.Array:
    """The column itself where it has none: of a single record a call into Arrow takes as long as all the rest."""
    return pc.fill_null(column, instead) if column.null_count else column


def value_lengths(column: pa.Array) -> NDArray[np.int64]:
    """Bytes of each value of a binary or string column, 0 of nulls."""
    column = without_nulls(column, b"" if pa.types.is_binary(column.type) else "")
    if not len(column):  # then there need not be a buffer
        return np.zeros(0, np.int64)
    places = np.frombuffer(column.buffers()[1], dtype=np.int32)
    return np.diff(places[column.offset : column.offset + len(column) + 1]).astype(np.int64)


def whole_records(offsets: NDArray[np.int64], rows: int) -> int:
    """The first of the places at or behind `rows` at which no record is left with some of its outputs before it."""
    return int(np.searchsorted(offsets, offsets[rows - 1], side="right")) if 0 < rows < len(offsets) else rows


def batch_of_columns(given: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Of RECORD_SCHEMA: what is not given is null in every row."""
    columns = [given[one.name] if one.name in given else pa.nulls(rows, one.type) for one in RECORD_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


def record_batch(
    records: Sequence[Record], offsets: Sequence[int], traces: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Records of RECORD_SCHEMA, with an offset each; `traces` are those of a source that pushes."""
    given: dict[str, Sequence[object]] = {
        "topic": [one.topic for one in records],
        "value": [one.value for one in records],
        "key": [one.key for one in records],
        "headers": [encode_headers(one.headers) if one.headers else None for one in records],
        "timestamp": [one.timestamp for one in records],
        "offset": offsets,
        "operation": [OPERATION_NONE] * len(records),
        **({} if traces is None else {"trace": traces}),
    }
    columns = [pa.array(given.get(field.name, [None] * len(records)), field.type) for field in RECORD_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


def typed_batch(record: TypedRecord) -> pa.RecordBatch:
    """Of one record that a person has written, at offset 0."""
    row = record._asdict() | {"headers": encode_headers(record.headers), "offset": 0, "operation": OPERATION_NONE}
    return pa.RecordBatch.from_pylist([row], schema=RECORD_SCHEMA)


def empty_records(schema: pa.Schema = RECORD_SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
