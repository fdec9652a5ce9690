"""Rows of a batch into a table, within a transaction that somebody else begins and ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pymysql.cursors import Cursor

from connect_core.errors import Retriable
from connect_core.sdk.batches import ROW
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.mysql.catalog import MysqlColumn, MysqlTable, form_of, quoted, quoted_name
from connect_core.systems.mysql.changes import changes, conditions
from connect_core.systems.mysql.connecting import MysqlServer
from connect_core.systems.mysql.failures import changing
from connect_core.systems.mysql.literals import cell, check_values, tuples

_MOST_BYTES = 1 << 20
"""Of a statement, where the server takes as many."""
_MOST_KEYS = 500
_SPARE_BYTES = 1024
"""Of a packet, for what is not the statement."""


class MysqlWriter:
    """`columns` are those of the fields, in their order; `key` tells rows apart, empty: each is one more."""

    def __init__(
        self, table: MysqlTable, columns: Sequence[MysqlColumn], key: Sequence[str], server: MysqlServer
    ) -> None:
        self._place, self._form = (table.database, table.name), table.form
        self._columns = {one.name: one for one in columns}
        self._key = key
        self._table = quoted(self._place)
        self._max_packet = server.max_packet - _SPARE_BYTES
        self._insert = f"INSERT INTO {self._table} ({', '.join(map(quoted_name, self._columns))}) VALUES "
        self._update = self._updating(server) if key else ""

    def _updating(self, server: MysqlServer) -> str:
        """What is done to a row that is there. MySQL warns of what MariaDB has alone."""
        others = [quoted_name(name) for name in self._columns if name not in self._key]
        if not others:
            return f" ON DUPLICATE KEY UPDATE {', '.join(f'{one}={one}' for one in map(quoted_name, self._key))}"
        if server.names_new_rows:
            return f" AS come ON DUPLICATE KEY UPDATE {', '.join(f'{one}=come.{one}' for one in others)}"
        return f" ON DUPLICATE KEY UPDATE {', '.join(f'{one}=VALUES({one})' for one in others)}"

    def write(self, into: Cursor, records: pa.RecordBatch) -> None:
        """Raises what the driver of the database raises, RowsRefused, and Retriable where the table was altered since
        it was looked at: a column of another type may round."""
        self._put(into, records)
        if form_of(into, self._place) != self._form:  # from here on the lock of the rows keeps it as it is
            step = "Nothing of it is committed; the next attempt looks at the columns again"
            raise Retriable("The table was altered while it was written", next_step=step)

    def _put(self, into: Cursor, records: pa.RecordBatch) -> None:
        if not self._key:
            self._add(into, records.column(ROW))
            return
        gone, come = changes(records, self._key)
        self._delete(into, gone)
        self._add(into, come)
        self._check_spelling(into, come)

    def _add(self, into: Cursor, rows: pa.StructArray) -> None:
        cells = []
        for field, values in zip(rows.type, rows.flatten(), strict=True):
            check_values(field, values, self._columns[field.name])
            cells.append(cell(field, values))
        for part in self._parts(tuples(cells), len(rows)):
            self._execute(into, f"{self._insert}{','.join(part)}{self._update}")

    def _delete(self, into: Cursor, rows: pa.StructArray) -> None:
        for part in self._parts(conditions(rows, self._key), _MOST_KEYS):
            self._execute(into, f"DELETE FROM {self._table} WHERE {' OR '.join(part)}")

    def _check_spelling(self, into: Cursor, rows: pa.StructArray) -> None:
        """Of two texts that the column takes for one key the second would have gone into the row of the first."""
        if not any(pa.types.is_string(rows.type.field(name).type) for name in self._key):
            return
        for part in self._parts(conditions(rows, self._key), _MOST_KEYS):
            into.execute(f"SELECT COUNT(*) FROM {self._table} WHERE {' OR '.join(part)}")
            [there] = into.fetchone() or (0,)
            if there != len(part):
                words = "The table has its key in another spelling, which its collation takes for the same"
                raise RowsRefused("KeyTaken", words)

    def _parts(self, texts: pa.Array, most: int) -> Iterator[list[str]]:
        """So many texts as one statement takes."""
        if not len(texts):
            return
        sizes = pc.add(pc.binary_length(texts), 4).to_numpy()
        room = self._max_packet - len(self._insert.encode()) - len(self._update.encode())
        if int(sizes.max()) > room:
            raise RowsRefused("TooLong", "The row is longer than the server takes statements (max_allowed_packet)")
        ends, begin = np.cumsum(sizes), 0
        while begin < len(texts):
            before = int(ends[begin - 1]) if begin else 0
            within = int(np.searchsorted(ends, before + min(room, _MOST_BYTES), side="right"))
            end = min(max(within, begin + 1), begin + most)
            yield texts.slice(begin, end - begin).to_pylist()
            begin = end

    def _execute(self, into: Cursor, statement: str) -> None:
        into.execute(statement)
        if refusal := changing(into):
            raise refusal
