"""Assignments remember the strategy that shared them out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    strategy = sa.Column("strategy", sa.String(length=32), nullable=False, server_default="even")
    op.add_column("assignments", strategy)
