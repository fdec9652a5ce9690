"""Property strings of messages -> what a record keeps of them: one by one, and, where all have the same layout, a whole
batch at once.

Of two UNIQ_KEYs the first counts: brokers up to 5.3.3 append that of a Java producer's batch to each of its messages;
the first one is the message's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from connect_core.rocketmq.wire.properties import BORN_TIMESTAMP, KEYS, TAGS, UNIQUE_KEY, kept_in_copies
from connect_core.sdk.records import COORDINATES_PROPERTY
from connect_core.systems.rocketmq.columns import FEW
from connect_core.systems.rocketmq.layouts import Layout, layout_of

_NAME_END, _PAIR_END = b"\x01", b"\x02"
_KEYS, _TAGS, _MESSAGE_ID = KEYS.encode(), TAGS.encode(), UNIQUE_KEY.encode()
_OWN_COLUMNS = {KEYS: "key", TAGS: "tags", UNIQUE_KEY: "message_id", BORN_TIMESTAMP: "born_ms"}
_FIRST_WINS = ("message_id", "born_ms")
_KINDS = {"key": pa.string(), "tags": pa.string(), "headers": pa.binary(), "message_id": pa.binary()}
_TIME = re.compile(rb"[0-9]{1,15}")


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
        elif (text := name.decode()) == BORN_TIMESTAMP and _TIME.fullmatch(value):
            born_ms = int(value) if born_ms is None else born_ms
        elif text != COORDINATES_PROPERTY and kept_in_copies(text):
            kept.append(pair)
    return Attributes(key, tags, _PAIR_END.join(kept) + _PAIR_END if kept else None, message_id, born_ms)


class AttributeColumns(NamedTuple):
    """Nulls where a row has none. `born_ms` is None when that is nowhere."""

    key: pa.Array
    tags: pa.Array
    headers: pa.Array
    message_id: pa.Array
    born_ms: pa.Array | None


def attribute_columns(properties: pa.Array) -> AttributeColumns:
    """Of a batch that is not empty. Raises UnicodeDecodeError as `attributes` does."""
    layout = layout_of(properties) if len(properties) > FEW else None
    columns = _of_layout(layout, len(properties)) if layout is not None else None
    return columns if columns is not None else _one_by_one(properties)


def _of_layout(layout: Layout, count: int) -> AttributeColumns | None:
    """The same as `attributes` of each; None when that has to say what is wrong, or a time looks like none."""
    found: dict[str, pa.Array] = {}
    kept: list[int] = []
    for column, name in enumerate(layout.names):
        if (text := name.decode()) in _OWN_COLUMNS:
            own = _OWN_COLUMNS[text]
            if own in _FIRST_WINS and own in found:
                continue
            found[own] = layout.value(column)
        elif text != COORDINATES_PROPERTY and kept_in_copies(text):
            kept.append(column)
    if kept:
        found["headers"] = layout.pairs(kept)
    return _typed(found, count)


def _typed(found: Mapping[str, pa.Array], count: int) -> AttributeColumns | None:
    born = found.get("born_ms")
    if born is not None and not all(map(_TIME.fullmatch, born.to_pylist())):
        return None
    try:
        arrays = {
            name: found[name].cast(kind) if name in found else pa.nulls(count, kind) for name, kind in _KINDS.items()
        }
        return AttributeColumns(**arrays, born_ms=None if born is None else born.cast(pa.string()).cast(pa.int64()))
    except pa.ArrowInvalid:
        return None


def _one_by_one(properties: pa.Array) -> AttributeColumns:
    rows = zip(*map(attributes, properties.to_pylist()), strict=True)
    found = dict(zip(Attributes._fields, rows, strict=True))
    times = found["born_ms"]
    said = pa.array(times, pa.int64()) if times.count(None) < len(times) else None
    return AttributeColumns(**{name: _optional(found[name], kind) for name, kind in _KINDS.items()}, born_ms=said)


def _optional(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, type=kind) if any(values) else pa.nulls(len(values), kind)
