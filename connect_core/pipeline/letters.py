"""Rejected records as the ledger keeps them: what one has beside its payload, and records made of that again. Pure.

A record that is made again is the one that was read, but for what only the way into one target was: the compressed form
of its payload, and by what its source recognises it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from connect_core.sdk.batches import RECORD_SCHEMA
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
    "message_id": _Form(lambda value: value.hex(), bytes.fromhex),
    "flag": _AS_IT_IS,
}
_DEFAULTS: Json = {"operation": OPERATION_NONE}


def attributes(records: pa.RecordBatch, row: int) -> Json:
    """What the record has beside payload and topic; what is not set is left out."""
    found = {name: _plain(records.column(name)[row]) for name in _COLUMNS}
    kept = {name: _COLUMNS[name].write(one) for name, one in found.items() if one not in (None, _DEFAULTS.get(name))}
    return kept if records.column("value")[row].is_valid else {**kept, _NO_VALUE: True}


def _plain(value: pa.Scalar) -> Any:
    """Milliseconds of a time: Python knows fewer times than a message may have."""
    return value.value if isinstance(value, pa.TimestampScalar) else value.as_py()


def as_records(letters: Sequence[Letter]) -> pa.RecordBatch:
    """Of RECORD_SCHEMA; the offset of each is its number."""
    return pa.RecordBatch.from_pylist([_row(one) for one in letters], schema=RECORD_SCHEMA)


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
