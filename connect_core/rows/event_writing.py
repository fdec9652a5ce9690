"""Rows -> CloudEvents 1.0: whole events as JSON (structured mode), or data with attributes in headers (binary mode).
Pure.

The columns become texts as JSON has them, all at once; events are put together from these row by row.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.event_attributes import (
    CONTENT_TYPE,
    DATA,
    REQUIRED,
    SPECVERSION,
    STANDARD,
    VERSION,
    Mode,
    attribute_fault,
    media,
)
from connect_core.rows.event_headers import STRUCTURED, with_event, without_event
from connect_core.rows.json_unwritable import unwritable
from connect_core.rows.json_writing import base64_texts, moment_texts, written
from connect_core.rows.types import Type
from connect_core.sdk.records import encode_headers, header_pairs

_JSON = "application/json"
_OF_TEXT = "text/plain;charset=utf-8"
_TIME_ENDS = r"(\.[0-9]*?)0+$"
_BARE = ("bool", "int8", "int16", "int32", "uint8", "uint16")
"""Attributes that JSON has without quotation marks."""


class WrittenEvents(NamedTuple):
    values: pa.Array
    headers: pa.Array
    """Both binary: of the rows that are events, in order."""
    unfit: list[tuple[int, str]]
    """A row and why it is none, ascending."""


class CloudEventWriter:
    """Of rows that `event_attributes.check_event_rows` takes. `binding`: in which headers go (`event_headers`); empty
    for a target whose headers nobody reads, which takes structured mode alone."""

    def __init__(self, rows: Type, mode: Mode, binding: str) -> None:
        self._mode, self._binding = mode, binding
        self._attributes = [(name, one) for name, one in rows.fields if name != DATA]
        self._extensions = frozenset(name for name, _ in self._attributes) - frozenset(STANDARD)
        self._data = rows.field(DATA)
        if mode == "binary" and not binding:
            raise ValueError("Binary mode needs headers")

    def written(self, rows: pa.StructArray, headers: pa.Array) -> WrittenEvents:
        """`headers` are those of the record of each row."""
        unfit = unwritable(rows)
        places = np.delete(np.arange(len(rows)), list(unfit))
        if unfit:
            rows, headers = rows.take(pa.array(places)), headers.take(pa.array(places))
        values: list[bytes | None] = []
        said: list[bytes | None] = []
        data = self._data_texts(rows) if self._data else [None] * len(rows)
        for place, texts, one, encoded in zip(places, self._texts(rows), data, headers.to_pylist(), strict=True):
            try:
                value, pairs = self._event(texts, one, header_pairs(encoded) if encoded else [])
            except Misfit as why:
                unfit[int(place)] = str(why)
            except UnicodeDecodeError:
                unfit[int(place)] = "headers: not UTF-8"
            else:
                values.append(value)
                said.append(encode_headers(pairs) if pairs else None)
        return WrittenEvents(pa.array(values, pa.binary()), pa.array(said, pa.binary()), sorted(unfit.items()))

    def _texts(self, rows: pa.StructArray) -> Iterator[Sequence[str | None]]:
        """Of each row its attributes, None for what is missing."""
        columns = [_canonical(rows.field(name), one).to_pylist() for name, one in self._attributes]
        return zip(*columns, strict=True)

    def _data_texts(self, rows: pa.StructArray) -> list[bytes | None]:
        """JSON, but for data that is bytes already."""
        assert self._data is not None
        column = rows.field(DATA)
        if self._data.kind == "bytes":
            return list(column.to_pylist())
        before, behind = len(f'{{"{DATA}":'), len("}")
        values = written(pa.StructArray.from_arrays([column], fields=[rows.type.field(DATA)])).values
        valid = column.is_valid().to_pylist()
        return [
            value[before:-behind] if there else None for value, there in zip(values.to_pylist(), valid, strict=True)
        ]

    def _event(
        self, texts: Sequence[str | None], data: bytes | None, headers: Sequence[tuple[str, str]]
    ) -> tuple[bytes | None, list[tuple[str, str]]]:
        attributes = {name: text for (name, _), text in zip(self._attributes, texts, strict=True) if text is not None}
        if lacking := next((name for name in REQUIRED if name not in attributes), None):
            raise Misfit(f"{lacking}: missing, and no event without it")
        if fault := next(filter(None, map(attribute_fault, attributes, attributes.values())), None):
            raise Misfit(fault)
        self._type_data(attributes, data)
        kept = without_event(headers, self._binding, self._extensions)
        if self._mode == "binary":
            return self._binary(attributes, data, kept)
        pairs = with_event(kept, (), STRUCTURED, self._binding) if self._binding else kept
        return self._structured(attributes, data), pairs

    def _type_data(self, attributes: dict[str, str], data: bytes | None) -> None:
        """Says what the data is where the row does not, and nobody else can."""
        kind = self._data.kind if self._data and data is not None else "bytes"
        if kind == "bytes":
            return
        of = media(attributes.setdefault(CONTENT_TYPE, _OF_TEXT if kind == "text" else _JSON))
        if not of.json and kind != "text":
            raise Misfit(f"{CONTENT_TYPE}: not JSON, which the data is (cast it to text, or leave {CONTENT_TYPE} out)")
        if not of.utf8:
            raise Misfit(f"{CONTENT_TYPE}: its charset is not UTF-8, which the data is")

    def _structured(self, attributes: dict[str, str], data: bytes | None) -> bytes:
        kinds = {name: one.kind for name, one in self._attributes}
        parts = [f'"{SPECVERSION}":"{VERSION}"']
        for name, text in attributes.items():
            bare = kinds.get(name) in _BARE
            parts.append(f'"{name}":{text if bare else json.dumps(text, ensure_ascii=False)}')
        whole = ",".join(parts).encode()
        if data is not None and self._data and self._data.kind == "bytes":
            whole += b',"data_base64":"' + b2a_base64(data, newline=False) + b'"'
        elif data is not None:
            whole += b',"data":' + data
        return b"{" + whole + b"}"

    def _binary(
        self, attributes: dict[str, str], data: bytes | None, kept: list[tuple[str, str]]
    ) -> tuple[bytes | None, list[tuple[str, str]]]:
        content_type = attributes.pop(CONTENT_TYPE, None)
        if empty := next((name for name, text in attributes.items() if not text), None):
            raise Misfit(f"{empty}: empty, which no header can be (structured mode has it)")
        named = ((SPECVERSION, VERSION), *attributes.items())
        pairs = with_event(kept, named, content_type, self._binding)
        if data is not None and self._data and self._data.kind == "text" and not media(content_type).json:
            data = str(json.loads(data)).encode()
        return data, pairs


def _canonical(column: pa.Array, one: Type) -> pa.Array:
    if one.kind == "bool":
        return pc.if_else(column, "true", "false")
    if one.kind == "bytes":
        return base64_texts(column)
    if one.kind == "timestamp":
        texts = moment_texts(column)
        if column.type.unit != "s":  # no more digits than are needed
            texts = pc.replace_substring_regex(pc.replace_substring_regex(texts, _TIME_ENDS, r"\1"), r"\.$", "")
        return pc.binary_join_element_wise(texts, "Z", "")
    return column if one.kind == "text" else column.cast(pa.string())
