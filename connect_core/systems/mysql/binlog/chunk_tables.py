"""Tables whose rows are to come chunk by chunk: which ones there are, and why one cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, Refused
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.server_log import is_logged
from connect_core.systems.mysql.binlog.snapshot_keys import unfit_for_chunks
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.catalog import MysqlTable, quoted, read_table
from connect_core.systems.mysql.connecting import server_of
from connect_core.systems.mysql.failures import number_of
from connect_core.systems.mysql.fitting import check_engine
from connect_core.systems.mysql.source_catalog import gets_rows_from_others
from connect_core.systems.tables.snapshots import Place

DENIED, NO_TABLE = (1142, 1044, 1227, 1370), 1146
WITHOUT_ROWS = "take it out of `tables`; before the first run also snapshot: never will do"
"""What helps where rows of a table cannot come. Behind the first run nothing has the option ask again."""
_TABLES = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' ORDER BY 1, 2"


def tables_of(asking: Cursor, options: MysqlChangesOptions) -> list[Place]:
    """Those that the document names, and those that its patterns mean and the user may see."""
    if len(options.named()) == len({*options.tables}):
        return options.named()
    asking.execute(_TABLES)
    found = [(str(one[0]), str(one[1])) for one in asking.fetchall() if options.wants(TableName(*one))]
    return [*dict.fromkeys((*options.named(), *found))]


def gone_of(asking: Cursor, places: Sequence[Place]) -> list[Place]:
    """Those that are not there. Of one that the user may not read nobody knows."""
    return [one for one in places if not _is_there(asking, one)]


def _is_there(asking: Cursor, place: Place) -> bool:
    try:
        asking.execute(f"SELECT 1 FROM {quoted(place)} LIMIT 0")
    except pymysql.Error as error:
        return number_of(error) != NO_TABLE
    return True


def check_writable(asking: Cursor, options: MysqlChangesOptions, where: str) -> None:
    """Raises ConfigError by a server into whose log rows are not to be written."""
    if reason := _unfit_server(asking, options):
        raise ConfigError(
            f"Rows that are there cannot be written into the log: the server {reason}",
            where=where,
            next_step="Name the primary server as host; or write snapshot: never, and only changes come",
        )


def _unfit_server(asking: Cursor, options: MysqlChangesOptions) -> str:
    """Why, or nothing."""
    if not is_logged(asking, options.database):
        return f"does not log database {options.database} (binlog_do_db, binlog_ignore_db)"
    try:
        return gets_rows_from_others(asking, is_mariadb=server_of(asking.connection).is_mariadb)
    except pymysql.Error as error:
        if number_of(error) not in DENIED:
            raise
        return "does not say whether it replicates another one: GRANT SELECT ON performance_schema.*"


def described(asking: Cursor, place: Place, where: str) -> MysqlTable | None:
    """None where there is none. Raises ConfigError for one whose rows cannot be read chunk by chunk."""
    table = read_table(asking, place)
    if table is None:
        return None
    named = f"{where}, table {'.'.join(place)}"
    check_engine(table, named)
    if why := unfit_for_chunks(table):
        step = f"Change that, or {WITHOUT_ROWS}"
        raise ConfigError(f"Rows of the table cannot be read chunk by chunk: {why}", where=named, next_step=step)
    return table


def check_tables(asking: Cursor, places: Sequence[Place], where: str) -> None:
    """Raises ConfigError for the first one whose rows cannot be read."""
    for place in places:
        if described(asking, place, where) is None:
            named = ".".join(place)
            raise ConfigError(
                f"There is no table {named}, or the user may not see it",
                where=where,
                next_step=f"Make it, or GRANT SELECT ON {named}; or write snapshot: never, and only changes come",
            )


def require_seen(asking: Cursor, place: Place, where: str) -> None:
    """Raises Refused for a table that the user may not read: of such a one nobody knows whether it is there."""
    try:
        asking.execute(f"SELECT 1 FROM {quoted(place)} LIMIT 0")
    except pymysql.Error as error:
        if number_of(error) in DENIED:
            named = ".".join(place)
            step = f"GRANT SELECT ON {named}, or {WITHOUT_ROWS}"
            raise Refused(f"The user may not read table {named}", where=where, next_step=step) from None
        if number_of(error) != NO_TABLE:
            raise
