"""Rows -> lines of CSV, as RFC 4180 quotes them, column by column. Pure."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.transforms.texts import json_texts
from connect_core.rows.json_unwritable import unwritable
from connect_core.rows.json_writing import WrittenRows

_EMPTY = '""'


class CsvWriter:
    """`columns`: which fields are written, in this order; none: all of them. What is missing is an empty cell, and an
    empty text a quoted one."""

    def __init__(self, columns: tuple[str, ...], delimiter: str) -> None:
        self._columns, self._delimiter = columns, delimiter
        self._special = f'["\\r\\n{re.escape(delimiter)}]'

    def written(self, rows: pa.StructArray) -> WrittenRows:
        names = self._columns or [field.name for field in rows.type]
        parts = dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))
        fields = [rows.type.field(name) for name in names]
        rows = pa.StructArray.from_arrays([parts[name] for name in names], fields=fields)
        if unfit := unwritable(rows):
            rows = rows.take(pa.array(np.delete(np.arange(len(rows)), list(unfit))))
        cells = [self._cells(field, column) for field, column in zip(fields, rows.flatten(), strict=True)]
        if len(cells) == 1:  # an empty line would be no record
            cells = [pc.if_else(pc.equal(cells[0], ""), _EMPTY, cells[0])]
        lines = pc.binary_join_element_wise(*cells, self._delimiter)
        return WrittenRows(lines.cast(pa.binary()), sorted(unfit.items()))

    def _cells(self, field: pa.Field, column: pa.Array) -> pa.Array:
        texts = json_texts(field, column)
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
        quotes = pc.or_(pc.equal(texts, ""), pc.match_substring_regex(texts, self._special))
        return pc.fill_null(pc.if_else(quotes, quoted, texts), "")
