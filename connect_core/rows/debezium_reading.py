"""Change events of Debezium's JSON, with their schema or without -> rows. Pure.

An event is taken apart into texts, and the images of its row are read as envelopes are: so types, and what is done with
a field that nobody declared, are the same. Without a schema, values are read as Debezium writes them by default.
https://debezium.io/documentation/reference/stable/connectors/postgresql.html, "Data change events"
"""

from __future__ import annotations

import json
from base64 import b64encode
from binascii import hexlify
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rows.envelope_writing import compact, rows_schema
from connect_core.rows.json_envelopes import EnvelopeReader
from connect_core.rows.json_members import SCANNER, members_of
from connect_core.rows.json_reading import Read
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type
from connect_core.sdk.records import OPERATION_CREATE, OPERATION_DELETE, OPERATION_SNAPSHOT, OPERATION_UPDATE

_OPERATIONS: Mapping[str, int] = {
    '"c"': OPERATION_CREATE,
    '"u"': OPERATION_UPDATE,
    '"d"': OPERATION_DELETE,
    '"r"': OPERATION_SNAPSHOT,
}
"""By the text of `op`."""
SCHEMAS = 1000
"""So many are remembered."""
UNAVAILABLE = b"__debezium_unavailable_value"
"""What an event has by default in the place of a large value that did not change (TOAST of PostgreSQL)."""
_AS_TEXTS = pa.array([one.decode() for one in (UNAVAILABLE, b64encode(UNAVAILABLE), hexlify(UNAVAILABLE))])
"""Of a text, and of bytes by each `binary.handling.mode` that makes texts of them."""

_NO_EVENT = "not one JSON object with op, before and after"
_NOT_THERE = (
    "the event does not have this value, which is large and did not change: with REPLICA IDENTITY FULL it would; or"
    " leave the field out of fields, with unknown: drop"
)
_OTHERS = {
    '"t"': "a truncate, which says nothing of single rows",
    '"m"': "a message, which is of no row",
    "": _NO_EVENT,
}


class _Event(NamedTuple):
    operation: int
    row: str
    """The row as it is now; of one that was deleted, as it was."""
    before: str | None
    schema: str
    """The text of that of the row; `null`: none is given."""


class _Unread(ValueError):
    """Why a payload is no change of a row."""


class DebeziumReader:
    """`unknown` as the reader of JSON has it, of fields of the row."""

    def __init__(self, rows: Type, *, unknown: Literal["reject", "drop"] = "reject") -> None:
        self._type = arrow_type(rows)
        self._images = EnvelopeReader(rows, unknown=unknown)
        self._usual = compact(rows_schema(self._type, "debezium"))
        self._schemas: dict[str, str] = {}

    def read(self, values: pa.Array) -> Read:
        """`values` are binary. Each is a change of a row or has a reason."""
        unfit: dict[int, str] = {}
        events: list[tuple[int, _Event]] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                events.append((row, self._event(value)))
            except _Unread as why:
                unfit[row] = str(why)
        rows = self._read([(row, event.schema, event.row) for row, event in events], "", unfit)
        given = [(row, event.schema, event.before) for row, event in events if event.before is not None]
        for row, name in _unavailable(*rows):
            unfit.setdefault(row, f"{name}: {_NOT_THERE}")
        before = self._read(given, "before: ", unfit)
        unknown = {row for row, _ in _unavailable(*before)}
        before = _without(*before, unknown)
        changes = [(row, event.operation) for row, event in events if row not in unfit]
        kept = [row for row, _ in changes]
        return Read(
            _at(rows, kept, self._type),
            sorted(unfit.items()),
            pa.array([operation for _, operation in changes], pa.int8()),
            _at(before, kept, self._type),
        )

    def _read(
        self, images: Sequence[tuple[int, str, str]], place: str, unfit: dict[int, str]
    ) -> tuple[list[int], pa.StructArray]:
        """Which rows there are, and these."""
        values = [f'{{"schema":{schema},"payload":{image}}}'.encode() for _, schema, image in images]
        read = self._images.read(pa.array(values, pa.binary()))
        wrong = dict(read.unfit)
        for number, why in wrong.items():
            unfit.setdefault(images[number][0], place + why.removeprefix("payload: "))
        return [row for number, (row, _, _) in enumerate(images) if number not in wrong], read.rows

    def _event(self, value: bytes | None) -> _Event:
        members = _members(value)
        schema = "null"
        if members.keys() == {"schema", "payload"}:
            schema, members = members["schema"], _members(members["payload"].encode())
        operation = _operation(members.get("op", ""))
        before, after = _image(members, "before"), _image(members, "after")
        row = before if operation == OPERATION_DELETE else after
        if row is None:
            raise _Unread(f"no {'before of a delete' if operation == OPERATION_DELETE else 'after'}")
        return _Event(operation, row, before, self._usual if schema == "null" else self._row_schema(schema))

    def _row_schema(self, text: str) -> str:
        """Of a whole event, that of its row."""
        known = self._schemas.get(text)
        if known is None:
            if len(self._schemas) >= SCHEMAS:
                self._schemas.clear()
            known = self._schemas[text] = _of_row(text)
        return known


