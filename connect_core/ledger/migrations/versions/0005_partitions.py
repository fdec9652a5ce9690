"""The life cycle of partitions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "partitions",
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("partition_key", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=255), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("since", _TIME, nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_partitions_uid"),
        sa.PrimaryKeyConstraint("uid", "stream", "partition_id", name="pk_partitions"),
    )
