"""Operations that callers of `waybill serve` began, and the answers that they were given, by the keys of their
requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment, json = sa.DateTime(timezone=True), sa.JSON(none_as_null=True)
    op.create_table(
        "operations",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("asked", json, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("progress", json, nullable=True),
        sa.Column("result", json, nullable=True),
        sa.Column("problem", json, nullable=True),
        sa.Column("made_at", moment, nullable=False),
        sa.Column("begun_at", moment, nullable=True),
        sa.Column("ended_at", moment, nullable=True),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_operations_uid_connectors"),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
    )
    op.create_index("ix_operations_state", "operations", ["state"])
    op.create_table(
        "first_answers",
        sa.Column("caller", sa.String(length=100), nullable=False),
        sa.Column("request_key", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("attempt", sa.String(length=16), nullable=False),
        sa.Column("begun_at", moment, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", json, nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("caller", "request_key", name="pk_first_answers"),
    )
    op.create_index("ix_first_answers_begun_at", "first_answers", ["begun_at"])
