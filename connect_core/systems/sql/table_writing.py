"""Rows of a batch into a table, within a transaction that somebody else begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from connect_core.sdk.batches import ROW
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.sql.catalog import SqlColumn, SqlTable, relation
from connect_core.systems.sql.values import tuples, values_of
from connect_core.systems.tables.staging import staged

_AT_ONCE = 10_000
"""Rows of one call."""


class SqlWriter:
    """`columns` are those of the fields, in their order; `key` tells rows apart, empty: each is one more."""

    def __init__(self, table: SqlTable, columns: Sequence[SqlColumn], key: Sequence[str]) -> None:
        # SQLite lets most primary keys take NULL, which tells no rows apart.
        self._columns = [one._replace(required=one.required or one.name in key) for one in columns]
        self._key = key
        self._of_file = columns[0].of_file
        typed = [sa.column(one.name, sa.types.NullType() if one.of_file else one.type) for one in columns]
        self._table = relation(table.name, *typed)
        self._given = {one.name: sa.bindparam(f"waybill_{place}", type_=one.type) for place, one in enumerate(typed)}
        self._places = [[one.name for one in columns].index(name) for name in key]

    def write(self, into: sa.Connection, records: pa.RecordBatch) -> None:
        """Raises what SQLAlchemy raises, and RowsRefused."""
        if not self._key:
            self._add(into, self._rows(records.column(ROW)))
            return
        rows, numbers, gone = staged(records, self._key)
        last = self._last(rows, numbers)
        goes = gone.to_numpy(zero_copy_only=False)
        self._delete(into, [key for key, place in last.items() if goes[place]])
        come = pa.array(sorted(place for place in last.values() if not goes[place]), pa.int64())
        self._put(into, self._rows(rows.take(come)))

    def _last(self, rows: pa.StructArray, numbers: pa.Array) -> dict[tuple[Any, ...], int]:
        """By key where its last row is, in the order of the numbers."""
        keys = tuples([self._cells(rows, place) for place in self._places]) if len(rows) else []
        order = sorted(range(len(keys)), key=numbers.to_pylist().__getitem__)
        return {keys[place]: place for place in order}

    def _rows(self, rows: pa.StructArray) -> list[tuple[Any, ...]]:
        return tuples([self._cells(rows, place) for place in range(len(self._columns))]) if len(rows) else []

    def _cells(self, rows: pa.StructArray, place: int) -> list[Any]:
        return values_of(rows.type.field(place), rows.flatten()[place], self._columns[place])

    def _put(self, into: sa.Connection, rows: list[tuple[Any, ...]]) -> None:
        if self._of_file:
            self._execute(into, self._upsert(), rows)
            return
        self._update_or_add(into, rows)

    def _upsert(self) -> Any:
        others = [name for name in self._given if name not in self._key] or [self._key[0]]
        insert = sqlite.insert(self._table).values(self._given).prefix_with("OR ABORT")
        return insert.on_conflict_do_update(
            index_elements=[self._table.c[name] for name in self._key],
            set_={name: insert.excluded[name] for name in others},
        )

    def _update_or_add(self, into: sa.Connection, rows: list[tuple[Any, ...]]) -> None:
        """Where there is no word for both. To the database another spelling of a text may be the same key: its row is
        not meant."""
        mine = sa.select(*(self._table.c[name] for name in self._key)).where(self._is_key())
        there, new = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
        for row in rows:
            found = into.execute(mine, self._bound(row)).first()
            if found is not None and tuple(found) != tuple(row[place] for place in self._places):
                raise RowsRefused("KeyTaken", "The table has its key in another spelling, which it takes for the same")
            (new if found is None else there).append(row)
        if changed := {name: one for name, one in self._given.items() if name not in self._key}:
            for row in there:
                into.execute(sa.update(self._table).where(self._is_key()).values(changed), self._bound(row))
        self._add(into, new)

    def _add(self, into: sa.Connection, rows: list[tuple[Any, ...]]) -> None:
        insert = sa.insert(self._table).values(self._given)
        # What the table itself says of conflicts (ON CONFLICT REPLACE) would take other rows away.
        self._execute(into, insert.prefix_with("OR ABORT") if self._of_file else insert, rows)

    def _delete(self, into: sa.Connection, keys: list[tuple[Any, ...]]) -> None:
        if keys:
            bound = [{f"waybill_{place}": one for place, one in zip(self._places, key, strict=True)} for key in keys]
            into.execute(sa.delete(self._table).where(self._is_key()), bound)

    def _is_key(self) -> sa.ColumnElement[bool]:
        return sa.and_(*(self._table.c[name] == self._given[name] for name in self._key))

    def _execute(self, into: sa.Connection, statement: Any, rows: list[tuple[Any, ...]]) -> None:
        """Raises RowsRefused for a row that a trigger leaves out, where the database tells how many there are."""
        for begin in range(0, len(rows), _AT_ONCE):
            part = [self._bound(row) for row in rows[begin : begin + _AT_ONCE]]
            done = into.execute(statement, part, execution_options={"preserve_rowcount": True}).rowcount
            if self._of_file and done != len(part):
                raise RowsRefused("LeftOut", "A trigger of the table leaves the row out")

    def _bound(self, row: tuple[Any, ...]) -> dict[str, Any]:
        return {f"waybill_{place}": value for place, value in enumerate(row)}
