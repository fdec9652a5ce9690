"""Rows between two steps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.pipeline.fields import Flags
from connect_core.pipeline.transforms.columns import Column, added, changed, column_at, places_of
from connect_core.pipeline.transforms.paths import Path, written
from connect_core.pipeline.transforms.row_fields import RowFields
from connect_core.pipeline.transforms.row_step import RowStep
from connect_core.rows.moments import textless_rows

Seen: TypeAlias = dict[bytes, int]
"""By the digest of a key the offset at which it came first."""
SeenBySteps: TypeAlias = dict[RowStep, Seen]

_TEXTLESS = "is, or holds, a moment that has no text: it is too early or too late"


class TypedRows(NamedTuple):
    """One row a record: a struct of its fields, never null itself, and the record (RECORD_SCHEMA) that it is of. `path`
    is that of the file whose lines the records are."""

    struct: pa.StructArray
    records: pa.RecordBatch
    path: str | None = None


class Work:
    """Rows between two steps. Those not `alive` are filtered or unfit; steps may work on them, to no effect."""

    def __init__(self, given: TypedRows, most_bytes: int | None = None, seen: SeenBySteps | None = None) -> None:
        self.seen = {} if seen is None else seen
        self.most_bytes = most_bytes
        """What the outputs made at once may hold, about; None: any number."""
        self.later: Sequence[RowStep] = ()
        """The steps behind the one that works on it."""
        self._has_pieces = False
        self.rows = pa.RecordBatch.from_struct_array(given.struct)
        self.records, self.path = given.records, given.path
        self.places: NDArray[np.int64] = np.arange(len(given.struct), dtype=np.int64)
        self.alive: Flags = np.ones(len(given.struct), dtype=np.bool_)
        self.unfit: list[tuple[int, str]] = []
        self._fields: RowFields | None = None

    @property
    def fields(self) -> RowFields:
        """Of these rows: several steps that change nothing have them in common."""
        known = self._fields
        if known is None or known.rows is not self.rows or known.records is not self.records:
            known = self._fields = RowFields(self.rows, self.records, self.path)
        return known

    def compact(self, half: bool) -> None:
        left = int(self.alive.sum())
        if left == len(self.alive) or (half and left * 2 > len(self.alive)):
            return
        mask = pa.array(self.alive)
        self.rows, self.records = self.rows.filter(mask), self.records.filter(mask)
        self.places, self.alive = self.places[self.alive], np.ones(left, dtype=np.bool_)

    def take(self, rows: NDArray[np.int64]) -> None:
        """Goes on with these rows, some of them several times."""
        places = pa.array(rows)
        self.rows, self.records = self.rows.take(places), self.records.take(places)
        self.places, self.alive = self.places[rows], np.ones(len(rows), dtype=np.bool_)
        self._has_pieces = True

    def finish(self) -> None:
        """Of a record with an unfit piece no other piece goes on, and one reason is enough."""
        self.unfit = sorted(dict(reversed(self.unfit)).items())
        if self._has_pieces and self.unfit:
            self.alive &= ~np.isin(self.places, [place for place, _ in self.unfit])
        self.compact(half=False)

    def reject(self, rows: Flags, why: str) -> None:
        """Those that are alive still."""
        self.unfit += [(place, why) for place in self.places[rows & self.alive].tolist()]
        self.alive &= ~rows

    def reject_textless(self, step: RowStep) -> None:
        """Those of which the step would make a text that is none."""
        for path in step.written_out():
            self.reject(textless_rows(*column_at(self.rows, path)), f"{written(path)} {_TEXTLESS}")
        for text, wanted in step.references().items():
            rows = self.fields.textless(wanted)
            if rows is not None:
                self.reject(rows, f"{text} {_TEXTLESS}")

    def change(self, path: Path, change: Callable[[pa.Field, pa.Array], Column]) -> None:
        self.rows = changed(self.rows, places_of(self.rows, path), lambda *field: [change(*field)])

    def put(self, path: Path, new: Column) -> None:
        """The field is replaced, or comes last of its struct."""
        places = places_of(self.rows, path)
        if places[-1] >= 0:
            self.rows = changed(self.rows, places, lambda field, column: [new])
        else:
            self.rows = added(self.rows, places_of(self.rows, path[:-1]), *new)
