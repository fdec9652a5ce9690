"""A format of payloads that a package brings, and a document names: `parse: {format: NAME}`, `encode: {format: NAME}`.

    FIXED = RowFormat("Fields at fixed places", Options, fields=_fields, read=_read, write=_write, deterministic=True)

    [project.entry-points."waybill.formats"]
    fixed = "waybill_fixed:FIXED"

Rows are Arrow's, of the types that `parse.fields` gives: text is `string`, a moment `timestamp[us, tz=UTC]`. A row is
made of its own payload alone, and a payload of its own row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from connect_core.sdk.row_functions import Changed

if TYPE_CHECKING:
    import pyarrow as pa


class Payloads(NamedTuple):
    """As many as rows were given, in their order, binary. Those that are True in `rejected` have no form in the format;
    what `values` has for them does not matter."""

    values: pa.Array
    rejected: pa.BooleanArray | None = None


class NoOptions(BaseModel, extra="forbid"):
    """Of a format that has none."""


def _declared(options: Any, declared: pa.Schema | None) -> pa.Schema:
    if declared is None:
        raise ValueError("needs fields, as {id: int64}")
    return declared


def _any(options: Any, rows: pa.Schema) -> None:
    return None


@dataclass(frozen=True)
class RowFormat:
    """`read` and `write` are there where the format is read, or written; one of them has to be.

    `fields` says which fields payloads have, of those that a document declares (None: it declares none). `takes` raises
    where rows with these fields cannot be written. Both are asked by `check`, and raise ValueError with words for the
    author of the document. `read` is given binary payloads, none of them null, and makes rows of these fields. What it
    or `write` raises for a batch rejects the record of the batch for which it raises it.

    `deterministic` states that the same payload makes the same row each time, and the same row the same payload: a
    batch may be cut anywhere, and comes again after a crash. What does not state it is not used.
    """

    title: str
    options: type[BaseModel] = NoOptions
    fields: Callable[[Any, pa.Schema | None], pa.Schema] = _declared
    read: Callable[[Any, pa.Schema, pa.Array], Changed] | None = None
    takes: Callable[[Any, pa.Schema], None] = _any
    write: Callable[[Any, pa.RecordBatch], Payloads] | None = None
    deterministic: bool = False
