"""Rejected records as the ledger keeps them: what one has beside its payload, and records made of that again. Pure.

A record that is made again is the one that was read, but for what only the way into one target was: the compressed form
of its payload, and by what its source recognises it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from connect_core.sdk.batches import RECORD_SCHEMA, own_fields
from connect_core.sdk.records import OPERATION_NONE, encode_headers, header_pairs
from connect_core.sdk.values import Json
from connect_core.work import Letter

_NO_VALUE = "no_value"
"""Set where the record had no payload at all, which is not an empty one."""


class _Form(NamedTuple):
    """How a column is written in JSON, and read from there."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_AS_IT_IS = _Form(lambda value: value, lambda kept: kept)
_COLUMNS = {
    "key": _AS_IT_IS,
    "tags": _AS_IT_IS,
    "headers": _Form(lambda value: [list(pair) for pair in header_pairs(value)], encode_headers),
    "timestamp": _AS_IT_IS,
    "operation": _AS_IT_IS,
}
_HEX = "hex"
"""The key of bytes in a column of one system (`sdk.batches.own_field`): JSON says what the others are."""
_FORMER: dict[str, Callable[[Any], Json]] = {
    "message_id": lambda kept: {"rocketmq.message_id": {_HEX: kept}},
    "flag": lambda kept: {"rocketmq.flag": kept},
}
"""Of letters that were kept before such columns had the name of their system."""
_DEFAULTS: Json = {"operation": OPERATION_NONE}


def attributes(records: pa.RecordBatch, row: int) -> Json:
    """What the record has beside payload and topic; what is not set is left out."""
    found = {name: _plain(records.column(name)[row]) for name in _COLUMNS}
    kept = {name: _COLUMNS[name].write(one) for name, one in found.items() if one not in (None, _DEFAULTS.get(name))}
    for field in own_fields(records.schema, of_value=False):
        if (one := records.column(field.name)[row].as_py()) is not None:
            kept[field.name] = {_HEX: one.hex()} if isinstance(one, bytes) else one
    return kept if records.column("value")[row].is_valid else {**kept, _NO_VALUE: True}


def _plain(value: pa.Scalar) -> Any:
    """Milliseconds of a time: Python knows fewer times than a message may have."""
    return value.value if isinstance(value, pa.TimestampScalar) else value.as_py()


def as_records(letters: Sequence[Letter]) -> pa.RecordBatch:
    """Of RECORD_SCHEMA, and what they have of their system; the offset of each is its number."""
    made = pa.RecordBatch.from_pylist([_row(one) for one in letters], schema=RECORD_SCHEMA)
    of_systems = [_of_system(one.attributes or {}) for one in letters]
    for name in sorted({name for one in of_systems for name in one}):
        made = made.append_column(name, pa.array([one.get(name) for one in of_systems]))
    return made


def _of_system(kept: Json) -> Json:
    """Columns of what only one system knows."""
    for name in _FORMER.keys() & kept:
        kept = {**kept, **_FORMER[name](kept[name])}
    own = {name: value for name, value in kept.items() if "." in name}
    return {name: bytes.fromhex(one[_HEX]) if isinstance(one, dict) else one for name, one in own.items()}


def _row(letter: Letter) -> Json:
    kept = _with_added(letter)
    return {
        **_DEFAULTS,
        **{name: form.read(kept[name]) for name, form in _COLUMNS.items() if name in kept},
        "value": None if kept.get(_NO_VALUE) else letter.value,
        "topic": letter.topic,
        "offset": letter.id,
    }


def _with_added(letter: Letter) -> Json:
    """Headers of a name that is added are not its own."""
    kept = letter.attributes or {}
    if not letter.added:
        return kept
    names = {name for name, _ in letter.added}
    own = [pair for pair in kept.get("headers", []) if pair[0] not in names]
    return {**kept, "headers": [*own, *letter.added]}
