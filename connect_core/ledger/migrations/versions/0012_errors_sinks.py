"""Dead letters that go to a second target too: the number of each on its way there, and what became of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_UNSENT = sa.text("to_sink IS NOT NULL AND sink_run IS NULL")


def upgrade() -> None:
    for column in (
        sa.Column("to_sink", sa.Boolean(), nullable=True),
        sa.Column("sink_number", sa.BigInteger(), nullable=True),
        sa.Column("sink_run", sa.String(length=16), nullable=True),
        sa.Column("sink_refused", sa.Text(), nullable=True),
    ):
        op.add_column("dead_letters", column)
    number = ["uid", "partition_id", "sink_number"]
    op.create_index("ix_dead_letters_" + "_".join(number), "dead_letters", number)
    op.create_index("ix_dead_letters_unsent", "dead_letters", ["uid"], sqlite_where=_UNSENT, postgresql_where=_UNSENT)
