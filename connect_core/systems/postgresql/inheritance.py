"""Tables that have rows of others (INHERITS): a SELECT of the parent has those of its children. Partitions of a
partitioned table are part of it, and are meant nowhere here."""

from __future__ import annotations

from collections.abc import Collection

from psycopg2.extensions import cursor

_PARENTS = """
WITH RECURSIVE below AS (
  SELECT inhrelid AS child, inhparent AS parent FROM pg_inherits
  JOIN pg_class c ON c.oid = inhrelid WHERE NOT c.relispartition
  UNION SELECT child, inhparent FROM below JOIN pg_inherits ON inhrelid = parent
)
SELECT n.nspname || '.' || c.relname, o.nspname || '.' || p.relname FROM below
JOIN pg_class c ON c.oid = child JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class p ON p.oid = parent JOIN pg_namespace o ON o.oid = p.relnamespace
ORDER BY 1, 2
"""
_NUMBERED_APART = """
WITH RECURSIVE below AS (
  SELECT inhrelid AS child FROM pg_inherits WHERE inhparent = %(table)s
  UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = child
)
SELECT child::regclass::text FROM below JOIN pg_class c ON c.oid = child
WHERE NOT c.relispartition AND c.relpersistence <> 't' AND NOT EXISTS (
  SELECT 1 FROM pg_attribute a JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
  JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
  WHERE a.attrelid = child AND a.attname = %(column)s
    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY(%(sequences)s::oid[])
)
ORDER BY 1 LIMIT 1
"""
"""Rows of temporary tables are seen by their own session alone."""


def parents_there(asking: cursor) -> dict[str, list[str]]:
    """By SCHEMA.TABLE of a child all tables that have its rows, too."""
    asking.execute(_PARENTS)
    found: dict[str, list[str]] = {}
    for child, parent in asking.fetchall():
        found.setdefault(child, []).append(parent)
    return found


def numbered_apart(asking: cursor, table: int, column: str, sequences: Collection[int]) -> str:
    """A child of the table that does not draw the numbers of its rows from these sequences; empty where all do. An
    index of a parent says nothing of its children, so only a common sequence keeps their numbers apart."""
    asking.execute(_NUMBERED_APART, {"table": table, "column": column, "sequences": [*sequences]})
    [child] = asking.fetchone() or ("",)
    return str(child)
