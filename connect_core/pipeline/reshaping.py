"""Records whose payloads become rows, go through the steps of a document, and are written as JSON or Avro. Pure.

What `parse` says are the fields, `filter.when` and `transforms` are the steps, `encode` is what is delivered. A record
that cannot be read, changed or written is rejected, with the payload that it came with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.pipeline.changed_tables import names_tables, with_tables
from connect_core.pipeline.changes import with_before, with_operations
from connect_core.pipeline.evolving import Evolution, Needs
from connect_core.pipeline.formats.key_format import row_type
from connect_core.pipeline.formats.known import read_format, written_format
from connect_core.pipeline.formats.payload_format import Lookup, Writer
from connect_core.pipeline.formats.payloads import only, others, taken
from connect_core.pipeline.keyed_rows import both, key_writer, row_reader
from connect_core.pipeline.references import names_in, read_condition
from connect_core.pipeline.rejecting import reject_row
from connect_core.pipeline.transforms.row_step import RowStep
from connect_core.pipeline.transforms.running import run
from connect_core.pipeline.transforms.steps import step_of
from connect_core.pipeline.transforms.working import SeenBySteps, TypedRows
from connect_core.rows.json_unwritable import unwritable
from connect_core.rows.json_writing import written
from connect_core.rows.types import Type
from connect_core.sdk.batches import ROW
from connect_core.sdk.templates import Reference, template
from connect_core.sdk.values import Json, Reject
from connect_core.work import Evolving

Unfit = Iterable[tuple[int, str]]


class Reshaped(NamedTuple):
    records: pa.RecordBatch
    """Those that pass, with their new payloads."""
    rejected: tuple[Reject, ...]
    """By offset."""
    texts: pa.Array | None
    """JSON of what rules name of each record, where its payload is not that itself; else None."""
    needs: Needs | None = None
    """For which of the records the document is to be evolved: nothing of that one, or of those behind it, is here."""


class Reshaping:
    """Of a document that has rows (`digest.has_rows`). `lookup` knows the schemas of its registry; `shows_rows`:
    whether records have the column ROW behind it; `evolving`: as a lane has it."""

    def __init__(
        self,
        document: Json,
        path: str | None,
        lookup: Lookup | None = None,
        *,
        shows_rows: bool = False,
        evolving: Evolving | None = None,
    ) -> None:
        self._path, self._shows_rows = path, shows_rows
        self._parse: Json = document["parse"]
        when = document.get("filter", {}).get("when")
        transforms = document.get("transforms", [])
        self._steps = [step_of(one) for one in ([{"filter": when}] if when else []) + transforms]
        self._seen: SeenBySteps = {}
        """Of the range that this is made for: the one thing that is remembered from batch to batch."""
        self._encode: Json = document.get("encode", {})
        self._encodes = bool(transforms or self._encode.get("format"))
        self._writes_keys = bool(self._encode.get("key_format"))
        self._written_format = written_format(self._encode) if self._encodes else read_format(self._parse)
        hides = not self._written_format.is_plain_json or (not self._encodes and bool(self._parse.get("key_format")))
        self._named = _named_by(document.get("rules", ())) if hides else ()
        """The fields that rules name, where the payload is no JSON in which they are."""
        self._tells_tables = names_tables(_all_named(self._steps, document.get("rules", ())))
        self._read = row_reader(self._parse, lookup)
        rows = row_type(self._parse) if evolving else None
        self._evolution = Evolution(rows, evolving) if rows and evolving else None

    def reshaped(self, records: pa.RecordBatch, most_bytes: int | None = None) -> Reshaped:
        """Records keep their order, pieces of a record that of its list. A record is rejected as a whole."""
        read, needs = self._read(records), None
        if self._evolution and read.needs:
            read, needs = self._evolution.judged(read, records.column("value"))
            records = records.slice(0, needs.row) if needs else records
        rejected = _rejects(records, "parse", "NotParsed", read.unfit)
        places = others(len(records), [row for row, _ in read.unfit])
        beside = with_operations(taken(records, places), read.operations)
        beside = with_tables(beside) if self._tells_tables else beside
        given = TypedRows(read.rows, beside, self._path)
        stepped = run(self._steps, given, most_bytes, self._seen)
        if read.before is not None and self._shows_before:
            stepped = with_before(stepped, self._steps, read.before, given)
        rejected += _rejects(records, "transform", "NotTransformed", _at(places, stepped.unfit))
        places = places[stepped.places]
        rows, kept = stepped.rows.struct, stepped.rows.records
        if self._named and (unnamed := unwritable(only(rows, self._named))):
            unfit = {int(places[row]): f"rules: {unnamed[row]}" for row in sorted(unnamed, reverse=True)}
            rejected += _rejects(records, "encode", "NotEncoded", unfit.items())
            stays = np.flatnonzero(~np.isin(places, list(unfit)))
            rows, kept, places = taken(rows, stays), taken(kept, stays), places[stays]
        if self._encodes or self._writes_keys:
            kept, unwritten = self._write(rows, kept)
            unfit = {int(places[row]): why for row, why in reversed(unwritten)}
            rejected += _rejects(records, "encode", "NotEncoded", unfit.items())
            fit = others(len(places), [row for row, _ in unwritten])
            whole = ~np.isin(places[fit], list(unfit))
            rows, kept = taken(rows, fit[whole]), taken(kept, np.flatnonzero(whole))
        kept = kept.append_column(ROW, rows) if self._shows_rows else kept
        in_order = tuple(sorted(rejected, key=lambda one: (one.offset, one.ordinal)))
        return Reshaped(kept, in_order, written(only(rows, self._named)).values if self._named else None, needs)

    @cached_property
    def _shows_before(self) -> bool:
        """Whether rows as they were before go on beside those that they are: to a sink of rows where each step can do
        the same to them."""
        if self._shows_rows:
            return all(step.on_images != "cannot" for step in self._steps)
        return self._encodes and self._written_format.writes_changes

    @cached_property
    def _write(self) -> Writer:
        rows = row_type(self._parse) or Type("struct")
        for step in self._steps:
            rows = step.after(rows)
        keys = [key_writer(self._encode, rows)] if self._writes_keys else []
        payloads = [self._written_format.writer(self._encode, rows)] if self._encodes else []
        return reduce(both, keys + payloads)


def _named_by(rules: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The top-level fields."""
    named = _named_in(rules)
    return tuple(sorted({one.steps[0] for one in named if one.steps and isinstance(one.steps[0], str)}))


def _named_in(rules: Iterable[Mapping[str, Any]]) -> set[Reference]:
    named: set[Reference] = set()
    for rule in rules:
        for setting in ("to", "tags", "keys"):
            named |= template(rule.get(setting) or "").names()
        if when := rule.get("when"):
            named |= set(names_in(read_condition(when)).values())
    return named


def _all_named(steps: Iterable[RowStep], rules: Iterable[Mapping[str, Any]]) -> set[Reference]:
    return {one for step in steps for one in step.references().values()} | _named_in(rules)


def _rejects(records: pa.RecordBatch, stage: str, kind: str, unfit: Unfit) -> list[Reject]:
    return [reject_row(records, row, stage, kind, why) for row, why in unfit]


def _at(places: NDArray[np.int64], unfit: Unfit) -> Unfit:
    """Of rows that are at these places among what was given."""
    return ((int(places[row]), why) for row, why in unfit)
