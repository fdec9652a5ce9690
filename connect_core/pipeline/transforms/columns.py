"""One field of rows changed, at any depth, without a copy of the others. Pure.

Rows are a record batch here: its columns are the top-level fields. A null struct keeps its null, whatever is changed
within it, and what is below it counts as null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.transforms.paths import Path

Column: TypeAlias = tuple[pa.Field, pa.Array]
Change: TypeAlias = Callable[[pa.Field, pa.Array], Sequence[Column]]
"""A field and its values -> what comes in its place: one, or none."""
Places = tuple[int, ...]


def places_of(rows: pa.RecordBatch, path: Path) -> Places:
    """Where the field is on each level; a part that is nowhere is -1. These stay when fields get other names."""
    places: list[int] = []
    inner = pa.struct(list(rows.schema))
    for part in path:
        places.append(inner.get_field_index(part))
        if places[-1] < 0:
            break
        inner = inner.field(places[-1]).type
    return tuple(places)


def column_at(rows: pa.RecordBatch, path: Path) -> Column:
    """The field at a path, which is there: null where an object above it is."""
    place, *inner = places_of(rows, path)
    field, column = rows.schema.field(place), rows.column(place)
    for place in inner:
        field, column = field.type.field(place), child(column, place)
    return field, column


def changed(rows: pa.RecordBatch, places: Places, change: Change) -> pa.RecordBatch:
    """With the field at these places replaced by what `change` makes of it."""
    place, *inner = places
    new = _changed(rows.schema.field(place), rows.column(place), inner, change)
    if not new:
        return rows.remove_column(place)
    ((field, column),) = new
    return rows.set_column(place, field, column)


def added(rows: pa.RecordBatch, above: Places, field: pa.Field, column: pa.Array) -> pa.RecordBatch:
    """With one more field, the last of its struct."""
    if not above:
        return rows.append_column(field, column)
    return changed(rows, above, lambda of, struct: [_struct(of, struct, [*children(struct), (field, column)])])


def children(struct: pa.StructArray) -> list[Column]:
    """As they are stored: under a null of the struct anything may be."""
    return [(field, struct.field(place)) for place, field in enumerate(struct.type)]


def child(struct: pa.StructArray, place: int) -> pa.Array:
    """Null where the struct is."""
    return pc.struct_field(struct, [place]) if struct.null_count else struct.field(place)


def _changed(field: pa.Field, column: pa.Array, places: Sequence[int], change: Change) -> Sequence[Column]:
    if not places:
        return change(field, column)
    place, *inner = places
    parts = children(column)
    parts[place : place + 1] = _changed(parts[place][0], child(column, place), inner, change)
    return [_struct(field, column, parts)]


def _struct(field: pa.Field, given: pa.StructArray, parts: Sequence[Column]) -> Column:
    fields, columns = [one for one, _ in parts], [one for _, one in parts]
    mask = given.is_null() if given.null_count else None
    made = pa.StructArray.from_arrays(columns, fields=fields, mask=mask)
    return field.with_type(made.type), made
