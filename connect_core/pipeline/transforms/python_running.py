"""Rows through a function that a package brings, which is held to what it says. Pure, if that function is."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.errors import ContractBroken
from connect_core.packages import FUNCTIONS
from connect_core.pipeline.transforms.python_functions import function, schema_of, shape_behind
from connect_core.pipeline.transforms.python_step import PythonRows
from connect_core.pipeline.transforms.working import Work
from connect_core.rows.moments import rows_of_no_time
from connect_core.rows.schema import shape_of
from connect_core.sdk.row_functions import Changed


def run_python(step: PythonRows, work: Work) -> None:
    work.compact(half=False)
    wanted = schema_of(shape_behind(step.name, shape_of(work.rows.schema)))
    made = function(step.name).rows(work.rows)
    _check(step.name, made, wanted, len(work.rows))
    if made.rejected is not None:
        rejected = pc.fill_null(made.rejected, False).to_numpy(zero_copy_only=False)
        work.reject(rejected, f"python: {step.name} rejects it")
    for field, column in zip(wanted, made.rows.columns, strict=True):
        work.reject(rows_of_no_time(field, column), f"python: {step.name} gives a time beyond its day in {field.name}")
    work.rows = pa.RecordBatch.from_arrays(made.rows.columns, schema=wanted)


def _check(name: str, made: object, wanted: pa.Schema, rows: int) -> None:
    """Raises ContractBroken."""
    if not isinstance(made, Changed):
        what = f"gave {type(made).__name__}, not Changed"
    elif len(made.rows) != rows or (made.rejected is not None and len(made.rejected) != rows):
        what = f"gave {len(made.rows)} rows of {rows}"
    elif not made.rows.schema.equals(wanted):
        what = "gave other fields than it says"
    else:
        return
    raise ContractBroken(
        f"The function {name} {what}",
        where=f"entry point {name} of {FUNCTIONS}",
        next_step="Nothing of the batch was delivered. Its package is to be mended",
    )
