"""The tables of the ledger, as SQLAlchemy Core objects. Read by every module of this room and by the migrations' test.

What the tables are is decided by the migrations; this is their current sum. Partition keys and target names can be long
(paths), so keys and indexes use their 16-digit hashes and the text stands beside. An offset is a place in a partition;
every column ending in `_at` is a moment in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator


class UtcTime(TypeDecorator[datetime]):
    """An aware datetime in UTC. SQLite keeps no time zone, so it is taken off on the way in and put back."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the ledger stores aware datetimes only")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


METADATA = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

_JSON = sa.JSON(none_as_null=True)
_Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers rows by itself only for INTEGER keys
_Uid = sa.String(12)
_Stream = sa.String(160)
_Hash = sa.String(16)
_RunId = sa.String(16)
_AttemptOf = sa.String(512).with_variant(sa.String(255), "sqlite")  # which holds a text of any length all the same


def _connector(**options: Any) -> sa.Column[Any]:
    return sa.Column("uid", _Uid, sa.ForeignKey("connectors.uid"), nullable=False, **options)


def _run() -> sa.Column[Any]:
    return sa.Column("run_id", _RunId, sa.ForeignKey("runs.id"), nullable=False)


def _count(name: str) -> sa.Column[Any]:
    """A number of a receipt: NULL as long as the range has none."""
    return sa.Column(name, sa.BigInteger)


