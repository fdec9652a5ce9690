"""Dead letters keep the whole record, and what became of it: sent again, rejected again, or discarded."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    for column in (
        sa.Column("attributes", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("replay_stream", sa.String(length=160), nullable=True),
        sa.Column("replayed_run", sa.String(length=16), nullable=True),
        sa.Column("replayed_at", _TIME, nullable=True),
        sa.Column("again_stage", sa.String(length=32), nullable=True),
        sa.Column("again_kind", sa.Text(), nullable=True),
        sa.Column("again_message", sa.Text(), nullable=True),
        sa.Column("discarded_at", _TIME, nullable=True),
    ):
        op.add_column("dead_letters", column)
    op.create_index("ix_dead_letters_uid_replay_stream", "dead_letters", ["uid", "replay_stream"])
    record = ["uid", "partition_id", "incarnation", "record_offset"]
    op.create_index("ix_dead_letters_" + "_".join(record), "dead_letters", record)
