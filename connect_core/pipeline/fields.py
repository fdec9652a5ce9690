"""The values that rules name, column by column: each is made once for a batch, whatever the number of rules. Pure.

The payload of a record is parsed once, and only when something of it is asked for. What is not there, and anything of
a payload that is no JSON, is missing; a JSON null is missing too. Objects and lists are texts: their JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.pipeline.changed_tables import tables_of
from connect_core.sdk.records import OPERATIONS, decode_headers
from connect_core.sdk.templates import Reference

Value: TypeAlias = str | int | float | bool | None
Flags = NDArray[np.bool_]

_MQTT_TOPIC = r"(?:^|\x02)MQTT_TOPIC\x01(?P<topic>[^\x02]*)"
"""The header in which a record that came from MQTT has its topic, wherever it is by now."""
_NUMBERS, _TEXTS, _NOTHING = frozenset((int, float)), frozenset((str,)), type(None)
_EXACT = 1 << 53
"""Whole numbers up to here are the same as floating-point numbers."""
_LONG = float(1 << 63)
"""`orjson` makes whole numbers of more than 64 bits floating-point numbers: different ones would be the same."""


class FieldValues:
    """One value for each row."""

    def __init__(self, values: Sequence[Value] | pa.Array) -> None:
        self._given = values

    @cached_property
    def values(self) -> list[Value]:
        return self._given.to_pylist() if isinstance(self._given, pa.Array) else list(self._given)

    @cached_property
    def missing(self) -> Flags:
        if isinstance(self._given, pa.Array):
            flags: Flags = self._given.is_null().to_numpy(zero_copy_only=False)
            return flags
        return np.fromiter((value is None for value in self._given), dtype=np.bool_, count=len(self._given))

    @cached_property
    def some_missing(self) -> bool:
        return bool(self.missing.any())

    @cached_property
    def encoded(self) -> tuple[pa.Array, NDArray[np.int32]] | None:
        """The different texts, where every value is one, and which of them each row has: -1 for missing."""
        if self.texts is None:
            return None
        found = self.texts.dictionary_encode()
        return found.dictionary, pc.fill_null(found.indices, -1).to_numpy()

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each of the different texts stands among them."""
        texts = self.encoded[0].to_pylist() if self.encoded is not None else []
        return {text: place for place, text in enumerate(texts)}

    @cached_property
    def texts(self) -> pa.Array | None:
        """Where every value that is there is a text."""
        if isinstance(self._given, pa.Array):
            return self._given
        return pa.array(self._given, pa.string()) if self._types <= _TEXTS else None

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """Where every value that is there is a number, and none of them loses anything by this form; NaN: missing."""
        if isinstance(self._given, pa.Array) or not self._types <= _NUMBERS:
            return None
        if int in self._types and any(type(value) is int and abs(value) > _EXACT for value in self._given):
            return None
        numbers: NDArray[np.float64] = pa.array(self._given, pa.float64()).to_numpy(zero_copy_only=False)
        return numbers

    @cached_property
    def _types(self) -> frozenset[type]:
        return frozenset(map(type, self._given)) - {_NOTHING}

    @cached_property
    def written(self) -> pa.Array:
        """As templates have it: what is missing is empty, numbers and truth values are as JSON writes them."""
        if self.texts is not None:
            return pc.fill_null(self.texts, "")
        return pa.array([_written(value) for value in self.values], pa.string())


