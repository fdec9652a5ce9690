"""What a user may do with tables."""

from __future__ import annotations

from psycopg2.extensions import cursor

from connect_core.errors import Refused
from connect_core.systems.postgresql.catalog import quoted
from connect_core.systems.postgresql.options import PostgresSinkOptions

OF_TABLE = {"insert": ("INSERT",), "upsert": ("INSERT", "SELECT", "UPDATE", "DELETE")}
OF_MARKERS = ("SELECT", "INSERT", "UPDATE")
_BY_COLUMN = "has_any_column_privilege"
"""True for who has the right to the whole table, too."""


def missing(asking: cursor, table: str, wanted: tuple[str, ...]) -> list[str]:
    """Those of the rights that the user has not to the whole table."""
    return [right for right in wanted if not _has(asking, "has_table_privilege", table, right)]


def check_rights(asking: cursor, options: PostgresSinkOptions, where: str) -> None:
    """Raises Refused where a right to the table is missing. Who may write some columns alone is let pass: whether these
    are enough the database says."""
    asked = ((right, "has_table_privilege" if right == "DELETE" else _BY_COLUMN) for right in OF_TABLE[options.mode])
    if lacks := [right for right, function in asked if not _has(asking, function, options.table, right)]:
        rights = ", ".join(lacks)
        raise Refused(f"{options.user} lacks {rights}", where=where, next_step=f"GRANT {rights} ON {options.table}")


def _has(asking: cursor, function: str, table: str, right: str) -> bool:
    asking.execute(f"SELECT {function}(%s, %s)", (quoted(table), right))
    return bool((asking.fetchone() or (False,))[0])
