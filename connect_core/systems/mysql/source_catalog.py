"""What the database says of a table that is read: which one it is, its columns, and where its numbers come from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.systems.mysql.catalog import MysqlColumn, MysqlTable, quoted, quoted_name, read_table
from connect_core.systems.mysql.connecting import server_of
from connect_core.systems.mysql.fitting import check_engine
from connect_core.systems.mysql.keyed_rows import DIGEST
from connect_core.systems.mysql.metadata_locks import looking_into_schema
from connect_core.systems.mysql.readable import RowReader, is_readable
from connect_core.systems.mysql.row_keys import key_columns, signature, unfit_key
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.tables.probed_rows import POINT

_DIGEST_OF_NOTHING = hashlib.sha256().hexdigest()
WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint")
_OLDEST = {True: (10, 5), False: (8, 0)}
"""Versions, of MariaDB and of MySQL: older ones give numbers again after a restart."""


class MysqlSourceTable(NamedTuple):
    relation: str
    """What stands behind FROM."""
    places: tuple[tuple[str, str], ...]
    """The tables whose writers may bring a row."""
    origin: str
    """Names this column of a table of this name: MySQL has nothing that tells a table from one made again."""
    id: str
    """The column that numbers rows: by it new ones are found, if `time` does not say more. Empty: their keys do."""
    counts: bool
    """Whether the database gives out its numbers."""
    rows: RowReader
    is_mariadb: bool
    time: str = ""
    """The column with the time of a row's last change; empty: rows are read once."""
    is_query: bool = False
    key: tuple[MysqlColumn, ...] = ()
    """Of its primary key, where that numbers rows."""

    @property
    def is_keyed(self) -> bool:
        return not self.id

    @property
    def numbering(self) -> str:
        """Nothing tells whether the counter was set back, but a lower one."""
        return ""


_THERE = """
SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'
AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
AND LOCATE('.', CONCAT(TABLE_SCHEMA, TABLE_NAME)) = 0
"""
"""A name with a point in it cannot be written in a document."""


