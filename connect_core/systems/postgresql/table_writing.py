"""Rows of a batch into a table, within a transaction that somebody else begins and ends."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from psycopg2.extensions import cursor

from connect_core.errors import Retriable
from connect_core.sdk.batches import ROW
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.postgresql.catalog import Table, TableColumn, form_of, quoted, quoted_name
from connect_core.systems.postgresql.copying import Column, csv_lines
from connect_core.systems.tables.staging import staged

_LIMITED = re.compile(r"character varying\((\d+)\)")
_LEFT_OUT = "A trigger or a policy of the table leaves the row out"


class TableWriter:
    """`columns` are those of the fields, in their order; `key` tells rows apart, empty: each is one more. `number` is
    that of the table among those that are written in one session."""

    def __init__(
        self, name: str, table: Table, columns: Sequence[TableColumn], key: Sequence[str], number: int = 0
    ) -> None:
        self._name, self._form = name, table.form
        self._stage = f"waybill_stage{number or ''}"
        self._columns, self._key = columns, key
        self._table = quoted(name)
        self._names = ", ".join(quoted_name(one.name) for one in columns)
        longest = "_" * max((len(one.name) for one in columns), default=0)
        self._number, self._gone = f'"n{longest[:50]}"', f'"g{longest[:50]}"'
        """Of the table that rows come into first: their order, and whether they are deleted. No column is called so."""

    def put(self, into: cursor, records: pa.RecordBatch) -> None:
        """Raises what the driver of the database raises, and RowsRefused. Behind it comes `check`."""
        if not self._key:
            self._copy(into, f"{self._table} ({self._names})", self._of(records.column(ROW)))
            _check_all_there(into.rowcount, len(records))
            return
        rows, number, gone = staged(records, self._key)
        order = [(pa.field("number", number.type), number, "bigint"), (pa.field("gone", gone.type), gone, "boolean")]
        self._make_stage(into)
        names = f"{self._names}, {self._number}, {self._gone}"
        self._copy(into, f"pg_temp.{self._stage} ({names})", [*self._of(rows), *order])
        self._merge(into)

    def check(self, into: cursor) -> None:
        """Raises Retriable where the table was altered since it was looked at: a column of another type may round."""
        if form_of(into, self._name) != self._form:  # from here on the lock of the rows keeps it as it is
            step = "Nothing of it is committed; the next attempt looks at the columns again"
            raise Retriable("The table was altered while it was written", next_step=step)

    def _of(self, rows: pa.StructArray) -> list[Column]:
        columns = [
            (field, values, of.kind) for field, values, of in zip(rows.type, rows.flatten(), self._columns, strict=True)
        ]
        for _, values, kind in columns:
            _check_length(values, kind)
        return columns

    def _copy(self, into: cursor, place: str, columns: Sequence[Column]) -> None:
        into.copy_expert(f"COPY {place} FROM STDIN (FORMAT csv)", io.BytesIO(csv_lines(columns)))

    def _make_stage(self, into: cursor) -> None:
        """Of this session alone, and empty when a transaction begins."""
        into.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS {self._stage} ON COMMIT DELETE ROWS AS SELECT {self._names},"
            f" 0::bigint AS {self._number}, false AS {self._gone} FROM {self._table} WITH NO DATA"
        )

    def _merge(self, into: cursor) -> None:
        """Of the rows with one key the last counts."""
        key, stage = ", ".join(map(quoted_name, self._key)), f"pg_temp.{self._stage}"
        last = f"(SELECT DISTINCT ON ({key}) * FROM {stage} ORDER BY {key}, {self._number} DESC) last"
        same = " AND ".join(f"target.{name} = last.{name}" for name in map(quoted_name, self._key))
        into.execute(f"DELETE FROM {self._table} target USING {last} WHERE last.{self._gone} AND {same}")
        into.execute(f"SELECT count(*) FROM {last} WHERE NOT {self._gone}")
        [wanted] = into.fetchone() or (0,)
        others = [quoted_name(one.name) for one in self._columns if one.name not in self._key]
        changed = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        into.execute(
            f"INSERT INTO {self._table} ({self._names}) SELECT {self._names} FROM {last} WHERE NOT {self._gone}"
            f" ON CONFLICT ({key}) DO {f'UPDATE SET {changed}' if changed else 'NOTHING'}"
        )
        if changed:
            _check_all_there(into.rowcount, wanted)


def _check_length(texts: pa.Array, kind: str) -> None:
    """The database cuts blanks at the end of a text that is too long, and says nothing."""
    found = _LIMITED.fullmatch(kind)
    if found and pc.any(pc.greater(pc.utf8_length(texts), int(found[1])), min_count=0).as_py():
        raise RowsRefused("StringDataRightTruncation", f"A text is longer than {kind}")


def _check_all_there(written: int, wanted: int) -> None:
    """A trigger may leave a row out and say nothing."""
    if written != wanted:
        raise RowsRefused("LeftOut", _LEFT_OUT)
