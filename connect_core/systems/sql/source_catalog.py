"""What a database says of a table that is read: its columns, where its numbers come from, and its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from connect_core.errors import ConfigError, DataError
from connect_core.systems.sql.catalog import SqlTable, relation, require_table
from connect_core.systems.sql.readable import SqlRowReader, UnfitValue, is_readable
from connect_core.systems.sql.row_times import FORMS, KINDS, changed_in, has_other_form, is_time
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.tables.pages import Page, Row, UnfitRow
from connect_core.systems.tables.passes import TimeWindow
from connect_core.systems.tables.probed_rows import MANY

_BATCH = 500
"""Rows that a driver of a server fetches at once."""


class SqlSourceTable(NamedTuple):
    relation: sa.TableClause
    """Its columns have no type in SQLite: what is in a row is given as it is."""
    name: str
    origin: str
    """Names this column of a table of this name: nothing tells a table from one made again."""
    id: str
    """The column that numbers rows."""
    rows: SqlRowReader
    row_id: str
    """See `SqlTable`."""
    counts: bool
    time: sa.ColumnElement[Any] | None = None
    """The column with the time of a row's last change; None: rows are read once."""
    time_type: sa.types.TypeEngine[Any] = sa.types.NULLTYPE
    """As it is declared."""
    is_query: bool = False
    is_keyed: bool = False

    @property
    def numbering(self) -> str:
        """Nothing tells whether numbers begin anew, but a lower one."""
        return ""

    @property
    def number(self) -> sa.ColumnElement[Any]:
        return self.relation.c[self.id]


def read_source_table(asking: sa.Connection, options: SqlSourceOptions) -> SqlSourceTable:
    """Raises Unreachable where it is not there, and ConfigError with the first thing for which rows of it could be lost
    or changed."""
    where = f"{options.url}/{options.table}"
    table = require_table(asking, options.table, where)
    ids = options.incrementing or _id_of(table, where, ascends=not (options.bulk or options.timestamp))
    time = options.timestamp or ""
    for wrong, step in (*_misfits(table, ids), *_misfits_of_time(table, time)):
        raise ConfigError(wrong, where=where, next_step=step)
    columns = [sa.column(one.name, sa.types.NullType() if one.of_file else one.type) for one in table.columns]
    named = f"{table.name.lower()}/{ids}" + (f"/{time}" if time else "")
    origin = hashlib.blake2b(named.encode(), digest_size=8).hexdigest()
    rows, source = SqlRowReader(table.columns, table.key), relation(table.name, *columns)
    found = SqlSourceTable(source, table.name, origin, ids, rows, table.row_id, table.counts)
    if not time:
        return found
    return found._replace(time=source.c[time], time_type=_type_of(table, time))


def _type_of(table: SqlTable, name: str) -> sa.types.TypeEngine[Any]:
    return next(column.type for column in table.columns if column.name == name)


def _id_of(table: SqlTable, where: str, *, ascends: bool) -> str:
    types = {column.name: column.type for column in table.columns}
    does = "ascend: each new row gets a higher one" if ascends else "tell rows apart; they need not ascend"
    if len(table.key) != 1 or not isinstance(types[table.key[0]], sa.Integer):
        raise ConfigError(
            "The primary key of the table is not one column of whole numbers",
            where=where,
            next_step=f"Write incrementing: COLUMN, a column of whole numbers that {does}",
        )
    return table.key[0]


def _misfits(table: SqlTable, ids: str) -> Iterator[tuple[str, str]]:
    columns = {column.name: column for column in table.columns}
    if ids not in columns:
        yield f"The table has no column {ids}", "Name the column whose numbers ascend as incrementing"
        return
    if not isinstance(columns[ids].type, sa.Integer):
        yield f"Column {ids} is {columns[ids].kind}", "Name a column of whole numbers as incrementing"
    for column in table.columns:
        if not is_readable(column):
            step = "docs/sql-tables.md has the types that are kept exactly. Change the column, or copy the table"
            yield f"Column {column.name} is {column.kind}, which is not kept exactly", step
    if not columns[ids].required:
        yield f"Column {ids} takes NULL, and such rows would never be read", "Name a column that is NOT NULL"
    if frozenset((ids,)) not in table.unique:
        words = f"No index of the table says that column {ids} alone is unique"
        yield words, f"CREATE UNIQUE INDEX … ON … ({ids})"


def _misfits_of_time(table: SqlTable, name: str) -> Iterator[tuple[str, str]]:
    column = next((one for one in table.columns if one.name == name), None)
    if not name:
        return
    if column is None:
        yield f"The table has no column {name}", "Name the column with the time of the last change as timestamp"
    elif not is_time(column.type):
        step = f"Name a column of type {KINDS}, which has {FORMS}"
        yield f"Column {name} is {column.kind}, which says no time of a change", step
    elif not column.required:
        yield f"Column {name} takes NULL, and such rows would never be read", "Name a column that is NOT NULL"


