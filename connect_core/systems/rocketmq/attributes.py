"""Property strings of messages -> what a record keeps of them: one by one, and, where all look alike, a whole batch at
once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.records import COORDINATES_PROPERTY
from connect_core.rocketmq.wire.properties import BORN_TIMESTAMP, KEYS, TAGS, UNIQUE_KEY, kept_in_copies
from connect_core.systems.rocketmq.columns import FEW
from connect_core.systems.rocketmq.marking import cells_of, fixed

_NAME_END, _PAIR_END = b"\x01", b"\x02"
_KEYS, _TAGS, _MESSAGE_ID = KEYS.encode(), TAGS.encode(), UNIQUE_KEY.encode()
# What most messages carry and no header is made of: a whole batch of them is seen by one match over its joined
# properties, which takes a quarter of the time of looking at each. The second one is for copies, which also say when
# they were born.
_NAMES = rb"(?:UNIQ_KEY|WAYBILL|MSG_REGION|TRACE_ON|CLUSTER|WAIT)\x01[^\x02]*+(?:\x02|\Z)"
_TIME = rb"[0-9]{1,15}"
_NO_HEADERS = re.compile(rb"(?:\x02|" + _NAMES + rb")*+", re.DOTALL)
_TIME_ALONE = re.compile(rb"(?:\x02|" + _NAMES + rb"|BORN_TIMESTAMP\x01" + _TIME + rb"(?:\x02|\Z))*+", re.DOTALL)


class _Property(NamedTuple):
    """How to find a property whose values look so: its beginning, and the whole of it, in a string of many."""

    begin: bytes
    whole: re.Pattern[bytes]
    digits: bool = False


_ID = _Property(b"UNIQ_KEY\x01", re.compile(rb"(?:\A|\x02)UNIQ_KEY\x01([^\x02]+)", re.DOTALL))
_BORN = _Property(
    b"BORN_TIMESTAMP\x01", re.compile(rb"(?:\A|\x02)BORN_TIMESTAMP\x01(" + _TIME + rb")(?:\x02|\Z)"), digits=True
)


class Attributes(NamedTuple):
    """What a record keeps of a message's properties. `headers` are in the form of `records.encode_headers`; `born_ms`
    is what the property says."""

    key: str | None
    tags: str | None
    headers: bytes | None
    message_id: bytes | None
    born_ms: int | None


def attributes(properties: bytes) -> Attributes:
    """Raises UnicodeDecodeError when a key, a tag or a name is not UTF-8."""
    key = tags = message_id = born_ms = None
    kept: list[bytes] = []
    for pair in properties.split(_PAIR_END):
        name, _, value = pair.partition(_NAME_END)
        if not name or not value:
            continue
        if name == _KEYS:
            key = value.decode()
        elif name == _TAGS:
            tags = value.decode()
        elif name == _MESSAGE_ID:
            message_id = message_id or value
        elif (text := name.decode()) == BORN_TIMESTAMP and re.fullmatch(_TIME, value):
            born_ms = int(value) if born_ms is None else born_ms
        elif text != COORDINATES_PROPERTY and kept_in_copies(text):
            kept.append(pair)
    return Attributes(key, tags, _PAIR_END.join(kept) + _PAIR_END if kept else None, message_id, born_ms)


class AttributeColumns(NamedTuple):
    """Nulls where a row has none. `born_ms` is None when that is nowhere, `message_id` when nobody has looked yet."""

    key: pa.Array
    tags: pa.Array
    headers: pa.Array
    born_ms: pa.Array | None
    message_id: pa.Array | None = None


def attribute_columns(properties: pa.Array) -> AttributeColumns:
    """Of a batch that is not empty. Raises UnicodeDecodeError as `attributes` does."""
    count = len(properties)
    if count > FEW:
        joined = _joined(properties)
        nothing = pa.nulls(count, pa.string()), pa.nulls(count, pa.string()), pa.nulls(count, pa.binary())
        if _NO_HEADERS.fullmatch(joined):
            return AttributeColumns(*nothing, None)
        if _TIME_ALONE.fullmatch(joined):
            return AttributeColumns(*nothing, _first_values(properties, _BORN).cast(pa.string()).cast(pa.int64()))
    keys, tags, headers, ids, times = zip(*map(attributes, properties.to_pylist()), strict=True)
    kept = _optional(keys, pa.string()), _optional(tags, pa.string()), _optional(headers, pa.binary())
    said = pa.array(times, pa.int64()) if times.count(None) < count else None
    return AttributeColumns(*kept, said, _optional(ids, pa.binary()))


def message_ids(properties: pa.Array) -> pa.Array:
    """The first UNIQ_KEY of each row, null where there is none. Brokers up to 5.3.3 append that of a Java producer's
    batch to each of its messages: the first one is the message's own."""
    return _first_values(properties, _ID)


def _first_values(properties: pa.Array, wanted: _Property) -> pa.Array:
    found = _in_one_place(properties, wanted)
    if found is not None:
        return found
    matches = (wanted.whole.search(text) for text in properties.to_pylist())
    return pa.array([match and match[1] for match in matches], pa.binary())


def _in_one_place(properties: pa.Array, wanted: _Property) -> pa.Array | None:
    """The values when all strings are equally long and have the property at the same place, as those of one producer
    mostly do; else None."""
    cells = cells_of(properties)
    match = wanted.whole.search(cells[0].tobytes()) if cells is not None else None
    if cells is None or match is None:
        return None
    begin, end = match.span(1)
    values = np.ascontiguousarray(cells[:, begin:end])
    around = cells[:, match.start() : begin], cells[:, end : end + 1]
    if any((one != one[0]).any() for one in around) or wanted.begin in cells[:, : match.start()].tobytes():
        return None
    wrong = (values < ord("0")) | (values > ord("9")) if wanted.digits else values == _PAIR_END[0]
    return None if wrong.any() else fixed(values)


def _joined(properties: pa.Array) -> memoryview:
    """All property strings with a separator between them: the last pair of a string may have none."""
    everything = pa.ListArray.from_arrays(pa.array([0, len(properties)], pa.int32()), properties)
    joined: memoryview = memoryview(pc.binary_join(everything, _PAIR_END)[0].as_buffer())
    return joined


def _optional(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, type=kind) if any(values) else pa.nulls(len(values), kind)
