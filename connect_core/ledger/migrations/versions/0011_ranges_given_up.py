"""Ranges that a person has given up are asked for by partition: an index of these alone, which are few."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_GIVEN_UP = sa.text("state = 'abandoned'")


def upgrade() -> None:
    op.create_index(
        "ix_ranges_given_up",
        "ranges",
        ["uid", "stream", "partition_id"],
        sqlite_where=_GIVEN_UP,
        postgresql_where=_GIVEN_UP,
    )
