"""Envelopes, `{"schema": …, "payload": …}` as the JSON converters of Kafka Connect and RocketMQ Connect write them with
`schemas.enable`, -> rows. Pure.

The envelopes of a topic have nearly always the same bytes before their payload. So these are compared first; a schema
is parsed once, and payloads are read column by column.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rows.envelope_columns import EnvelopeColumns
from connect_core.rows.envelope_schemas import EnvelopePart, Misfit, part_of
from connect_core.rows.json_members import SCANNER, after, members_of
from connect_core.rows.json_reading import JsonReader, Read
from connect_core.rows.types import Type

PREFIXES = 4
"""So many are looked for in all envelopes of a batch; those that have yet others are taken apart one by one."""
SCHEMAS = 1000
"""So many are remembered."""

_NO_ENVELOPE = 'not one JSON object of "schema" and "payload" alone'
_UNPARSED = (ValueError, RecursionError)


class _Head(NamedTuple):
    before: bytes
    """All of an envelope up to its payload."""
    schema: str


class _Schema(NamedTuple):
    """How payloads of one schema are read, or why they are not."""

    reader: JsonReader | None
    part: EnvelopePart | None
    reason: str


class EnvelopeReader:
    """`unknown` as the reader of JSON has it: of fields in a schema, and of those that a payload has."""

    def __init__(self, rows: Type, *, unknown: Literal["reject", "drop"] = "reject") -> None:
        self._type = rows
        self._unknown = unknown
        self._plain = JsonReader(rows, unknown=unknown)
        self._schemas: dict[str, _Schema] = {}

    def read(self, values: pa.Array) -> Read:
        """`values` are binary. Each is a row or has a reason."""
        unfit: dict[int, str] = {}
        found: list[tuple[NDArray[np.int64], pa.StructArray]] = []
        for schema, places, payloads in _by_schema(values, unfit):
            read = self._payloads(schema, payloads)
            for row, reason in read.unfit:
                place = int(places[row])
                unfit[place] = _fault(values[place].as_py()) or reason
            found.append((np.delete(places, [row for row, _ in read.unfit]), read.rows))
        reasons = sorted(unfit.items())
        if not found:
            return Read(self._plain.read(values.slice(0, 0)).rows, reasons)
        rows = found[0][1] if len(found) == 1 else pa.concat_arrays([part for _, part in found])
        order = np.argsort(np.concatenate([places for places, _ in found]))
        in_order = bool((np.diff(order) == 1).all())
        return Read(rows if in_order else rows.take(pa.array(order)), reasons)

    def _payloads(self, schema: str, payloads: pa.Array) -> Read:
        known = self._schemas.get(schema)
        if known is None:
            if len(self._schemas) >= SCHEMAS:
                self._schemas.clear()
            known = self._schemas[schema] = self._schema(schema)
        if known.reader is None:
            nothing = self._plain.read(payloads.slice(0, 0)).rows
            return Read(nothing, [(row, known.reason) for row in range(len(payloads))])
        read = known.reader.read(payloads)
        unfit = dict(read.unfit)
        if known.part is None:
            return Read(read.rows, [(row, _of_payload(why)) for row, why in read.unfit])
        columns = EnvelopeColumns()
        rows = columns.rows(read.rows, known.part)
        if columns.unfit:
            places = np.delete(np.arange(len(payloads)), list(unfit))
            unfit |= {int(places[row]): reason for row, reason in columns.unfit.items()}
            fits = np.ones(len(rows), np.bool_)
            fits[list(columns.unfit)] = False
            rows = rows.filter(pa.array(fits))
        return Read(rows, [(row, _of_payload(why)) for row, why in sorted(unfit.items())])

    def _schema(self, text: str) -> _Schema:
        """Without a schema a payload is plain JSON, as both products take it."""
        try:
            schema = SCANNER.decode(text)
        except RecursionError:
            return _Schema(None, None, _NO_ENVELOPE)
        if schema is None:
            return _Schema(self._plain, None, "")
        try:
            part = part_of(schema, self._type, self._unknown)
        except Misfit as why:
            return _Schema(None, None, str(why))
        return _Schema(JsonReader(part.wire, unknown=self._unknown), part, "")


def _of_payload(reason: str) -> str:
    """The reasons of the reader name a field, or speak of the whole."""
    return f"payload: {reason}" if ":" not in reason else reason


def _by_schema(values: pa.Array, unfit: dict[int, str]) -> list[tuple[str, NDArray[np.int64], pa.Array]]:
    """Schemas, the rows that have each, and their payloads; what is no envelope goes to `unfit`."""
    found: dict[str, list[tuple[NDArray[np.int64], pa.Array]]] = {}
    left = np.arange(len(values))
    for _ in range(PREFIXES):
        head = _head(values[left[0]].as_py()) if len(left) else None
        if head is None:
            break
        rest = values if len(left) == len(values) else values.take(pa.array(left))
        same = pc.fill_null(pc.and_(pc.starts_with(rest, head.before), pc.ends_with(rest, b"}")), False)
        chosen = same.to_numpy(zero_copy_only=False)
        payloads = pc.binary_slice(rest if chosen.all() else rest.filter(same), len(head.before), -1)
        found.setdefault(head.schema, []).append((left[chosen], payloads))
        left = left[~chosen]
    alone: dict[str, tuple[list[int], list[bytes]]] = {}
    for place in left.tolist():
        if taken := _apart(values[place].as_py(), place, unfit):
            rows, bodies = alone.setdefault(taken[0], ([], []))
            rows.append(place)
            bodies.append(taken[1])
    for schema, (rows, bodies) in alone.items():
        found.setdefault(schema, []).append((np.array(rows, np.int64), pa.array(bodies, pa.binary())))
    return [
        (schema, np.concatenate([rows for rows, _ in parts]), pa.concat_arrays([bodies for _, bodies in parts]))
        for schema, parts in found.items()
    ]


def _head(body: bytes | None) -> _Head | None:
    """None where an envelope does not begin with its schema."""
    if body is None:
        return None
    try:
        text = body.decode()
        at = after(text, "{", 0)
        begin = after(text, ":", after(text, '"schema"', at))
        _, end = SCANNER.raw_decode(text, begin)
        payload = after(text, ":", after(text, '"payload"', after(text, ",", end)))
    except _UNPARSED:
        return None
    return _Head(text[:payload].encode(), text[begin:end])


def _apart(body: bytes | None, place: int, unfit: dict[int, str]) -> tuple[str, bytes] | None:
    """Schema and payload of one envelope. One that begins with its schema is judged as those of a batch are."""
    if (head := _head(body)) and body and (trimmed := body.rstrip(b" \t\r\n")).endswith(b"}"):
        return head.schema, trimmed[len(head.before) : -1]
    taken = _members(body)
    if isinstance(taken, str):
        unfit[place] = taken
        return None
    return taken["schema"], taken["payload"].encode()


def _fault(body: bytes | None) -> str:
    """Why it is no envelope; empty where it is one."""
    taken = _members(body)
    return taken if isinstance(taken, str) else ""


def _members(body: bytes | None) -> dict[str, str] | str:
    """The texts of schema and payload, or why this is no envelope."""
    if body is None:
        return "no value"
    try:
        text = body.decode()
        members = members_of(text)
    except UnicodeDecodeError:
        return "not UTF-8"
    except json.JSONDecodeError as error:
        return f"not JSON, from character {error.pos + 1} on"
    except _UNPARSED:
        return _NO_ENVELOPE
    return members if members.keys() == {"schema", "payload"} else _NO_ENVELOPE
