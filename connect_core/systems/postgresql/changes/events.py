"""Changes of rows -> events as Debezium writes them, in JSON. Pure.

A change is the same bytes whenever it is read: nothing in an event depends on when, or by whom.
https://debezium.io/documentation/reference/stable/connectors/postgresql.html, "Data change events"
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted

from connect_core.systems.postgresql.changes.messages import FULL, UNCHANGED, Change, Relation, TransactionBegin, Tuple
from connect_core.systems.postgresql.changes.schemas import schema_text
from connect_core.systems.postgresql.changes.values import ToJson, column_type, to_json
from connect_core.systems.tables.change_events import Event, UnfitForEvent
from connect_core.systems.tables.snapshots import Key

UNAVAILABLE = '"__debezium_unavailable_value"'
"""What consumers know as a value that is not there."""


@dataclass
class _Layout:
    """How rows of a relation are written: of each column its name, quoted with a colon, and what makes its value."""

    topic: str
    columns: list[tuple[str, ToJson]]
    key: list[int]
    source: str
    head: str
    """What is before an event in its payload: its schema, where it has one."""


class ChangeEventWriter:
    """Of one stream: what relations and types are is said in it, before what is of them."""

    def __init__(
        self, database: str, primary_key: Callable[[Relation], Collection[str]], *, schemas: bool = False
    ) -> None:
        """`primary_key` is asked for the columns of that of a relation whose stream does not tell them; `schemas`:
        whether each event has its schema."""
        self._database, self._primary_key, self._schemas = database, primary_key, schemas
        self._types: dict[int, str] = {}
        self._layouts: dict[int, _Layout] = {}
        self._chunk = _Layout("", [], [], "", "")
        self._begin, self._number, self._by_table = TransactionBegin(0, 0, 0), 0, dict[str, int]()

    def knows_type(self, oid: int, name: str) -> None:
        self._types[oid] = name

    def knows(self, of: Relation) -> None:
        self._layouts[of.oid] = self._layout(of, self._types)

    def knows_chunk(self, of: Relation, types: dict[int, str]) -> None:
        """Rows of a snapshot that come next."""
        self._chunk = self._layout(of, types)

    def _layout(self, of: Relation, types: dict[int, str]) -> _Layout:
        kinds = [(one.name, column_type(one.kind, one.modifier, types.get(one.kind, ""))) for one in of.columns]
        columns = [(f"{quoted(name)}:", to_json(kind)) for name, kind in kinds]
        names = {one.name for one in of.columns if one.of_key} if of.identity != FULL else self._primary_key(of)
        key = [place for place, one in enumerate(of.columns) if one.name in names]
        head = f'{{"schema":{schema_text(kinds)},"payload":' if self._schemas else ""
        place = ",".join(
            f'"{name}":{quoted(text)}'
            for name, text in (("db", self._database), ("schema", of.schema), ("table", of.table))
        )
        return _Layout(f"{of.schema}.{of.table}", columns, key, place, head)

    def begins(self, transaction: TransactionBegin) -> None:
        self._begin, self._number, self._by_table = transaction, 0, {}

    def change(self, of: Change, lsn: int) -> Event:
        layout = self._layouts[of.relation]
        old, new = of.old, of.new
        if new is not None and old is not None and not of.of_key:
            new = [was if one is UNCHANGED else one for one, was in zip(new, old, strict=True)]
        unfit: list[str] = []
        before = "null" if old is None else self._row(layout, old, unfit, only=layout.key if of.of_key else None)
        after = "null" if new is None else self._row(layout, new, unfit)
        value = self._whole(layout, f'"before":{before},"after":{after},', of.operation, lsn)
        key = self._key(layout, new if new is not None else old, unfit)
        return Event(layout.topic, key, value, self._begin.at_ms, unfit[0] if unfit else "")

    def row(self, values: Tuple, lsn: int) -> Event:
        """Of a snapshot."""
        unfit: list[str] = []
        after = self._row(self._chunk, values, unfit)
        value = self._whole(self._chunk, f'"before":null,"after":{after},', "r", lsn)
        key = self._key(self._chunk, values, unfit)
        return Event(self._chunk.topic, key, value, self._begin.at_ms, unfit[0] if unfit else "")

    def keys(self, of: Change) -> Iterator[Key | None]:
        """Of the row, before and after; None where one is not known."""
        places = self._layouts[of.relation].key
        for values in (of.old, of.new):
            if values is not None:
                key = tuple(text for place in places if isinstance(text := values[place], str))
                yield key if key and len(key) == len(places) else None

    def row_key(self, values: Sequence[str | None]) -> Key:
        """Of a row of a snapshot."""
        return tuple(values[place] or "" for place in self._chunk.key)

    def truncated(self, relation: int, lsn: int) -> Event:
        layout = self._layouts[relation]
        return Event(layout.topic, None, self._whole(layout, "", "t", lsn), self._begin.at_ms)

    def passed(self, relation: int) -> None:
        """A change that nobody wants is counted in its transaction all the same."""
        self._order(self._layouts[relation])

    def row_passed(self) -> None:
        """The same of a row of a snapshot."""
        self._order(self._chunk)

    def _order(self, layout: _Layout) -> tuple[int, int]:
        self._number += 1
        within = self._by_table[layout.topic] = self._by_table.get(layout.topic, 0) + 1
        return self._number, within

    def _whole(self, layout: _Layout, images: str, operation: str, lsn: int) -> bytes:
        tail = "}" if layout.head else ""
        return f"{layout.head}{{{images}{self._rest(layout, operation, lsn)}}}{tail}".encode()

    def _rest(self, layout: _Layout, operation: str, lsn: int) -> str:
        number, within = self._order(layout)
        begin = self._begin
        return (
            f'"source":{{"version":"1","connector":"postgresql","name":{quoted(self._database)},"ts_ms":{begin.at_ms},'
            f'"snapshot":"{"incremental" if operation == "r" else "false"}",{layout.source},'
            f'"txId":{begin.xid},"lsn":{lsn}}},'
            f'"transaction":{{"id":"{begin.xid}:{begin.commit}","total_order":{number},'
            f'"data_collection_order":{within}}},"op":"{operation}","ts_ms":{begin.at_ms}'
        )

    def _row(self, layout: _Layout, values: Tuple, unfit: list[str], only: list[int] | None = None) -> str:
        """`only`: the places of what is there; of an old key the others are null, and not known."""
        written = []
        for place, ((name, write), value) in enumerate(zip(layout.columns, values, strict=True)):
            if only is not None and place not in only:
                continue
            if value is None:
                written.append(f"{name}null")
            elif value is UNCHANGED:
                written.append(name + UNAVAILABLE)
            else:
                written.append(name + _value(name, write, str(value), unfit))
        return f"{{{','.join(written)}}}"

    def _key(self, layout: _Layout, values: Tuple | None, unfit: list[str]) -> str | None:
        """Of one column its text; of several an object."""
        if not values or not layout.key:
            return None
        if len(layout.key) == 1:
            value = values[layout.key[0]]
            return value if isinstance(value, str) else None
        return self._row(layout, values, unfit, only=layout.key)


def _value(name: str, write: ToJson, text: str, unfit: list[str]) -> str:
    try:
        return write(text)
    except UnfitForEvent as why:
        unfit.append(f"{name[:-1]} {why}")
        return quoted(text)
