"""What tables that are written have to do with each other, and with others."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg2.extensions import cursor

from connect_core.errors import ConfigError
from connect_core.systems.postgresql.catalog import quoted

_WITHIN = """
SELECT part.place, whole.place
FROM unnest(%s::text[]) WITH ORDINALITY part (name, place)
JOIN unnest(%s::text[]) WITH ORDINALITY whole (name, place)
  ON part.place <> whole.place AND to_regclass(whole.name) IN (
    SELECT relid FROM pg_partition_ancestors(to_regclass(part.name)))
"""
_FOLLOWING = """
SELECT conrelid::regclass::text, conname FROM pg_constraint
WHERE contype = 'f' AND confrelid = to_regclass(%s)
  AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
ORDER BY 1, 2
"""


def partition_among(asking: cursor, tables: Sequence[str]) -> str:
    """Why these cannot be written side by side: one has rows of another one, and they are written one after the other.
    Empty where they can."""
    names = [quoted(one) for one in tables]
    asking.execute(_WITHIN, (names, names))
    found = asking.fetchone()
    return f"Table {tables[found[0] - 1]} is a partition of table {tables[found[1] - 1]}" if found else ""


def check_apart(asking: cursor, tables: Sequence[str], where: str) -> None:
    """Raises ConfigError where one of them is a partition of another one: of two records of a key the last would not
    count."""
    if why := partition_among(asking, tables):
        raise ConfigError(why, where=where, next_step="Name one of both: the partitioned table takes all rows")


def following_rows(asking: cursor, table: str) -> list[str]:
    """What the server does to rows of other tables when rows of this one go or get another key, in words."""
    asking.execute(_FOLLOWING, (quoted(table),))
    untold = f"go or change with rows of table {table}, and no receipt tells of that"
    return [f"rows of table {other} {untold} (constraint {name})" for other, name in asking.fetchall()]