class Fields:
    """Of one batch of RECORD_SCHEMA, whose records are lines of the file at `path`, or of none. `payloads` is what was
    parsed of their values already; else these are JSON, or `texts` are, where what is delivered is in another form."""

    def __init__(
        self,
        records: pa.RecordBatch,
        path: str | None = None,
        payloads: Sequence[Any] | None = None,
        texts: pa.Array | None = None,
    ) -> None:
        self.records, self._path, self._parsed = records, path, payloads
        self._texts = records.column("value") if texts is None else texts
        self._columns: dict[Reference, FieldValues] = {}
        self.memory: dict[Any, Any] = {}
        """What somebody has worked out of these fields and may need again."""

    def __len__(self) -> int:
        return len(self.records)

    def where(self, flags: Flags) -> Fields:
        """Those of the rows that are marked."""
        payloads = self._parsed and list(compress(self._parsed, flags.tolist()))
        marked = pa.array(flags)
        return Fields(self.records.filter(marked), self._path, payloads, self._texts.filter(marked))

    def behind(self, rows: int) -> Fields:
        """Without the first ones."""
        payloads = self._parsed and self._parsed[rows:]
        return Fields(self.records.slice(rows), self._path, payloads, self._texts.slice(rows))

    def column(self, wanted: Reference) -> FieldValues:
        if wanted not in self._columns:
            self._columns[wanted] = self._values(wanted)
        return self._columns[wanted]

    def _values(self, wanted: Reference) -> FieldValues:
        return FieldValues(self._level(wanted) if wanted.level else _MAKERS[wanted.kind](self, wanted))

    @cached_property
    def topics(self) -> pa.Array:
        """Where each record came from at first: the MQTT topic that it brings with it, else its own topic."""
        topics, headers = self.records.column("topic"), self.records.column("headers")
        if headers.null_count < len(headers):
            brought = pc.struct_field(pc.extract_regex(headers, _MQTT_TOPIC), "topic")
            if brought.null_count < len(brought):
                topics = pc.coalesce(_as_text(brought), topics)
        return pc.fill_null(topics, "")

    @cached_property
    def distinct_topics(self) -> tuple[list[str], NDArray[np.int64]]:
        """The different topics, and for each row which of them it has."""
        encoded = self.topics.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)

    @cached_property
    def _payloads(self) -> list[Any]:
        if self._parsed is not None:
            return list(self._parsed)
        return [_parsed(body) for body in self._texts.to_pylist()]

    @cached_property
    def _headers(self) -> list[dict[str, str]]:
        """Many rows have the same."""
        known: dict[bytes | None, dict[str, str]] = {}
        rows = self.records.column("headers").to_pylist()
        for one in rows:
            if one not in known:
                known[one] = _decoded(one)
        return [known[one] for one in rows]

    def _payload(self, wanted: Reference) -> list[Value]:
        found: list[Any] = self._payloads
        for step in wanted.steps:
            found = _under(found, step)
        return [one if type(one) in _PLAIN else self._plain(row, one, wanted) for row, one in enumerate(found)]

    def _plain(self, row: int, value: Any, wanted: Reference) -> Value:
        """There is one zero. Objects and lists become texts. What may have been a longer whole number is read again."""
        if type(value) is float and abs(value) < _LONG:
            return value + 0.0
        text = orjson.dumps(value).decode()
        if "e+" not in text:
            return text
        exact = [_exactly(self._texts[row].as_py())]
        for step in wanted.steps:
            exact = _under(exact, step)
        return exact[0] if type(exact[0]) in (int, float, _NOTHING) else _json(exact[0])

    def _level(self, wanted: Reference) -> pa.Array:
        """One, or from one on. What has levels is text."""
        whole = self.column(replace(wanted, level=0, onward=False))
        named = [*map(wanted.level_of, whole.places), None]  # the last for what is not there
        indices = whole.encoded[1] if whole.encoded else np.full(len(self), -1)
        return pa.array(named, pa.string()).take(pa.array(indices % len(named)))

    def _text(self) -> pa.Array:
        return _as_text(self.records.column("value"))

    def _file(self, wanted: Reference) -> Any:
        """Of what is no file nothing is there."""
        if self._path is not None and wanted.name == "offset":
            return self.records.column("offset").to_pylist()
        said = self._path if self._path is None or wanted.name == "path" else os.path.basename(self._path)
        return pa.repeat(pa.scalar(said, pa.string()), len(self))

    def _change(self, wanted: Reference) -> pa.Array:
        if wanted.name == "table":
            return tables_of(self.records)
        return pa.array(OPERATIONS, pa.string()).take(self.records.column("operation"))

    def _header(self, wanted: Reference) -> list[Value]:
        return [one.get(wanted.name) or None for one in self._headers]

    def _own(self, name: str) -> pa.Array:
        """As RocketMQ has them: what is empty is not there."""
        column = self.records.column(name)
        return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


_MAKERS: Mapping[str, Callable[[Fields, Reference], Any]] = {
    "payload": Fields._payload,
    "text": lambda fields, _: fields._text(),
    "topic": lambda fields, _: fields.topics,
    "header": Fields._header,
    "tags": lambda fields, _: fields._own("tags"),
    "key": lambda fields, _: fields._own("key"),
    "file": Fields._file,
    "change": Fields._change,
}
_PLAIN = frozenset((str, int, bool, _NOTHING))


def _under(values: list[Any], step: str | int) -> list[Any]:
    if isinstance(step, str):
        return [one.get(step) if type(one) is dict else None for one in values]
    return [_item(one, step) for one in values]


def _item(value: Any, place: int) -> Any:
    return value[place] if type(value) is list and -len(value) <= place < len(value) else None


def _decoded(headers: bytes | None) -> dict[str, str]:
    try:
        return decode_headers(headers)
    except UnicodeDecodeError:
        return decode_headers((headers or b"").decode(errors="replace").encode())


def _parsed(body: bytes | None) -> Any:
    try:
        return orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return None


def _exactly(body: bytes) -> Any:
    """What `orjson` has read already, with all digits of whole numbers; missing where it is nested too deep."""
    try:
        return json.loads(body)
    except RecursionError:
        return None


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # of whole numbers beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _written(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _json(value)


def _as_text(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([one and one.decode(errors="replace") for one in values.to_pylist()], pa.string())
