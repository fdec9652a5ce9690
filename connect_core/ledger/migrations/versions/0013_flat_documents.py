"""Revisions keep the flat document that theirs was translated from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("connector_revisions", sa.Column("flat", sa.JSON(none_as_null=True), nullable=True))
