"""The outputs of a batch by the table that they go to, each with the fields that its table takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.sdk.batches import BEFORE, ROW
from connect_core.systems.tables.keyless import without_key


class TableShape(NamedTuple):
    """What a table takes of records, and which columns tell its rows apart, as a document says it."""

    fields: Sequence[str]
    key: Sequence[str]


class TablePart(NamedTuple):
    """Of a batch what goes to one table: where it is among all rows, in order, and with the fields of the table."""

    table: str
    rows: NDArray[np.int64]
    records: pa.RecordBatch


class Routing:
    """`shapes` are the tables by whole name (`TableSinkOptions.whole_name`), first the one of outputs for which no rule
    names one."""

    def __init__(self, shapes: Mapping[str, TableShape], whole_name: Callable[[str], str]) -> None:
        self._shapes, self._whole_name = shapes, whole_name
        self._names = [*shapes]

    def parts(self, records: pa.RecordBatch) -> list[TablePart]:
        """In the order in which the tables first appear: what comes first at the source is there first, as foreign keys
        want it."""
        return [
            TablePart(table, rows, _with_fields(part, self._shapes[table].fields))
            for table, rows, part in self._split(records)
        ]

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        """As a sink says it."""
        found = [
            (int(rows[row]), kind, why)
            for table, rows, part in self._split(records)
            for row, kind, why in without_key(part, self._shapes[table].key)
        ]
        return sorted(found)

    def _split(self, records: pa.RecordBatch) -> list[TablePart]:
        named = records.column("to")
        if len(self._shapes) == 1 or named.null_count == len(named):
            return [TablePart(self._names[0], np.arange(len(records)), records)] if len(records) else []
        texts = pc.unique(named)
        numbers = np.array([self._number(text) for text in texts.to_pylist()])
        tables = numbers[pc.index_in(named, texts).to_numpy()]
        found = {number: np.flatnonzero(tables == number) for number in numbers.tolist()}
        return [TablePart(self._names[number], rows, records.take(pa.array(rows))) for number, rows in found.items()]

    def _number(self, table: str | None) -> int:
        return 0 if table is None else self._names.index(self._whole_name(table))


def _with_fields(records: pa.RecordBatch, fields: Sequence[str]) -> pa.RecordBatch:
    for name in (ROW, BEFORE):
        place = records.schema.get_field_index(name)
        if place >= 0 and [one.name for one in records.column(place).type] != list(fields):
            records = records.set_column(place, name, _chosen(records.column(place), fields))
    return records


def _chosen(rows: pa.StructArray, fields: Sequence[str]) -> pa.StructArray:
    places = [rows.type.get_field_index(name) for name in fields]
    columns = rows.flatten()
    chosen, types = [columns[place] for place in places], [rows.type.field(place) for place in places]
    return pa.StructArray.from_arrays(chosen, fields=types, mask=rows.is_null() if rows.null_count else None)