# One row: who this ledger is, and how many leases it has given out (a smaller number than seen before: restored).
LEDGER = sa.Table(
    "ledger",
    METADATA,
    sa.Column("only", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", sa.String(16), nullable=False),
    sa.Column("counter", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)

# `live_name` is the name, and NULL once deleted: a name is unique among what is not deleted.
CONNECTORS = sa.Table(
    "connectors",
    METADATA,
    sa.Column("uid", _Uid, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("live_name", sa.String(255), unique=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("target_state", sa.String(16), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("deleted_at", UtcTime),
)

# `flat` is what the document was translated from, with its secrets masked; NULL where it was written as it is.
CONNECTOR_REVISIONS = sa.Table(
    "connector_revisions",
    METADATA,
    _connector(primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("document", _JSON, nullable=False),
    sa.Column("difference", _JSON, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("applied_at", UtcTime, nullable=False),
    sa.Column("flat", _JSON),
)

ASSIGNMENTS = sa.Table(
    "assignments",
    METADATA,
    _connector(primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tasks", sa.Integer, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("strategy", sa.String(32), nullable=False, server_default="even"),
)

ASSIGNMENT_SHARES = sa.Table(
    "assignment_shares",
    METADATA,
    sa.Column("uid", _Uid, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("partition_id", _Hash, primary_key=True),
    sa.Column("partition_key", sa.Text, nullable=False),
    sa.Column("slot", sa.Integer, nullable=False),
    sa.Column("task", sa.Integer, nullable=False),
    sa.ForeignKeyConstraint(["uid", "version"], ["assignments.uid", "assignments.version"]),
    sa.UniqueConstraint("uid", "version", "slot"),
)

# `uid`, `stream` and `version` only for the leases of tasks. `deadline_ns` is of CLOCK_BOOTTIME; `boot_id` tells where
# that means something.
LEASES = sa.Table(
    "leases",
    METADATA,
    sa.Column("id", sa.String(255), primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.String(255), nullable=False),
    sa.Column("released", sa.Boolean, nullable=False),
    sa.Column("boot_id", sa.String(255), nullable=False),
    sa.Column("deadline_ns", sa.BigInteger, nullable=False),
    sa.Column("ttl_s", sa.Double, nullable=False, server_default="0"),
    sa.Column("uid", _Uid, sa.ForeignKey("connectors.uid")),
    sa.Column("stream", _Stream),
    sa.Column("version", sa.Integer),
    sa.Column("taken_at", UtcTime, nullable=False),
    sa.Index(None, "uid", "stream"),
)

FLOORS = sa.Table(
    "floors",
    METADATA,
    _connector(primary_key=True),
    sa.Column("stream", _Stream, primary_key=True),
    sa.Column("partition_id", _Hash, primary_key=True),
    sa.Column("target_id", _Hash, primary_key=True),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("ahead", sa.Boolean, nullable=False),
    sa.Column("evidence", _JSON, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
)

RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", _RunId, primary_key=True),
    _connector(),
    sa.Column("stream", _Stream, nullable=False),
    sa.Column("task", sa.Integer, nullable=False),
    sa.Column("engine", sa.String(64), nullable=False),
    sa.Column("attempt_of", _AttemptOf),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("started_at", UtcTime, nullable=False, index=True),
    sa.Column("ended_at", UtcTime),
    sa.Column("failure", _JSON),
    sa.Column("summary", _JSON),
    sa.Index(None, "uid", "started_at"),
    sa.Index("ix_runs_of_task", "uid", "stream", "task", "id"),
    # Only of those at work, which are few: the migration says so. Here that would load PostgreSQL's dialect each time.
    sa.Index("ix_runs_running", "uid", "stream", "task", "id"),
)

# A plan and, once closed, its receipt. `open_key` is NULL when closed: one open range for each partition of a stream.
RANGES = sa.Table(
    "ranges",
    METADATA,
    sa.Column("id", _Number, primary_key=True),
    _connector(),
    sa.Column("stream", _Stream, nullable=False),
    sa.Column("partition_id", _Hash, nullable=False),
    sa.Column("partition_key", sa.Text, nullable=False),
    sa.Column("slot", sa.Integer, nullable=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("begin_offset", sa.BigInteger, nullable=False),
    sa.Column("planned_end", sa.BigInteger, nullable=False),
    sa.Column("max_records", sa.BigInteger, nullable=False),
    sa.Column("max_bytes", sa.BigInteger, nullable=False),
    sa.Column("evidence", _JSON, nullable=False),
    sa.Column("pins", _JSON, nullable=False),
    sa.Column("gaps", _JSON, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("open_key", sa.String(200), unique=True),
    _run(),
    sa.Column("task", sa.Integer, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("planned_at", UtcTime, nullable=False),
    sa.Column("found", sa.LargeBinary),
    sa.Column("closed_at", UtcTime),
    sa.Column("end_offset", sa.BigInteger),
    _count("read"),
    _count("absent"),
    _count("filtered"),
    _count("rejected"),
    _count("passed"),
    _count("emitted"),
    _count("delivered"),
    _count("deduplicated"),
    _count("duplicates"),
    _count("possible_duplicates"),
    _count("bytes_read"),
    _count("bytes_written"),
    sa.Column("seconds", sa.Double),
    sa.Column("digest_read", sa.Text),
    sa.Column("digest_sent", sa.Text),
    sa.Column("reconstructed", sa.Boolean),
    sa.Column("delivered_where", _JSON),
    sa.Column("end_evidence", _JSON),
    sa.Column("end_gaps", _JSON),
    sa.Column("receipt_digest", sa.String(32)),
    _count("covered"),
    sa.Index(None, "uid", "closed_at"),
    sa.Index("ix_ranges_open", "uid", "stream"),  # only of open ones, likewise
    sa.Index("ix_ranges_given_up", "uid", "stream", "partition_id"),  # of those given up
    sa.Index("ix_ranges_newest", "uid", "stream", "partition_id", "id"),
    sa.Index(None, "run_id"),
)


OFFSETS = sa.Table(
    "offsets",
    METADATA,
    _connector(primary_key=True),
    sa.Column("stream", _Stream, primary_key=True),
    sa.Column("partition_id", _Hash, primary_key=True),
    sa.Column("partition_key", sa.Text, nullable=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("next_offset", sa.BigInteger, nullable=False),
    sa.Column("evidence", _JSON, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
)

# One row for each partition that was ever put aside: `since` when it has been in this state, and why. `kind` and
# `exit_code` are those of the failure of a quarantined one.
PARTITIONS = sa.Table(
    "partitions",
    METADATA,
    _connector(primary_key=True),
    sa.Column("stream", _Stream, primary_key=True),
    sa.Column("partition_id", _Hash, primary_key=True),
    sa.Column("partition_key", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("kind", sa.String(255), nullable=False),
    sa.Column("exit_code", sa.Integer),
    sa.Column("since", UtcTime, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
)

# Each has a stream of its own. `asked` is what a person wanted, `parts` what that came to, `sink` the options that
# differ from those of the document, of which every attempt takes `revision`.
BACKFILLS = sa.Table(
    "backfills",
    METADATA,
    _connector(primary_key=True),
    sa.Column("stream", _Stream, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("asked", _JSON, nullable=False),
    sa.Column("parts", _JSON, nullable=False),
    sa.Column("sink", _JSON, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("ended_at", UtcTime),
)

# `before` and `after` are positions; NULL: never read.
OFFSET_CHANGES = sa.Table(
    "offset_changes",
    METADATA,
    sa.Column("id", _Number, primary_key=True),
    _connector(),
    sa.Column("stream", _Stream, nullable=False),
    sa.Column("partition_id", _Hash, nullable=False),
    sa.Column("partition_key", sa.Text, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("before", _JSON),
    sa.Column("after", _JSON),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
    sa.Index(None, "uid", "stream", "partition_id"),
)

# `stage`, `kind` and `message` are of the first rejection. `attributes` is what the record had beside its payload, and
# NULL where it is not whole. `replay_stream` is the replay that has it, or had it last; `replayed_at` when that settled
# it: delivered, unless `again_stage` and the two beside it say why it was rejected again. One that goes `to_sink`, the
# second target of its connector (else NULL), gets a `sink_number` on its way; `sink_run` has settled it there, and
# `sink_refused` says why that target could not take it.
DEAD_LETTERS = sa.Table(
    "dead_letters",
    METADATA,
    sa.Column("id", _Number, primary_key=True),
    _connector(),
    sa.Column("stream", _Stream, nullable=False),
    sa.Column("partition_id", _Hash, nullable=False),
    sa.Column("partition_key", sa.Text, nullable=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("record_offset", sa.BigInteger, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("stage", sa.String(32), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("original", sa.LargeBinary, nullable=False),
    sa.Column("topic", sa.Text),
    sa.Column("range_id", _Number, sa.ForeignKey("ranges.id"), nullable=False),
    _run(),
    sa.Column("stored_at", UtcTime, nullable=False),
    sa.Column("attributes", _JSON),
    sa.Column("replay_stream", _Stream),
    sa.Column("replayed_run", _RunId),
    sa.Column("replayed_at", UtcTime),
    sa.Column("again_stage", sa.String(32)),
    sa.Column("again_kind", sa.Text),
    sa.Column("again_message", sa.Text),
    sa.Column("discarded_at", UtcTime),
    sa.Column("to_sink", sa.Boolean),
    sa.Column("sink_number", sa.BigInteger),
    sa.Column("sink_run", _RunId),
    sa.Column("sink_refused", sa.Text),
    sa.UniqueConstraint("uid", "stream", "partition_id", "incarnation", "record_offset", "ordinal", "stage"),
    sa.Index(None, "uid", "replay_stream"),
    sa.Index(None, "uid", "partition_id", "sink_number"),
    sa.Index("ix_dead_letters_unsent", "uid"),  # only of those that go to a second target, and are not settled there
    # By the record, in whatever stream it was rejected.
    sa.Index(None, "uid", "partition_id", "incarnation", "record_offset"),
)

GAPS = sa.Table(
    "gaps",
    METADATA,
    sa.Column("id", _Number, primary_key=True),
    _connector(),
    sa.Column("stream", _Stream, nullable=False),
    sa.Column("partition_id", _Hash, nullable=False),
    sa.Column("partition_key", sa.Text, nullable=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("begin_offset", sa.BigInteger, nullable=False),
    sa.Column("end_offset", sa.BigInteger),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("range_id", _Number, sa.ForeignKey("ranges.id"), nullable=False),
    _run(),
    sa.Column("stored_at", UtcTime, nullable=False),
    sa.UniqueConstraint("uid", "stream", "partition_id", "incarnation", "begin_offset"),
)

AUDIT = sa.Table(
    "audit",
    METADATA,
    sa.Column("id", _Number, primary_key=True),
    sa.Column("uid", _Uid, sa.ForeignKey("connectors.uid"), index=True),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("detail", _JSON, nullable=False),
    sa.Column("done_at", UtcTime, nullable=False),
)

# For callers of `waybill serve`. `sha256` is the digest of the token, which is kept nowhere; `connectors` are patterns
# of the names that it is for. A name is never given again: rows of the audit say it.
ACCESS_TOKENS = sa.Table(
    "access_tokens",
    METADATA,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("connectors", _JSON, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False, unique=True),
    sa.Column("made_at", UtcTime, nullable=False),
    sa.Column("made_by", sa.Text, nullable=False),
    sa.Column("expires_at", UtcTime),
    sa.Column("revoked_at", UtcTime),
)

# Of callers of `waybill serve`: long work that one of its servers does. `step` grows with each change of the row.
OPERATIONS = sa.Table(
    "operations",
    METADATA,
    sa.Column("id", _RunId, primary_key=True),
    _connector(),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("asked", _JSON, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False, index=True),
    sa.Column("step", sa.BigInteger, nullable=False),
    sa.Column("progress", _JSON),
    sa.Column("result", _JSON),
    sa.Column("problem", _JSON),
    sa.Column("made_at", UtcTime, nullable=False),
    sa.Column("begun_at", UtcTime),
    sa.Column("ended_at", UtcTime),
)

# Of callers of `waybill serve`: what a request with a key of theirs was answered first. Without a `status` it is still
# worked on, by one `attempt` of one `server`.
FIRST_ANSWERS = sa.Table(
    "first_answers",
    METADATA,
    sa.Column("caller", sa.String(100), primary_key=True),
    sa.Column("request_key", sa.String(255), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("attempt", sa.String(16), nullable=False),
    sa.Column("begun_at", UtcTime, nullable=False, index=True),
    sa.Column("status", sa.Integer),
    sa.Column("headers", _JSON),
    sa.Column("body", sa.Text),
)
