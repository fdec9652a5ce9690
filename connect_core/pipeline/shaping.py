"""A pipeline at work: batch -> batch. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.pipeline.changed_tables import without_tables
from connect_core.pipeline.choosing import chosen
from connect_core.pipeline.conditions import holding
from connect_core.pipeline.digest import has_rows
from connect_core.pipeline.evolving import Needs
from connect_core.pipeline.fields import Fields
from connect_core.pipeline.formats.payload_format import Lookup
from connect_core.pipeline.numbering import with_numbers
from connect_core.pipeline.parsing import parser
from connect_core.pipeline.rejecting import reject_row
from connect_core.pipeline.reshaping import Reshaping
from connect_core.pipeline.rules import MAX_OUTPUT_BYTES, Rules
from connect_core.pipeline.transforms.exploding import TooManyOutputs
from connect_core.rows.types import Type
from connect_core.sdk.values import Json, Reject
from connect_core.work import Evolving


@dataclass(frozen=True)
class Shaped:
    """`kept` goes on to the sink, `rejected` failed, `filtered` were left out on purpose (offsets of the rows). `rows`
    is how many of the rows were shaped, the first ones: fewer than all when more outputs would be too large a batch, or
    where the next one `needs` fields that the document does not have."""

    kept: pa.RecordBatch
    rows: int
    rejected: tuple[Reject, ...] = ()
    filtered: tuple[int, ...] = ()
    needs: Type | None = None


@dataclass(frozen=True)
class Pipeline:
    """Built from the pinned part of the document, for one range; the same document and code give the same results.
    `path` is that of the file whose lines the records are."""

    document: Json
    path: str | None = None
    lookup: Lookup | None = None
    """Knows the schemas of the registry that the document names."""
    shows_rows: bool = False
    """Whether records have the column ROW behind it (`sdk.sink.TakesRows`). The document has rows."""
    evolving: Evolving | None = None
    """As a lane has it."""

    def shape(self, records: pa.RecordBatch) -> Shaped:
        """Filter first, then transforms, then rules. At least one row, but where the first needs other fields."""
        try:
            fields, rejected, needs = self._passing(records, MAX_OUTPUT_BYTES)
        except TooManyOutputs:
            return self.shape(records.slice(0, len(records) // 2))
        kept, rows = fields.records, needs.row if needs else len(records)
        more = needs and needs.fields
        if len(kept) and self._rules is not None:
            outputs, passed, covered = self._rules.shaped(fields)
            if covered < len(kept):
                rows, more = int(np.searchsorted(_offsets(records), _offsets(kept)[covered])), None
            kept, passing = outputs, _offsets(kept)[:covered][passed]
        else:
            kept = with_numbers(kept) if self._explodes else kept
            passing = _offsets(kept)
        kept = without_tables(kept)
        passing = np.unique(passing) if self._explodes else passing
        if len(passing) == rows:
            return Shaped(kept, rows, needs=more)
        offsets = _offsets(records)[:rows]
        failed = tuple(one for one in rejected if len(offsets) and one.offset <= offsets[-1])
        elsewhere = np.concatenate([passing, np.array([one.offset for one in failed], dtype=np.int64)])
        return Shaped(kept, rows, failed, tuple(offsets[~np.isin(offsets, elsewhere)].tolist()), more)

    def passing(self, records: pa.RecordBatch) -> tuple[Fields, tuple[Reject, ...]]:
        """The rows that the filter and the transforms let pass, with what rules name of them; and those that are not of
        the format in which the document says that they are, or cannot be transformed."""
        return self._passing(records, None)[:2]

    def _passing(
        self, given: pa.RecordBatch, most_bytes: int | None
    ) -> tuple[Fields, tuple[Reject, ...], Needs | None]:
        """And the row from which on records need other fields; nothing of those is among the others."""
        wanted, records = self.document.get("filter") or {}, given
        if len(records) and wanted.keys() - {"when"}:
            sql = wanted.get("sql", "")
            records = records.filter(chosen(records, wanted.get("tags", ()), wanted.get("headers", {}), sql))
        if len(records) and self._reshaping is not None:
            made = self._reshaping.reshaped(records, most_bytes)
            needs = made.needs and made.needs._replace(row=_place(given, records, made.needs.row))
            return Fields(made.records, self.path, texts=made.texts), made.rejected, needs
        fields = Fields(records, self.path)
        rejected: tuple[Reject, ...] = ()
        if len(records) and (written := self.document.get("parse")):
            fields, rejected = _parsed(records, self.path, written)
        if len(fields) and (when := wanted.get("when")):
            fields = fields.where(holding(when, fields))
        return fields, rejected, None

    @property
    def changes(self) -> bool:
        """Whether what passes may differ from what was read."""
        return self.document.get("rules") is not None or self._has_rows

    @property
    def _has_rows(self) -> bool:
        """A sink that takes rows finds those of any format, also where the document does nothing with them."""
        return self.shows_rows or has_rows(self.document)

    @cached_property
    def _reshaping(self) -> Reshaping | None:
        """None where payloads stay bytes."""
        if not self._has_rows:
            return None
        return Reshaping(self.document, self.path, self.lookup, shows_rows=self.shows_rows, evolving=self.evolving)

    @cached_property
    def _explodes(self) -> bool:
        """Whether several rows that pass may be of one record."""
        return any("explode" in step for step in self.document.get("transforms", ()))

    @cached_property
    def _rules(self) -> Rules | None:
        """None where the document has none. Where all are disabled there are none either, and nothing passes."""
        written = self.document.get("rules")
        return None if written is None else Rules(written)


def _parsed(records: pa.RecordBatch, path: str | None, written: Json) -> tuple[Fields, tuple[Reject, ...]]:
    payloads, reasons = parser(written)(records.column("value"))
    words = f"Not of format {written['format']}"
    rejected = tuple(reject_row(records, row, "parse", "NotParsed", f"{words}: {why}") for row, why in reasons)
    fields = Fields(records, path, payloads)
    if not reasons:
        return fields, ()
    whole = np.ones(len(records), dtype=np.bool_)
    whole[[row for row, _ in reasons]] = False
    return fields.where(whole), rejected


def _place(given: pa.RecordBatch, chosen: pa.RecordBatch, row: int) -> int:
    """Where a row of those that were chosen is among all that were given."""
    return int(np.searchsorted(_offsets(given), _offsets(chosen)[row]))


def _offsets(records: pa.RecordBatch) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = records.column("offset").to_numpy()
    return offsets
