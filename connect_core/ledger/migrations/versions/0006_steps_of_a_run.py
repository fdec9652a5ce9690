"""Indexes for what a run asks at each step, so that it takes as long however much was settled before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_OPEN, _RUNNING = sa.text("open_key IS NOT NULL"), sa.text("state = 'running'")


def upgrade() -> None:
    op.create_index("ix_ranges_open", "ranges", ["uid", "stream"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    op.create_index("ix_ranges_newest", "ranges", ["uid", "stream", "partition_id", "id"])
    op.drop_index("ix_ranges_uid_stream_partition_id", table_name="ranges")
    op.create_index("ix_runs_of_task", "runs", ["uid", "stream", "task", "id"])
    op.create_index(
        "ix_runs_running", "runs", ["uid", "stream", "task", "id"], sqlite_where=_RUNNING, postgresql_where=_RUNNING
    )
