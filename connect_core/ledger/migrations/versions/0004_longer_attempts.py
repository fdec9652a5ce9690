"""What a run is an attempt of may be as long as the id of a DAG and that of its run together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":  # it holds a text of any length in any column of text
        return
    op.alter_column("runs", "attempt_of", existing_type=sa.String(length=255), type_=sa.String(length=512))
