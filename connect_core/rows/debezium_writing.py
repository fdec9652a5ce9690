"""Rows, and what happened to them -> change events as Debezium writes them in JSON. Pure.

All but the images of the row is the same text in many events. The same rows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rows.envelope_writing import compact, rows_schema, wire_rows
from connect_core.rows.json_writing import WrittenRows, written
from connect_core.sdk.records import OPERATION_DELETE, OPERATION_SNAPSHOT
from connect_core.sdk.values import Json

LETTERS = ("c", "c", "u", "d", "r")
"""By operation: what is no change is a row that is new."""


class EventWriter:
    """`source` are texts that every event has of where it comes from; `schemas`: whether each has its schema."""

    def __init__(self, source: Mapping[str, str], *, schemas: bool) -> None:
        self._source = dict(source)
        self._schemas = schemas

    def written(
        self, rows: pa.StructArray, before: pa.StructArray, operations: pa.Array, moments: pa.Array
    ) -> WrittenRows:
        """`before` is null where it is not known; `moments` are timestamps in milliseconds, null where there are none.
        Of a row that was deleted `rows` has it as it was."""
        images, unfit = self._images(rows, before, operations)
        kept = pa.array(np.delete(np.arange(len(rows)), list(unfit)))
        images_texts = written(images)
        if images_texts.unfit:
            places = kept.to_numpy()
            unfit |= {int(places[row]): why for row, why in images_texts.unfit}
            kept = pa.array(np.delete(np.arange(len(rows)), list(unfit)))
        letters = pa.array(LETTERS, pa.binary()).take(operations.take(kept))
        snapshots = pc.equal(operations.take(kept), OPERATION_SNAPSHOT)
        times = pc.fill_null(moments.take(kept).cast(pa.int64()).cast(pa.string()), "null").cast(pa.binary())
        parts = [
            self._head(rows.type),
            pc.binary_slice(images_texts.values, 1, -1),
            self._source_text(),
            times,
            b',"snapshot":"',
            pc.if_else(snapshots, b"true", b"false"),
            b'"},"op":"',
            letters,
            b'","ts_ms":',
            times,
            b"}}" if self._schemas else b"}",
        ]
        scalars = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
        return WrittenRows(pc.binary_join_element_wise(*scalars, pa.scalar(b"")), sorted(unfit.items()))

    def _images(
        self, rows: pa.StructArray, before: pa.StructArray, operations: pa.Array
    ) -> tuple[pa.StructArray, dict[int, str]]:
        deleted = pc.equal(operations, OPERATION_DELETE)
        missing = pa.scalar(None, rows.type)
        after = pc.if_else(deleted, missing, rows)
        before = pc.if_else(deleted, rows, before)
        fields = [pa.field("before", rows.type), pa.field("after", rows.type)]
        return wire_rows(pa.StructArray.from_arrays([before, after], fields=fields), "debezium")

    def _head(self, of: pa.StructType) -> bytes:
        if not self._schemas:
            return b"{"
        image = rows_schema(of, "debezium")
        text = {"type": "string", "optional": True}
        number = {"type": "int64", "optional": True}
        source = dict.fromkeys(self._source, text) | {"ts_ms": number, "snapshot": text}
        fields: list[Json] = [
            *({**image, "optional": True, "field": name} for name in ("before", "after")),
            {"type": "struct", "fields": [{**of, "field": name} for name, of in source.items()], "field": "source"},
            {"type": "string", "optional": False, "field": "op"},
            {**number, "field": "ts_ms"},
        ]
        schema = {"type": "struct", "fields": fields, "optional": False}
        return f'{{"schema":{compact(schema)},"payload":{{'.encode()

    def _source_text(self) -> bytes:
        """Up to its first moment."""
        return f',"source":{compact(dict(self._source))[:-1]},"ts_ms":'.encode()
