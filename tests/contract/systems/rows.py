"""Rows for the suite of sinks, which brings records without fields: of each its key and its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from connect_core.sdk.batches import ROW


def of_rows(connect: Callable[[], Any], key: str, value: str) -> Callable[[], Any]:
    """A sink's `connect`, whose connections write these two fields."""

    @contextmanager
    def connecting() -> Iterator[Any]:
        with connect() as connection:
            write = connection.write
            connection.write = lambda records: write(_with_fields(records, key, value))
            yield connection

    return connecting


def _with_fields(records: pa.RecordBatch, key: str, value: str) -> pa.RecordBatch:
    columns = [records.column("key"), records.column("value")]
    return records.append_column(ROW, pa.StructArray.from_arrays(columns, [key, value]))
