"""Values that say by which schema they were written -> rows, whatever the schemas are. Pure.

What is decoded at once has a limit: as objects of Python values are many times as big as their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from connect_core.rows.json_reading import Read
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type

LONGEST = 4 << 20
"""Bytes of a value."""
PART = 1 << 20
"""Bytes of values that are decoded at once, or fewer that hold so many others (`VALUES`), and one more."""
VALUES = 1_000_000
"""So many others may be in one value, whatever few bytes say so."""
SCHEMAS = 1000
"""So many are remembered."""

Key = TypeVar("Key", bound=Hashable)
Known = TypeVar("Known")


class NotOfSchema(ValueError):
    """Why bytes are no value of their schema, without a word of what is there."""


class SchemaFormat(NamedTuple, Generic[Known]):
    """How values of a format are read, each by its schema."""

    name: str
    split: Callable[[bytes | None], Any]
    """What says the schema, and the rest; or why there is none."""
    known: Callable[[Any], Known | str]
    """How values of a schema are read, or why not."""
    decode: Callable[[Known, bytes], tuple[Any, int]]
    """A value, and how many others it holds. Raises NotOfSchema."""
    rows: Callable[[Known, list[Any]], tuple[pa.StructArray, dict[int, str]]]
    """Of decoded values; those that fit, and by their places why others do not."""


def read_by_schema(values: pa.Array, rows: Type, form: SchemaFormat[Known]) -> Read:
    """Each value is a row or has a reason."""
    unfit: dict[int, str] = {}
    by_key: dict[Any, tuple[list[int], list[bytes]]] = {}
    for row, value in enumerate(values.to_pylist()):
        framed = form.split(value)
        if isinstance(framed, str) or len(framed[1]) > LONGEST:
            unfit[row] = framed if isinstance(framed, str) else f"longer than {LONGEST >> 20} MiB"
            continue
        places, payloads = by_key.setdefault(framed[0], ([], []))
        places.append(row)
        payloads.append(framed[1])
    found: list[tuple[list[int], pa.StructArray]] = []
    for key, (places, payloads) in by_key.items():
        one = form.known(key)
        if isinstance(one, str):
            unfit |= dict.fromkeys(places, one)
            continue
        begin = 0
        while begin < len(payloads):
            made, gone, end = _read_part(form, one, payloads, begin)
            unfit |= {places[at]: reason for at, reason in gone.items()}
            found.append(([places[at] for at in range(begin, end) if at not in gone], made))
            begin = end
    every = pa.concat_arrays([part for _, part in found] or [pa.array([], arrow_type(rows))])
    order = np.argsort(np.array([row for places, _ in found for row in places], np.int64))
    in_order = bool((np.diff(order) == 1).all())
    return Read(every if in_order else every.take(pa.array(order)), sorted(unfit.items()))


def _read_part(
    form: SchemaFormat[Known], known: Known, payloads: list[bytes], begin: int
) -> tuple[pa.StructArray, dict[int, str], int]:
    """As many as are decoded at once, why others are no rows, and where they end."""
    unfit: dict[int, str] = {}
    decoded: list[Any] = []
    places: list[int] = []
    size = values = 0
    end = begin
    while end < len(payloads) and size < PART and values < VALUES:
        payload, at = payloads[end], end
        size, end = size + len(payload), end + 1
        try:
            value, count = form.decode(known, payload)
        except NotOfSchema as why:
            unfit[at] = f"not {form.name} of its schema: {why}"
            continue
        values += count
        decoded.append(value)
        places.append(at)
    made, gone = form.rows(known, decoded)
    return made, unfit | {places[at]: reason for at, reason in gone.items()}, end


def without(rows: pa.StructArray, unfit: Iterable[int]) -> pa.StructArray:
    """The other rows."""
    fits = np.ones(len(rows), np.bool_)
    fits[list(unfit)] = False
    return rows if fits.all() else rows.filter(pa.array(fits))


class KnownSchemas(Generic[Key, Known]):
    """Those of the document, and others that were met: how their values are read, or why they are not."""

    def __init__(self, given: Mapping[Key, Known | str]) -> None:
        self._found: dict[Key, Known | str] = dict(given)
        self._given = len(self._found)

    def get(self, key: Key) -> Known | str | None:
        return self._found.get(key)

    def add(self, key: Key, one: Known | str) -> Known | str:
        if len(self._found) >= self._given + SCHEMAS:
            self._found = dict(list(self._found.items())[: self._given])
        self._found[key] = one
        return one
