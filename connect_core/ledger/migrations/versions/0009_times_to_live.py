"""A lease says how long its holder's time to live is; 0 where it was renewed last by code that did not say so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("ttl_s", sa.Double(), nullable=False, server_default="0"))
