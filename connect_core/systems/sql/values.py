"""Rows -> values of a statement, column by column, in the form in which the column keeps them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rows.json_writing import decimal_texts, json_texts, moment_texts
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.sql.catalog import SqlColumn


def values_of(field: pa.Field, values: pa.Array, column: SqlColumn) -> list[Any]:
    """Raises RowsRefused for a value that the database would change, and say nothing."""
    if column.required and values.null_count:
        raise RowsRefused("NullRefused", f"Column {column.name} takes no NULL")
    if pa.types.is_floating(field.type):
        _check_floats(values, column)
    return (_of_file if column.of_file else _of_server)(field, values)


def tuples(columns: Sequence[list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True))


def _check_floats(values: pa.Array, column: SqlColumn) -> None:
    unfit = pc.is_nan(values) if column.of_file else pc.invert(pc.is_finite(values))
    if pc.any(unfit, min_count=0).as_py():
        words = "has no NaN" if column.of_file else "has neither NaN nor infinity"
        raise RowsRefused("OutOfRange", f"Column {column.name} {words}")


def _of_file(field: pa.Field, values: pa.Array) -> list[Any]:
    """SQLite has whole and floating numbers, texts and bytes; days and times are texts as SQLAlchemy writes them there,
    moments in UTC."""
    of = field.type
    if pa.types.is_nested(of):
        return _list(json_texts(values, field))
    if pa.types.is_boolean(of):
        return _list(values.cast(pa.int8()))
    if pa.types.is_decimal(of):
        return _list(decimal_texts(values))
    if pa.types.is_timestamp(of):
        texts = moment_texts(values.cast(pa.timestamp("us", of.tz)))
        return _list(pc.replace_substring(texts, "T", " "))
    if pa.types.is_time(of):
        return _list(values.cast(pa.time64("us")).cast(pa.string()))
    return _list(values.cast(pa.string()) if pa.types.is_date(of) else values)


def _of_server(field: pa.Field, values: pa.Array) -> list[Any]:
    return _list(values)


def _list(values: pa.Array) -> list[Any]:
    found: list[Any] = values.to_pylist()
    return found
