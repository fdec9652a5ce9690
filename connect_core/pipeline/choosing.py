"""Which records a filter lets pass: by tag, by the values of headers, and by a condition. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.sql import condition
from connect_core.sdk.records import decode_headers

TAGS, KEYS = "TAGS", "KEYS"
"""The names by which RocketMQ has a record's tags and its key among its properties."""


def chosen(records: pa.RecordBatch, tags: Sequence[str], headers: Mapping[str, str], sql: str = "") -> pa.Array:
    """For each row of RECORD_SCHEMA whether it has one of `tags` (any, when there are none) and all of `headers`, and
    the condition `sql` holds (always, when there is none)."""
    passes = pa.array(np.ones(len(records), dtype=np.bool_))
    if tags:
        passes = pc.and_(passes, pc.is_in(records.column("tags"), pa.array(tags, pa.string())))
    if headers:
        passes = pc.and_(passes, _with_headers(records.column("headers"), headers))
    if sql:
        passes = pc.and_(passes, _holding(records, sql))
    return passes


def _holding(records: pa.RecordBatch, sql: str) -> pa.Array:
    passes = condition(sql)
    columns = (records.column(name).to_pylist() for name in ("headers", "tags", "key"))
    return pa.array([passes(_properties(*row)) for row in zip(*columns, strict=True)], pa.bool_())


def _properties(headers: bytes | None, tags: str | None, key: str | None) -> dict[str, str]:
    """As RocketMQ has them: what is empty is not there."""
    named = {**decode_headers(headers), TAGS: tags or "", KEYS: key or ""}
    return {name: value for name, value in named.items() if value}


def _with_headers(encoded: pa.Array, headers: Mapping[str, str]) -> pa.Array:
    return pa.array([headers.items() <= decode_headers(one).items() for one in encoded.to_pylist()], pa.bool_())
