"""Tokens for callers of `waybill serve`: of each its digest and what it may do, never the token."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "access_tokens",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("connectors", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("made_at", moment, nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("expires_at", moment, nullable=True),
        sa.Column("revoked_at", moment, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_access_tokens"),
        sa.UniqueConstraint("sha256", name="uq_access_tokens_sha256"),
    )
