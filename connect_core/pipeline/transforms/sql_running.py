"""Rows through a statement of a `sql` step. Pure but for DuckDB.

DuckDB is asked for one row of each row, with its number, and leaves none out: what a condition leaves out is marked
here, as other filters do. So whatever it does, a row that is made belongs to the record that it was made of.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.errors import Fatal
from connect_core.pipeline.fields import Flags
from connect_core.pipeline.transforms import sql_engine
from connect_core.pipeline.transforms.columns import Column, child, column_at
from connect_core.pipeline.transforms.row_fields import RowFields
from connect_core.pipeline.transforms.sql_engine import answered
from connect_core.pipeline.transforms.sql_planning import ROW, Plan, plan
from connect_core.pipeline.transforms.sql_step import SqlRows
from connect_core.pipeline.transforms.too_slow import StatementTooSlow
from connect_core.pipeline.transforms.working import Work
from connect_core.rows.moments import rows_beyond_sql, textless_rows
from connect_core.rows.schema import arrow_field, shape_of
from connect_core.sdk.templates import Reference

_FAILED = "for this record: a cast, a number out of its range, or a function fails"
_NO_MOMENT = "is, or holds, infinity, a year beyond 0 to 9999, or a time beyond its day"
_INFINITE = "is, or holds, a moment that SQL has none for: its largest are infinity there"


def run_sql(step: SqlRows, work: Work) -> None:
    wanted = plan(step.text, shape_of(work.rows.schema))
    _reject_infinite(wanted, work)
    if wanted.condition:
        [(holds, failed)] = _asked(wanted.condition, wanted, work.fields)
        work.reject(failed, f"sql: WHERE is neither true nor false {_FAILED}")
        work.alive &= pc.fill_null(holds, False).to_numpy(zero_copy_only=False)
        work.compact(half=False)
    computed = list(_asked(wanted.computed, wanted, work.fields)) if wanted.computed else []
    columns: list[Column] = []
    for (name, kind), one in zip(wanted.rows.fields, wanted.outputs, strict=True):
        if isinstance(one, int):
            values, failed = computed[one]
            work.reject(failed, f"sql: {name} has no value {_FAILED}")
            field = arrow_field(name, kind)
            column = values.cast(field.type)
            work.reject(textless_rows(field, column), f"sql: {name} {_NO_MOMENT}")
            columns.append((field, column))
        else:
            field, column = column_at(work.rows, one)
            columns.append((field.with_name(name), column))
    schema = pa.schema([field for field, _ in columns])
    work.rows = pa.RecordBatch.from_arrays([column for _, column in columns], schema=schema)


def _reject_infinite(wanted: Plan, work: Work) -> None:
    """DuckDB is never given them: it would say what holds for infinity, and fail for whole batches of others."""
    for name in wanted.fields.values():
        work.reject(rows_beyond_sql(*column_at(work.rows, (name,))), f"sql: {name} {_INFINITE}")
    work.compact(half=False)


def _asked(statement: str, wanted: Plan, fields: RowFields) -> Iterator[tuple[pa.Array, Flags]]:
    """Of each expression the values, and which of them failed."""
    numbers = np.arange(len(fields))
    columns = {
        ROW: pa.array(numbers),
        **{column: fields.rows.column(name) for column, name in wanted.fields.items()},
        **{column: _texts(fields, one) for column, one in wanted.references.items()},
    }
    found = _in_time(statement, pa.RecordBatch.from_arrays(list(columns.values()), list(columns)), fields.records)
    row, *structs = found.columns
    if not np.array_equal(row.to_numpy(), numbers):
        raise Fatal(
            "A statement of a sql step gave other rows than it was given",
            next_step="Nothing of them was delivered. Report this, with the statement",
        )
    for struct in structs:
        whole = struct.combine_chunks()
        yield child(whole, 0), whole.is_null().to_numpy(zero_copy_only=False)


def _in_time(statement: str, rows: pa.RecordBatch, records: pa.RecordBatch) -> pa.Table:
    """Raises StatementTooSlow. `records` are those that the rows are of."""
    offsets = np.unique(records.column("offset").to_numpy())
    alone = len(offsets) == 1
    limit_s = sql_engine.LIMIT_S if alone else sql_engine.SHARED_LIMIT_S
    try:
        return answered(statement, rows, limit_s)
    except TimeoutError:
        of = "one record" if alone else f"{len(offsets)} records"
        raise StatementTooSlow(
            f"The statement of a sql step takes more than {limit_s:g} s of wall time for {of}",
            offset=int(offsets[0]) if alone else None,
            next_step="Make the statement simpler" + ("" if alone else ", or try fewer records at once"),
        ) from None


def _texts(fields: RowFields, wanted: Reference) -> pa.Array:
    """Null for what a record does not have."""
    found = fields.column(wanted)
    return pc.if_else(pa.array(found.missing), pa.scalar(None, pa.string()), found.written)
