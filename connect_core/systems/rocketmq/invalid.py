"""Rows that cannot be sent: too large, or with what RocketMQ would cut. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rocketmq.wire.batch_entries import MAX_PROPERTIES_BYTES
from connect_core.sdk.batches import without_nulls
from connect_core.systems.rocketmq.marking import FEW, MARK_BYTES
from connect_core.systems.rocketmq.own_columns import MESSAGE_ID, PACKED
from connect_core.systems.rocketmq.parcels import body_bytes, property_bytes

_SEPARATORS = "\x01\x02"
_SENT = ("key", "tags", "headers", "value", PACKED, MESSAGE_ID)
"""Columns of which bytes are sent."""
_WHO_ALLOWS = "max_message_bytes of the sink, which must not be more than maxMessageSize of its brokers"
_LEFT = f"allowed are {MAX_PROPERTIES_BYTES - MARK_BYTES}: RocketMQ's limit, less what a copy and a broker add"


def invalid_rows(records: pa.RecordBatch, most_bytes: int) -> list[tuple[int, str, str]]:
    """Rows that cannot be sent: too large, or with a key or tags that RocketMQ would cut. See `sdk.sink.Sink`."""
    if _all_fit(records, most_bytes):
        return []
    bodies, properties = body_bytes(records), property_bytes(records)
    found = [
        (int(row), "MessageTooLarge", f"The body takes {bodies[row]} bytes, allowed are {most_bytes} ({_WHO_ALLOWS})")
        for row in np.flatnonzero(bodies > most_bytes)
    ]
    too_long = properties > MAX_PROPERTIES_BYTES
    found += [
        (int(row), "PropertiesTooLarge", f"Key, tags and headers take {properties[row] - MARK_BYTES} bytes, {_LEFT}")
        for row in np.flatnonzero(too_long & (bodies <= most_bytes))
    ]
    found += _not_alone(
        records, np.flatnonzero(~too_long & (bodies + properties > most_bytes) & (bodies <= most_bytes))
    )
    return sorted([*found, *_with_separators(records, {row for row, _, _ in found})])


def _all_fit(records: pa.RecordBatch, most_bytes: int) -> bool:
    """Whether these are few, and so small that no look at each is needed: a message that comes alone would wait for
    it."""
    if len(records) > FEW:
        return False
    # Columns may share their bytes, which are counted once.
    most = len(_SENT) * records.get_total_buffer_size() + MARK_BYTES
    if most > min(most_bytes, MAX_PROPERTIES_BYTES):
        return False
    texts = [text for name in ("key", "tags") for text in records.column(name).to_pylist() if text]
    return not any(separator in text for text in texts for separator in _SEPARATORS)


def _not_alone(records: pa.RecordBatch, rows: NDArray[np.int64]) -> Iterator[tuple[int, str, str]]:
    """Those of these rows, too long for a batch, that cannot go alone: a single message's properties are text."""
    for row in rows:
        try:
            for name in {"headers", MESSAGE_ID} & {*records.schema.names}:
                (records.column(name)[row].as_py() or b"").decode()
        except UnicodeDecodeError:
            yield int(row), "IllegalProperty", "The properties are not UTF-8, and the body is too large for a batch"


def _with_separators(records: pa.RecordBatch, but: set[int]) -> Iterator[tuple[int, str, str]]:
    """Rows whose key or tags hold a separator of RocketMQ's properties, which would cut them."""
    for name in ("key", "tags"):
        column = records.column(name)
        if column.null_count == len(records):
            continue
        found = without_nulls(pc.match_substring_regex(column, f"[{_SEPARATORS}]"), False).to_numpy(False)
        for row in np.flatnonzero(found):
            if int(row) not in but:
                but.add(int(row))
                yield int(row), "IllegalProperty", f"The {name} holds a control character (1 or 2)"
