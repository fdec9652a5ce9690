"""Receipts, runs and scans of open ranges use the words of the glossary."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

RENAMED = {"already": "deduplicated", "surplus": "duplicates", "possible_repeats": "possible_duplicates"}
_RUNS = sa.table("runs", sa.column("id", sa.String), sa.column("summary", sa.JSON))
_RANGES = sa.table("ranges", sa.column("id", sa.BigInteger), sa.column("found", sa.LargeBinary))
_ROWS_AT_ONCE = 10_000


def upgrade() -> None:
    for before, after in RENAMED.items():
        op.execute(f"ALTER TABLE ranges RENAME COLUMN {before} TO {after}")
    connection = op.get_bind()
    _rewrite(connection, _RUNS, _RUNS.c.summary, _renamed)
    _rewrite(connection, _RANGES, _RANGES.c.found, _renamed_head)


def _rewrite(connection: Connection, table: sa.TableClause, column: sa.ColumnClause[Any], change: Any) -> None:
    """Changes a column of every row that has something there, a part of the rows at once."""
    change_one = table.update().where(table.c.id == sa.bindparam("row")).values({column.name: sa.bindparam("value")})
    filled = sa.select(table.c.id, column).where(column.is_not(sa.null())).order_by(table.c.id).limit(_ROWS_AT_ONCE)
    rows = connection.execute(filled).all()
    while rows:
        changed = [{"row": row[0], "value": after} for row in rows if row[1] and (after := change(row[1])) != row[1]]
        if changed:
            connection.execute(change_one, changed)
        rows = connection.execute(filled.where(table.c.id > rows[-1][0])).all()


def _renamed(counts: dict[str, Any]) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in counts.items()}


def _renamed_head(found: bytes) -> bytes:
    """What a scan has found begins with a line of JSON."""
    head, line_feed, columns = bytes(found).partition(b"\n")
    return json.dumps(_renamed(json.loads(head))).encode() + line_feed + columns