def _unavailable(numbers: Sequence[int], rows: pa.StructArray) -> Iterator[tuple[int, str]]:
    """Of which rows a value is not there, and of which field."""
    for field, column in zip(rows.type, rows.flatten(), strict=True):
        yield from ((numbers[place], field.name) for place in _holding(column))


def _holding(column: pa.Array) -> list[int]:
    """The places whose value is not there, or has one within it that is not."""
    if pa.types.is_struct(column.type):
        return [place for inner in column.flatten() for place in _holding(inner)]
    if pa.types.is_list(column.type):
        found = pa.array(_holding(column.flatten()), pa.int64())
        return pc.unique(pc.list_parent_indices(column).take(found)).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_string(column.type):
        found = pc.is_in(column, _AS_TEXTS)
    elif pa.types.is_binary(column.type):
        found = pc.fill_null(pc.equal(column, UNAVAILABLE), False)
    else:
        return []
    return pc.indices_nonzero(found).to_pylist()  # type: ignore[no-any-return]


def _without(numbers: list[int], rows: pa.StructArray, others: set[int]) -> tuple[list[int], pa.StructArray]:
    kept = [place for place, row in enumerate(numbers) if row not in others]
    return [numbers[place] for place in kept], rows.take(pa.array(kept, pa.int64()))


def _at(found: tuple[list[int], pa.StructArray], wanted: Sequence[int], kind: pa.StructType) -> pa.StructArray:
    """Of these rows; null where none was found."""
    places = {row: place for place, row in enumerate(found[0])}
    taken = found[1].take(pa.array([places.get(row) for row in wanted], pa.int64()))
    return taken if taken.type == kind else taken.cast(kind)


def _members(value: bytes | None) -> dict[str, str]:
    if not value:
        raise _Unread("empty: a tombstone has no row")
    try:
        return members_of(value.decode())
    except UnicodeDecodeError:
        raise _Unread("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _Unread(f"not JSON, from character {error.pos + 1} on") from None
    except (ValueError, RecursionError):
        raise _Unread(_NO_EVENT) from None


def _operation(text: str) -> int:
    if (known := _OPERATIONS.get(text)) is None:
        raise _Unread(_OTHERS.get(text, "op is none that Debezium has"))
    return known


def _image(members: Mapping[str, str], name: str) -> str | None:
    text = members.get(name, "null")
    return None if text == "null" else text


def _of_row(text: str) -> str:
    try:
        schema = SCANNER.decode(text)
        fields = {field["field"]: field for field in schema["fields"]}
        return compact(fields["after"] if "after" in fields else fields["before"])
    except (ValueError, RecursionError, TypeError, LookupError, AttributeError):
        raise _Unread("the schema is not that of an event, with before and after") from None
