"""Errors that nobody expected, where a record is read, shaped or checked (delivery rule 26).

What the pipeline, or the check of a target, raises for a batch is raised by one of its records: the batch is halved
until it stands alone, and it is rejected while the others pass. Messages name the class and the place in the code,
never the text of such an error: that may quote the record.
"""

from __future__ import annotations

import pyarrow as pa

from connect_core.errors import Failure, WaybillError
from connect_core.pipeline.rejecting import reject_row
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.sdk.sink import Sink

Unfit = tuple[int, str, str]


def shape(pipeline: Pipeline, records: pa.RecordBatch) -> Shaped:
    """What the pipeline makes of the records; those that it raises something for are rejected."""
    try:
        return pipeline.shape(records)
    except Exception as error:
        if _is_of_one_row(error, records):
            rejected = reject_row(
                records, 0, "shape", type(error).__name__, Failure.unexpected(error, "shaping it").what
            )
            return Shaped(records.slice(0, 0), 1, (rejected,))
    half = len(records) // 2
    first = shape(pipeline, records.slice(0, half))
    return first if first.rows < half else _joined(first, shape(pipeline, records.slice(half)))


def invalid_rows_of(sink: Sink, records: pa.RecordBatch) -> list[Unfit]:
    """The rows that the target can never take, and those of which its check raises something."""
    if not len(records):
        return []  # nothing was shaped, so fields that are made are not among the columns
    try:
        return list(sink.invalid_rows(records))
    except Exception as error:
        if _is_of_one_row(error, records):
            return [(0, type(error).__name__, Failure.unexpected(error, "checking it").what)]
    half = len(records) // 2
    behind = [(row + half, kind, message) for row, kind, message in invalid_rows_of(sink, records.slice(half))]
    return [*invalid_rows_of(sink, records.slice(0, half)), *behind]


def _is_of_one_row(error: Exception, records: pa.RecordBatch) -> bool:
    """False where the batch has to be halved. Raises the error when it is not that of a record: a schema registry that
    is away, a statement that takes too long."""
    if isinstance(error, MemoryError | WaybillError) or not len(records):
        raise error
    return len(records) == 1


def _joined(first: Shaped, second: Shaped) -> Shaped:
    kept = [one.kept for one in (first, second) if len(one.kept)]
    return Shaped(
        pa.concat_batches(kept) if len(kept) == 2 else (kept or [first.kept])[0],
        first.rows + second.rows,
        (*first.rejected, *second.rejected),
        (*first.filtered, *second.filtered),
        second.needs,
    )
