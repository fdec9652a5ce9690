"""Values that say by which schema they were written -> rows, whatever the schemas are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from connect_core.rows.json_reading import Read
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type

LONGEST = 4 << 20
"""Bytes of a value: as objects of Python it is many times as big."""
SCHEMAS = 1000
"""So many are remembered."""

Key = TypeVar("Key", bound=Hashable)
Known = TypeVar("Known")


def read_by_schema(
    values: pa.Array,
    rows: Type,
    split: Callable[[bytes | None], Any],
    known: Callable[[Any], Known | str],
    read_part: Callable[[Known, list[bytes], int], tuple[Read, int]],
) -> Read:
    """Each value is a row or has a reason. `split` gives what says the schema and the rest, `known` how values of that
    are read, or either why not. `read_part` reads as many as are decoded at once, and says where they end."""
    unfit: dict[int, str] = {}
    by_key: dict[Any, tuple[list[int], list[bytes]]] = {}
    for row, value in enumerate(values.to_pylist()):
        framed = split(value)
        if isinstance(framed, str) or len(framed[1]) > LONGEST:
            unfit[row] = framed if isinstance(framed, str) else f"longer than {LONGEST >> 20} MiB"
            continue
        places, payloads = by_key.setdefault(framed[0], ([], []))
        places.append(row)
        payloads.append(framed[1])
    found: list[tuple[list[int], pa.StructArray]] = []
    for key, (places, payloads) in by_key.items():
        one = known(key)
        if isinstance(one, str):
            unfit |= dict.fromkeys(places, one)
            continue
        begin = 0
        while begin < len(payloads):
            read, end = read_part(one, payloads, begin)
            unfit |= {places[begin + row]: reason for row, reason in read.unfit}
            gone = {row for row, _ in read.unfit}
            found.append(([row for at, row in enumerate(places[begin:end]) if at not in gone], read.rows))
            begin = end
    made = pa.concat_arrays([part for _, part in found] or [pa.array([], arrow_type(rows))])
    order = np.argsort(np.array([row for places, _ in found for row in places], np.int64))
    in_order = bool((np.diff(order) == 1).all())
    return Read(made if in_order else made.take(pa.array(order)), sorted(unfit.items()))


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
