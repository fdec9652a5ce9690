"""What a user may do with tables: asked by EXPLAIN, which does nothing of what it explains."""

from __future__ import annotations

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import Refused
from connect_core.systems.mysql.catalog import MysqlTable, quoted, quoted_name
from connect_core.systems.mysql.options import MysqlSinkOptions

OF_TABLE = {"insert": ("INSERT",), "upsert": ("INSERT", "SELECT", "UPDATE", "DELETE")}
OF_MARKERS = ("SELECT", "INSERT", "UPDATE")
_EXPLAINED = {
    "INSERT": "INSERT INTO {table} ({column}) SELECT {any} FROM (SELECT 1) one WHERE FALSE",
    "SELECT": "SELECT {column} FROM {table} WHERE FALSE",
    "UPDATE": "UPDATE {table} SET {column} = {any} WHERE FALSE",
    "DELETE": "DELETE FROM {table} WHERE FALSE",
}


_NO_COLUMN = 1054
_DENIED = (1044, 1142, 1143, 1227)
"""To a database, a table, a column, for want of a privilege."""


def missing(asking: Cursor, table: MysqlTable, wanted: tuple[str, ...]) -> list[str]:
    """Those of the rights that the user does not have, or that nobody can have now."""
    return [right for right in wanted if _refusal(asking, table, right) is not None]


def check_rights(asking: Cursor, options: MysqlSinkOptions, table: MysqlTable, where: str) -> None:
    """Raises Refused where a right to the table is missing. What else is in the way, such as a lock of another session,
    whoever writes has to wait for: then nothing is asked any more."""
    lacks: list[str] = []
    for right in OF_TABLE[options.mode]:
        refusal = _refusal(asking, table, right)
        if refusal in _DENIED:
            lacks.append(right)
        elif refusal is not None:
            break
    if lacks:
        rights = ", ".join(lacks)
        raise Refused(f"{options.user} lacks {rights}", where=where, next_step=f"GRANT {rights} ON {options.table}")


def _refusal(asking: Cursor, table: MysqlTable, right: str) -> int | None:
    """The number of the error; None where there is none, also of who has the right by a role, or to columns alone."""
    columns = [column.name for column in table.columns if not column.generated]
    if not columns:
        return _NO_COLUMN
    column = quoted_name(columns[0])
    named = {"table": quoted((table.database, table.name)), "column": column, "any": "NULL"}
    try:
        asking.execute(f"EXPLAIN {_EXPLAINED[right].format(**named)}")
    except pymysql.OperationalError as error:
        return int(error.args[0])
    return None