_OTHERS = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES
WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
AND (TABLE_TYPE <> 'BASE TABLE' OR LOCATE('.', CONCAT(TABLE_SCHEMA, TABLE_NAME)) > 0)
"""
_KINDS = {
    "BASE TABLE": POINT,
    "VIEW": "no table but a view",
    "SEQUENCE": "no table but a sequence",
    "SYSTEM VERSIONED": "a system-versioned table",
}


def tables_there(asking: Cursor) -> list[str]:
    """As DATABASE.TABLE; views and sequences are none."""
    asking.execute(_THERE)
    return [str(name) for (name,) in asking.fetchall()]


def others_there(asking: Cursor) -> list[tuple[str, str, str]]:
    """Database and name of what no pattern means, and why."""
    asking.execute(_OTHERS)
    return [(str(within), str(name), _KINDS.get(kind, str(kind).lower())) for within, name, kind in asking.fetchall()]


def read_source_table(asking: Cursor, options: MysqlSourceOptions) -> MysqlSourceTable:
    """Raises Unreachable where it is not there, Refused by a server that gets rows from another one where that matters,
    and ConfigError with the first thing for which rows of it could be lost or changed."""
    place = options.split(options.table)
    where = f"{options.address}/{options.table}"
    is_mariadb = check_server(asking, where, order_matters=not options.bulk)
    table = read_table(asking, place)
    if table is None:
        step = "Create it, or name another one; the next attempt looks again"
        raise Unreachable("There is no such table", where=where, next_step=step)
    check_engine(table, where)
    ids = options.incrementing or _whole_key(table)
    key = () if ids else _key_of(asking, options, table, where)
    for wrong, step in (*_misfits(table, ids), *_misfits_of_time(table, options.timestamp)):
        raise ConfigError(wrong, where=where, next_step=step)
    time = options.timestamp or ""
    by = quoted_name(ids) if ids else f"key {signature(key)}"
    named = f"{quoted(place)}.{by}" + (f".{quoted_name(time)}" if time else "")
    origin = hashlib.blake2b(named.encode(), digest_size=8).hexdigest()
    counts = any(column.counts for column in table.columns if column.name == ids)
    rows = RowReader(table.columns, table.key, _in_json(asking, table) if is_mariadb else frozenset())
    return MysqlSourceTable(quoted(place), (place,), origin, ids, counts, rows, is_mariadb, time, key=key)


def _key_of(asking: Cursor, options: MysqlSourceOptions, table: MysqlTable, where: str) -> tuple[MysqlColumn, ...]:
    """The primary key, by which rows are distinguished. Raises ConfigError where none does so, and Refused by a server
    that computes no digests: a number that is NULL would leave its row out."""
    if not (options.timestamp or options.bulk):
        words = "The primary key of the table is not one column of whole numbers"
        step = "Write incrementing: COLUMN, a column whose numbers ascend; or timestamp, or bulk, which take any key"
        raise ConfigError(words, where=where, next_step=step)
    if why := unfit_key(table):
        words = f"Rows of the table cannot be distinguished by their keys: {why}"
        step = "Write incrementing: COLUMN, a column of whole numbers with a unique index"
        raise ConfigError(words, where=where, next_step=step)
    asking.execute(f"SELECT {DIGEST.format(chr(39) * 2)}")
    if asking.fetchone() != (_DIGEST_OF_NOTHING,):
        step = "Write incrementing: COLUMN, a column of whole numbers with a unique index"
        raise Refused("The server computes no SHA2, by which rows are numbered", where=where, next_step=step)
    return tuple(key_columns(table))


def check_server(asking: Cursor, where: str, *, order_matters: bool) -> bool:
    """Whether it is MariaDB. A pass over all rows needs no order in which they came."""
    server = server_of(asking.connection)
    if server.numbers < _OLDEST[server.is_mariadb]:
        words = f"The server is {server.version}: a restart of such a one may give numbers of rows again"
        raise Refused(words, where=where, next_step="Upgrade it: MySQL 8.0, MariaDB 10.5 or newer")
    if order_matters:
        _check_standing(asking, where, is_mariadb=server.is_mariadb)
    return server.is_mariadb


def _check_standing(asking: Cursor, where: str, *, is_mariadb: bool) -> None:
    with looking_into_schema(where):
        reason = gets_rows_from_others(asking, is_mariadb=is_mariadb)
    if reason:
        words = f"The server {reason}, so rows with lower numbers may come later and nobody sees who brings them"
        step = "Name a server that does not as host: the primary one; or write bulk: true, and each run reads all rows"
        raise Refused(words, where=where, next_step=step)


def gets_rows_from_others(asking: Cursor, *, is_mariadb: bool) -> str:
    """Why, or nothing."""
    asking.execute("SELECT @@read_only")
    if (asking.fetchone() or (0,))[0]:
        return "is read-only, as replicas are"
    if is_mariadb:
        asking.execute("SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_running', 'wsrep_cluster_size')")
        running = {name.lower(): int(value or 0) for name, value in asking.fetchall()}
        replicates, others = running.get("slaves_running", 0), running.get("wsrep_cluster_size", 0)
    else:
        asking.execute("SELECT COUNT(*) FROM performance_schema.replication_applier_status WHERE SERVICE_STATE = 'ON'")
        [replicates], others = asking.fetchone() or (0,), 0
    if others > 1:
        return "is one of a cluster"
    return "replicates another one" if replicates else ""


def _whole_key(table: MysqlTable) -> str:
    """The primary key, if that is one column of whole numbers; else empty."""
    words = {column.name: column.word for column in table.columns}
    return table.key[0] if len(table.key) == 1 and words.get(table.key[0]) in WHOLE else ""


def _misfits(table: MysqlTable, ids: str) -> Iterator[tuple[str, str]]:
    columns: dict[str, MysqlColumn] = {column.name: column for column in table.columns}
    if ids and ids not in columns:
        yield f"The table has no column {ids}", "Name the column whose numbers ascend as incrementing"
        return
    if ids and columns[ids].word not in WHOLE:
        yield f"Column {ids} is {columns[ids].kind}", f"Name one of {', '.join(WHOLE)} as incrementing"
    for column in table.columns:
        if not is_readable(column):
            step = "docs/mysql.md has the types that are kept exactly. Change the column, or copy the table without it"
            yield f"Column {column.name} is {column.kind}, which is not kept exactly", step
    if ids:
        yield from _misfits_of_index(table, columns[ids])


def _misfits_of_index(table: MysqlTable, column: MysqlColumn) -> Iterator[tuple[str, str]]:
    ids = column.name
    if not column.required:
        yield f"Column {ids} takes NULL, and such rows would never be read", f"ALTER TABLE … MODIFY {ids} … NOT NULL"
    if frozenset((ids,)) not in table.unique:
        words = f"No index of the table says that column {ids} alone is unique"
        yield words, f"CREATE UNIQUE INDEX … ON … ({ids})"


def _misfits_of_time(table: MysqlTable, name: str | None) -> Iterator[tuple[str, str]]:
    if name is None:
        return
    column = next((one for one in table.columns if one.name == name), None)
    if column is None:
        yield f"The table has no column {name}", "Name the column with the time of the last change as timestamp"
    elif column.word not in ("timestamp", "datetime"):
        step = "Name a column of type timestamp, or of type datetime that is written in UTC"
        yield f"Column {name} is {column.kind}, which says no time of a change", step
    elif not column.required:
        step = f"UPDATE … SET {name} = NOW() WHERE {name} IS NULL; ALTER TABLE … MODIFY {name} … NOT NULL"
        yield f"Column {name} takes NULL, and such rows would never be read", step


def _in_json(asking: Cursor, table: MysqlTable) -> frozenset[str]:
    """In MariaDB JSON is a text that is checked. Who may read a table may see its checks only here."""
    asking.execute(f"SHOW CREATE TABLE {quoted((table.database, table.name))}")
    made = str((asking.fetchone() or ("", ""))[1])
    return frozenset(one.name for one in table.columns if f"CHECK (json_valid({quoted_name(one.name)}))" in made)
