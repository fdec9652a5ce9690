"""Receipts keep how many positions of their range they account for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("ranges", sa.Column("covered", sa.BigInteger(), nullable=True))