def check_times(asking: sa.Connection, table: SqlSourceTable, where: str) -> None:
    """Raises DataError where the time of a row is of a form that does not count: nobody would read that row."""
    if table.time is None:
        return
    other = sa.text(has_other_form(table.time, table.time_type))
    found = asking.execute(sa.select(table.number).select_from(table.relation).where(other).limit(1)).first()
    if found:
        words = f"Column {table.time.name} of the row with number {found[0]} has no time of a form that is read"
        step = f"Write the time of this moment into it, as {FORMS}; the row is read then"
        raise DataError(words, where=where, next_step=step)


def host_now(asking: sa.Connection) -> float:
    """Seconds since 1970, by the clock that SQLite asks for the time."""
    return float(asking.exec_driver_sql("SELECT (julianday('now') - 2440587.5) * 86400").scalar() or 0)


def rows_to_come(asking: sa.Connection, table: SqlSourceTable, window: TimeWindow) -> int:
    """How many, up to `MANY`, are not in the window."""
    if table.time is None:
        return 0
    later = sa.not_(changed_in(table.time, table.time_type, window))
    some = sa.select(table.number).select_from(table.relation).where(later).limit(MANY).subquery()
    return int(asking.execute(sa.select(sa.func.count()).select_from(some)).scalar() or 0)


def extent(
    asking: sa.Connection, table: SqlSourceTable, where: str, window: TimeWindow | None = None
) -> tuple[int | None, int | None]:
    """The lowest and the highest number that are committed, of rows in `window`; None where there is no row. Each alone
    where an index has it."""
    if table.time is not None and window:
        both = sa.select(sa.func.min(table.number), sa.func.max(table.number)).select_from(table.relation)
        lowest, highest = asking.execute(both.where(changed_in(table.time, table.time_type, window))).one()
        return _whole(lowest, where), _whole(highest, where)
    lowest = asking.execute(sa.select(sa.func.min(table.number)).select_from(table.relation)).scalar()
    highest = asking.execute(sa.select(sa.func.max(table.number)).select_from(table.relation)).scalar()
    return _whole(lowest, where), _whole(highest, where)


def _whole(number: Any, where: str) -> int | None:
    """In SQLite another value than a whole number may be in such a column, unless it is INTEGER PRIMARY KEY."""
    if number is None or isinstance(number, int):
        return number
    words = "A row has no whole number in the column that numbers rows"
    raise DataError(words, where=where, next_step="Correct the row, or name another column as incrementing")


def stands_at(asking: sa.Connection, table: SqlSourceTable, where: str) -> int | None:
    """The highest number that SQLite has given out, and does not give out again; None where it gives none out."""
    if table.id != table.row_id:
        return None
    _, highest = extent(asking, table, where)
    counted = 0
    if table.counts:
        asked = sa.text("SELECT max(seq) FROM sqlite_sequence WHERE lower(name) = lower(:name)")
        counted = asking.execute(asked, {"name": table.name}).scalar() or 0
    return max(counted, highest or 0)


def page(
    asking: sa.Connection,
    table: SqlSourceTable,
    begin: int,
    end: int,
    most: int,
    most_bytes: int,
    where: str,
    window: TimeWindow | None = None,
) -> Page:
    """Rows of [begin, end), and in `window`, in the order of their numbers, until there are `most`, or their bytes
    reach `most_bytes`."""
    ids = table.number
    asked = _rows(table).where(ids >= begin, ids < end).order_by(ids).limit(most + 1)
    if table.time is not None and window:
        asked = asked.where(changed_in(table.time, table.time_type, window))
    found, unfit, size = list[Row](), list[UnfitRow](), 0
    with asking.execute(asked, execution_options={"stream_results": True, "max_row_buffer": _BATCH}) as result:
        for number, *values in result:
            if len(found) + len(unfit) == most or size >= most_bytes:
                return Page(found + _twin(found, unfit, number), at_end=False, unfit=unfit)
            at = _whole(number, where) or 0
            try:
                key, value = table.rows.read(values)
            except UnfitValue as error:
                unfit.append(UnfitRow(at, str(error), error.value))
                continue
            found.append((at, key, value))
            size += len(value)
    return Page(found, at_end=True, unfit=unfit)


def _twin(found: list[Row], unfit: list[UnfitRow], number: int) -> list[Row]:
    """The next row, where it has the number of the last one: for whoever looks whether numbers are unique."""
    last = max([*(row[0] for row in found[-1:]), *(one.id for one in unfit[-1:])])
    return [(number, None, "")] if number == last else []


def newest(asking: sa.Connection, table: SqlSourceTable, last: int) -> list[Row]:
    """The last rows, in order; those that no record can have are left out."""
    found = list[Row]()
    for number, *values in asking.execute(_rows(table).order_by(table.number.desc()).limit(last)):
        try:
            found.append((number, *table.rows.read(values)))
        except UnfitValue:
            continue
    return found[::-1]


def _rows(table: SqlSourceTable) -> sa.Select[Any]:
    return sa.select(table.number.label("waybill_number"), *table.relation.columns)
