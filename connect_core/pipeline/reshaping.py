"""Records whose payloads become rows, go through the steps of a document, and are written as JSON or Avro. Pure.

What `parse` says are the fields, `filter.when` and `transforms` are the steps, `encode` is what is delivered. A record
that cannot be read, changed or written is rejected, with the payload that it came with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.pipeline import avro, formats
from connect_core.pipeline.formats import AVRO, ENVELOPES, TEXT_FORMAT
from connect_core.pipeline.parsing import parser, read_texts
from connect_core.pipeline.rejecting import reject_row
from connect_core.pipeline.transforms.running import run
from connect_core.pipeline.transforms.steps import step_of
from connect_core.pipeline.transforms.texts import json_texts
from connect_core.pipeline.transforms.working import SeenBySteps, TypedRows
from connect_core.rows.avro_reading import AvroReader
from connect_core.rows.avro_writing import AvroWriter
from connect_core.rows.envelope_schemas import USUAL_FLAVOR
from connect_core.rows.envelope_writing import written_envelopes
from connect_core.rows.json_envelopes import EnvelopeReader
from connect_core.rows.json_reading import JsonReader, Read
from connect_core.rows.json_writing import WrittenRows, written
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.values import Json, Reject

Unfit = Iterable[tuple[int, str]]

_OF_THE_VALUE = ("packed", "packing")
"""Columns with another form of the payload, that goes before it."""


class Reshaped(NamedTuple):
    records: pa.RecordBatch
    """Those that pass, with their new payloads."""
    rejected: tuple[Reject, ...]
    """By offset."""
    texts: pa.Array | None
    """JSON of what rules name of each record, where its payload is an envelope or Avro; else None."""


class Reshaping:
    """Of a document that has rows (`digest.has_rows`). `lookup` knows the schemas of its registry."""

    def __init__(self, document: Json, path: str | None, lookup: avro.Lookup | None = None) -> None:
        self._path = path
        self._parse: Json = document["parse"]
        when = document.get("filter", {}).get("when")
        transforms = document.get("transforms", [])
        self._steps = [step_of(one) for one in ([{"filter": when}] if when else []) + transforms]
        self._seen: SeenBySteps = {}
        """Of the range that this is made for: the one thing that is remembered from batch to batch."""
        self._encode: Json = document.get("encode", {})
        self._encodes = bool(transforms or self._encode)
        delivers = self._encode.get("format", "json") if self._encodes else self._parse["format"]
        self._hides = delivers in (ENVELOPES, AVRO, TEXT_FORMAT) and document.get("rules") is not None
        self._reader = _reader(self._parse, lookup)

    def reshaped(self, records: pa.RecordBatch, most_bytes: int | None = None) -> Reshaped:
        """Records keep their order, pieces of a record that of its list. A record is rejected as a whole."""
        read = self._read(records.column("value"))
        words = f"Not of format {self._parse['format']}"
        rejected = _rejects(records, "parse", "NotParsed", ((row, f"{words}: {why}") for row, why in read.unfit))
        places = _others(len(records), [row for row, _ in read.unfit])
        stepped = run(self._steps, TypedRows(read.rows, _taken(records, places), self._path), most_bytes, self._seen)
        rejected += _rejects(records, "transform", "NotTransformed", _at(places, stepped.unfit))
        places = places[stepped.places]
        rows, kept = stepped.rows.struct, stepped.rows.records
        if self._encodes:
            encoded = self._written(rows)
            unfit = {int(places[row]): why for row, why in reversed(encoded.unfit)}
            rejected += _rejects(records, "encode", "NotEncoded", unfit.items())
            fit = _others(len(places), [row for row, _ in encoded.unfit])
            whole = ~np.isin(places[fit], list(unfit))
            stay, values = fit[whole], encoded.values if whole.all() else encoded.values.filter(pa.array(whole))
            rows = rows if len(stay) == len(rows) else rows.take(pa.array(stay))
            kept = _with_values(_taken(kept, stay), values)
        in_order = tuple(sorted(rejected, key=lambda one: (one.offset, one.ordinal)))
        return Reshaped(kept, in_order, _json(rows) if self._hides else None)

    def _written(self, rows: pa.StructArray) -> WrittenRows:
        form = self._encode.get("format")
        if form == AVRO:
            return self._avro.written(rows)
        if form == TEXT_FORMAT:
            return _as_texts(rows)
        return written_envelopes(rows, self._encode.get("flavor", USUAL_FLAVOR)) if form == ENVELOPES else written(rows)

    @cached_property
    def _avro(self) -> AvroWriter:
        rows = self._read_type
        for step in self._steps:
            rows = step.after(rows)
        return avro.writer(self._encode, rows)

    @property
    def _read_type(self) -> Type:
        if self._parse["format"] == AVRO:
            return avro.read_rows(self._parse)
        if fields := self._parse.get("fields"):
            return struct_of(fields)
        return Type("struct", fields=tuple((name, Type("text")) for name in self._names))

    def _read(self, values: pa.Array) -> Read:
        if self._reader is not None:
            return self._reader.read(values)
        if self._parse["format"] == TEXT_FORMAT:
            texts, unread = read_texts(values)
            return Read(pa.StructArray.from_arrays([texts], [TEXT_FORMAT]), unread)
        parsed = parser(self._parse)(values)
        return Read(_texts([one for one in parsed.payloads if one is not None], self._names), parsed.reasons)

    @cached_property
    def _names(self) -> Sequence[str]:
        """Of fields that are texts."""
        pattern, columns = self._parse.get("pattern", ""), self._parse.get("columns", ())
        return formats.known_fields(self._parse["format"], pattern, columns) or ()


def _as_texts(rows: pa.StructArray) -> WrittenRows:
    """Of rows with one field: its text alone."""
    texts = json_texts(rows.type.field(0), rows.field(0))
    missing = np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)).tolist()
    return WrittenRows(
        texts.drop_null().cast(pa.binary()), [(row, "The field is missing, or has no text") for row in missing]
    )


def _reader(parse: Json, lookup: avro.Lookup | None) -> JsonReader | EnvelopeReader | AvroReader | None:
    """None where fields are texts."""
    if parse["format"] == AVRO:
        return avro.reader(parse, lookup)
    if (fields := parse.get("fields")) is None:
        return None
    kind = EnvelopeReader if parse["format"] == ENVELOPES else JsonReader
    return kind(struct_of(fields), unknown=parse.get("unknown", "reject"))


def _texts(payloads: Sequence[Mapping[str, str]], names: Sequence[str]) -> pa.StructArray:
    columns = [pa.array([one.get(name) for one in payloads], pa.string()) for name in names]
    return pa.StructArray.from_arrays(columns, list(names))


def _json(rows: pa.StructArray) -> pa.Array:
    """Of each row; null where JSON has no form for it."""
    texts, unfit = written(rows)
    if not unfit:
        return texts
    found: list[bytes | None] = [None] * len(rows)
    for row, text in zip(_others(len(rows), [row for row, _ in unfit]), texts.to_pylist(), strict=True):
        found[row] = text
    return pa.array(found, pa.binary())


def _rejects(records: pa.RecordBatch, stage: str, kind: str, unfit: Unfit) -> list[Reject]:
    return [reject_row(records, row, stage, kind, why) for row, why in unfit]


def _at(places: NDArray[np.int64], unfit: Unfit) -> Unfit:
    """Of rows that are at these places among what was given."""
    return ((int(places[row]), why) for row, why in unfit)


def _others(rows: int, gone: Sequence[int]) -> NDArray[np.int64]:
    stays = np.ones(rows, dtype=np.bool_)
    stays[list(gone)] = False
    return np.flatnonzero(stays)


def _with_values(records: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
    """Other payloads, which nobody has packed yet (`sdk.batches.RECORD_SCHEMA`)."""
    changed = {"value": values, **{name: pa.nulls(len(records), records.column(name).type) for name in _OF_THE_VALUE}}
    columns = [changed.get(name, column) for name, column in zip(records.schema.names, records.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=records.schema)


def _taken(records: pa.RecordBatch, places: NDArray[np.int64]) -> pa.RecordBatch:
    return records if len(places) == len(records) else records.take(pa.array(places))
