"""A function of records with fields, which a package brings and a document names: `transforms: [{python: NAME}]`.

    IBAN = RowFunction(_fields, _rows, deterministic=True)

    [project.entry-points."waybill.transforms"]
    iban = "waybill_iban:IBAN"

Rows are Arrow's, of the types that `parse.fields` gives: text is `string`, a moment `timestamp[us, tz=UTC]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class Changed(NamedTuple):
    """As many rows as were given, in their order. Those that are True in `rejected` are rejected, each with the payload
    that it came with; what `rows` has for them does not matter."""

    rows: pa.RecordBatch
    rejected: pa.BooleanArray | None = None


@dataclass(frozen=True)
class RowFunction:
    """`fields` says which fields rows have behind it, of those before it; `check` asks. It raises ValueError, with
    words for the author of the document, where it cannot work with these. `rows` makes them. What it raises for a batch
    rejects the record of the batch for which it raises it.

    `deterministic` states that a row is made of its own fields alone, and always the same: a batch may be cut anywhere,
    and comes again after a crash. What does not state it is not used.
    """

    fields: Callable[[pa.Schema], pa.Schema]
    rows: Callable[[pa.RecordBatch], Changed]
    deterministic: bool
