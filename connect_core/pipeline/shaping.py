"""A pipeline at work: batch -> batch. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.pipeline.choosing import chosen
from connect_core.pipeline.conditions import holding
from connect_core.pipeline.fields import Fields
from connect_core.pipeline.rules import Rules
from connect_core.sdk.values import Json, Reject


@dataclass(frozen=True)
class Shaped:
    """`kept` goes on to the sink, `rejected` failed, `filtered` were left out on purpose (offsets of the rows). `rows`
    is how many of the rows were shaped, the first ones: fewer than all when more outputs would be too large a batch."""

    kept: pa.RecordBatch
    rows: int
    rejected: tuple[Reject, ...] = ()
    filtered: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pipeline:
    """Built from the pinned part of the document; the same document and code give the same results. `path` is that of
    the file whose lines the records are."""

    document: Json
    path: str | None = None

    def shape(self, records: pa.RecordBatch) -> Shaped:
        """Filter first, then rules. At least one row, where there is one."""
        kept, rows = records, len(records)
        if rows and (wanted := self.document.get("filter")):
            kept = kept.filter(chosen(kept, wanted.get("tags", ()), wanted.get("headers", {}), wanted.get("sql", "")))
            if when := wanted.get("when"):
                kept = kept.filter(pa.array(holding(when, Fields(kept, self.path))))
        if len(kept) and self._rules is not None:
            outputs, passed, covered = self._rules.shaped(kept, Fields(kept, self.path))
            if covered < len(kept):
                rows = int(np.searchsorted(_offsets(records), _offsets(kept)[covered]))
            kept, passing = outputs, _offsets(kept)[:covered][passed]
        else:
            passing = _offsets(kept)
        if len(passing) == rows:
            return Shaped(kept, rows)
        offsets = _offsets(records)[:rows]
        return Shaped(kept, rows, filtered=tuple(offsets[~np.isin(offsets, passing)].tolist()))

    @cached_property
    def _rules(self) -> Rules | None:
        """None where the document has none. Where all are disabled there are none either, and nothing passes."""
        written = self.document.get("rules")
        return None if written is None else Rules(written)


def _offsets(records: pa.RecordBatch) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = records.column("offset").to_numpy()
    return offsets
