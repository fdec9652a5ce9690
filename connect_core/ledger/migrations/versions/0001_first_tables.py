"""The first tables."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON()


def upgrade() -> None:
    _make_connectors()
    _make_ledger()
    _make_assignments()
    _make_audit()
    _make_connector_revisions()
    _make_floors()
    _make_leases()
    _make_offset_changes()
    _make_offsets()
    _make_runs()
    _make_assignment_shares()
    _make_ranges()
    _make_dead_letters()
    _make_gaps()
    _name_the_ledger()


def _make_connectors() -> None:
    op.create_table(
        "connectors",
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("live_name", sa.String(length=255), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("target_state", sa.String(length=16), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("deleted_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("uid", name="pk_connectors"),
        sa.UniqueConstraint("live_name", name="uq_connectors_live_name"),
    )


def _make_ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("only", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("only", name="pk_ledger"),
    )


def _make_assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_assignments_uid"),
        sa.PrimaryKeyConstraint("uid", "version", name="pk_assignments"),
    )


def _make_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=True),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("detail", _JSON, nullable=False),
        sa.Column("done_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_audit_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_uid", "audit", ["uid"], unique=False)


def _make_connector_revisions() -> None:
    op.create_table(
        "connector_revisions",
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", _JSON, nullable=False),
        sa.Column("difference", _JSON, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("applied_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_connector_revisions_uid"),
        sa.PrimaryKeyConstraint("uid", "revision", name="pk_connector_revisions"),
    )


def _make_floors() -> None:
    op.create_table(
        "floors",
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("target_id", sa.String(length=16), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("ahead", sa.Boolean(), nullable=False),
        sa.Column("evidence", _JSON, nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_floors_uid"),
        sa.PrimaryKeyConstraint("uid", "stream", "partition_id", "target_id", name="pk_floors"),
    )


def _make_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(length=255), nullable=False),
        sa.Column("released", sa.Boolean(), nullable=False),
        sa.Column("boot_id", sa.String(length=255), nullable=False),
        sa.Column("deadline_ns", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=True),
        sa.Column("stream", sa.String(length=160), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("taken_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_leases_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_leases"),
    )
    op.create_index("ix_leases_uid_stream", "leases", ["uid", "stream"], unique=False)


def _make_offset_changes() -> None:
    op.create_table(
        "offset_changes",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("partition_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("before", _JSON, nullable=True),
        sa.Column("after", _JSON, nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_offset_changes_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_offset_changes"),
    )
    op.create_index(
        "ix_offset_changes_uid_stream_partition_id", "offset_changes", ["uid", "stream", "partition_id"], unique=False
    )


def _make_offsets() -> None:
    op.create_table(
        "offsets",
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("partition_key", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("evidence", _JSON, nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_offsets_uid"),
        sa.PrimaryKeyConstraint("uid", "stream", "partition_id", name="pk_offsets"),
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(length=64), nullable=False),
        sa.Column("attempt_of", sa.String(length=255), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.Column("failure", _JSON, nullable=True),
        sa.Column("summary", _JSON, nullable=True),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_runs_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_started_at", "runs", ["started_at"], unique=False)
    op.create_index("ix_runs_uid_started_at", "runs", ["uid", "started_at"], unique=False)


def _make_assignment_shares() -> None:
    op.create_table(
        "assignment_shares",
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("partition_key", sa.Text(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["uid", "version"], ["assignments.uid", "assignments.version"], name="fk_assignment_shares_uid"
        ),
        sa.PrimaryKeyConstraint("uid", "version", "partition_id", name="pk_assignment_shares"),
        sa.UniqueConstraint("uid", "version", "slot", name="uq_assignment_shares_uid"),
    )


def _make_ranges() -> None:
    op.create_table(
        "ranges",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("partition_key", sa.Text(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("begin_offset", sa.BigInteger(), nullable=False),
        sa.Column("planned_end", sa.BigInteger(), nullable=False),
        sa.Column("max_records", sa.BigInteger(), nullable=False),
        sa.Column("max_bytes", sa.BigInteger(), nullable=False),
        sa.Column("evidence", _JSON, nullable=False),
        sa.Column("pins", _JSON, nullable=False),
        sa.Column("gaps", _JSON, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("open_key", sa.String(length=200), nullable=True),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("planned_at", _TIME, nullable=False),
        sa.Column("found", sa.LargeBinary(), nullable=True),
        sa.Column("closed_at", _TIME, nullable=True),
        sa.Column("end_offset", sa.BigInteger(), nullable=True),
        sa.Column("read", sa.BigInteger(), nullable=True),
        sa.Column("absent", sa.BigInteger(), nullable=True),
        sa.Column("filtered", sa.BigInteger(), nullable=True),
        sa.Column("rejected", sa.BigInteger(), nullable=True),
        sa.Column("passed", sa.BigInteger(), nullable=True),
        sa.Column("emitted", sa.BigInteger(), nullable=True),
        sa.Column("delivered", sa.BigInteger(), nullable=True),
        sa.Column("already", sa.BigInteger(), nullable=True),
        sa.Column("surplus", sa.BigInteger(), nullable=True),
        sa.Column("possible_repeats", sa.BigInteger(), nullable=True),
        sa.Column("bytes_read", sa.BigInteger(), nullable=True),
        sa.Column("bytes_written", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("digest_read", sa.Text(), nullable=True),
        sa.Column("digest_sent", sa.Text(), nullable=True),
        sa.Column("reconstructed", sa.Boolean(), nullable=True),
        sa.Column("delivered_where", _JSON, nullable=True),
        sa.Column("end_evidence", _JSON, nullable=True),
        sa.Column("end_gaps", _JSON, nullable=True),
        sa.Column("receipt_digest", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_ranges_run_id"),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_ranges_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_ranges"),
        sa.UniqueConstraint("open_key", name="uq_ranges_open_key"),
    )
    op.create_index("ix_ranges_run_id", "ranges", ["run_id"], unique=False)
    op.create_index("ix_ranges_uid_closed_at", "ranges", ["uid", "closed_at"], unique=False)
    op.create_index("ix_ranges_uid_stream_partition_id", "ranges", ["uid", "stream", "partition_id"], unique=False)


def _make_dead_letters() -> None:
    op.create_table(
        "dead_letters",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("partition_key", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("record_offset", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("original", sa.LargeBinary(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=True),
        sa.Column("range_id", _NUMBER, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("stored_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["range_id"], ["ranges.id"], name="fk_dead_letters_range_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_dead_letters_run_id"),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_dead_letters_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_dead_letters"),
        sa.UniqueConstraint(
            "uid",
            "stream",
            "partition_id",
            "incarnation",
            "record_offset",
            "ordinal",
            "stage",
            name="uq_dead_letters_uid",
        ),
    )


def _make_gaps() -> None:
    op.create_table(
        "gaps",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("uid", sa.String(length=12), nullable=False),
        sa.Column("stream", sa.String(length=160), nullable=False),
        sa.Column("partition_id", sa.String(length=16), nullable=False),
        sa.Column("partition_key", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("begin_offset", sa.BigInteger(), nullable=False),
        sa.Column("end_offset", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("range_id", _NUMBER, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("stored_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["range_id"], ["ranges.id"], name="fk_gaps_range_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_gaps_run_id"),
        sa.ForeignKeyConstraint(["uid"], ["connectors.uid"], name="fk_gaps_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_gaps"),
        sa.UniqueConstraint("uid", "stream", "partition_id", "incarnation", "begin_offset", name="uq_gaps_uid"),
    )


def _name_the_ledger() -> None:
    ledger = sa.table(
        "ledger", sa.column("only"), sa.column("id"), sa.column("counter"), sa.column("created_at", _TIME)
    )
    op.execute(ledger.insert().values(only=1, id=secrets.token_hex(8), counter=0, created_at=datetime.now(UTC)))
