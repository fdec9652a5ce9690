"""What was done, for people: runs, receipts, offsets and their history, gaps, who did what.

Read by the CLI, the API and reconcile. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from connect_core.errors import Failure
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.rows import position_of, receipt_of
from connect_core.ledger.skips import HandMove, Skip, skips_of
from connect_core.ledger.tables import AUDIT, GAPS, OFFSET_CHANGES, OFFSETS, RANGES, RUNS
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.values import LIVE, ORIGIN, Gap, Json, Pins, Position
from connect_core.work import ReadLately, Receipt


@dataclass(frozen=True)
class Run:
    """`state` is running, done, failed or lost: one that was killed is seen to be lost when a later one is done."""

    id: str
    uid: str
    stream: str
    task: int
    engine: str
    attempt_of: str | None
    state: str
    started_at: datetime
    ended_at: datetime | None
    failure: Failure | None
    summary: Json | None


@dataclass(frozen=True)
class SettledRange:
    """A range with its receipt. Rejects are among the dead letters; of floors only the newest are kept. `evidence` is
    what the source saw at its begin."""

    id: int
    uid: str
    stream: str
    partition: Partition
    slot: int
    incarnation: int
    planned_end: int
    pins: Pins
    run_id: str
    task: int
    epoch: int
    attempts: int
    planned_at: datetime
    settled_at: datetime
    receipt: Receipt
    evidence: Json = field(default_factory=dict)

    @property
    def lineage(self) -> Lineage:
        return Lineage(self.uid, self.stream, self.partition.id, self.incarnation, str(self.evidence.get(ORIGIN, "")))


@dataclass(frozen=True)
class CommittedOffset:
    stream: str
    partition: Partition
    position: Position
    changed_at: datetime


@dataclass(frozen=True)
class OffsetStep:
    """One move of a committed position. `kind` is settled, set, undo or import; a settled one names its run and range,
    the others who made them and why. The begin of a settled range carries no evidence."""

    at: datetime
    kind: str
    stream: str
    partition: Partition
    before: Position | None
    after: Position | None
    run_id: str | None = None
    range_id: int | None = None
    who: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class StoredGap:
    """`run_id` is that of the run that settled it; None when a person moved the offset past it."""

    stream: str
    partition: Partition
    gap: Gap
    run_id: str | None
    stored_at: datetime


@dataclass(frozen=True)
class Deed:
    uid: str | None
    action: str
    who: str
    why: str
    detail: Json
    done_at: datetime


class History(Transactions):
    """The part of the ledger that is read by people."""

    def runs(
        self,
        uid: str | None = None,
        limit: int = 50,
        stream: str | None = None,
        behind: tuple[datetime, str] | None = None,
    ) -> list[Run]:
        """Newest first; those that stand behind the one with this begin and id."""
        query = sa.select(RUNS).order_by(RUNS.c.started_at.desc(), RUNS.c.id.desc()).limit(limit)
        if uid is not None:
            query = query.where(RUNS.c.uid == uid)
        if stream is not None:
            query = query.where(RUNS.c.stream == stream)
        if behind is not None:
            query = query.where(_behind(RUNS.c.started_at, RUNS.c.id, behind))
        with self._read() as connection:
            return [run_of(row) for row in connection.execute(query)]

    def run(self, uid: str, run_id: str) -> Run | None:
        """None where the connector has none of this id."""
        query = sa.select(RUNS).where(RUNS.c.uid == uid, RUNS.c.id == run_id)
        with self._read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else run_of(row)

    def runs_of(self, uid: str, attempt_of: str) -> list[Run]:
        """The runs that are attempts of the same thing elsewhere, oldest first."""
        query = sa.select(RUNS).where(RUNS.c.uid == uid, RUNS.c.attempt_of == attempt_of)
        with self._read() as connection:
            return [run_of(row) for row in connection.execute(query.order_by(RUNS.c.started_at, RUNS.c.id))]

    def settled_by(self, run_ids: Sequence[str]) -> dict[str, Json]:
        """By run what its receipts count: records `read` and `delivered`. For runs that never said how they ended, and
        those that are at work; who has settled nothing is left out."""
        sums = [sa.func.coalesce(sa.func.sum(column), 0) for column in (RANGES.c.read, RANGES.c.delivered)]
        mine = RANGES.c.run_id.in_(list(run_ids)) & (RANGES.c.state == "settled")
        query = sa.select(RANGES.c.run_id, *sums).where(mine).group_by(RANGES.c.run_id)
        with self._read() as connection:
            rows = connection.execute(query).all()
        return {run_id: {"read": int(read), "delivered": int(delivered)} for run_id, read, delivered in rows}

    def records_read(self, uid: str, stream: str) -> int:
        """By all receipts of a stream; those whose count nobody knows add nothing."""
        read = sa.select(sa.func.coalesce(sa.func.sum(RANGES.c.read), 0))
        mine = (RANGES.c.uid == uid) & (RANGES.c.stream == stream) & (RANGES.c.state == "settled")
        with self._read() as connection:
            return int(connection.execute(read.where(mine)).scalar_one())

    def receipts(
        self,
        uid: str,
        run_id: str | None = None,
        stream: str | None = None,
        limit: int | None = 50,
        since: datetime | None = None,
        partition: Partition | None = None,
        behind: tuple[datetime, int] | None = None,
    ) -> list[SettledRange]:
        """Settled ranges, newest first; `limit` None: all of them. Those that stand behind the one that was settled at
        that moment, with that id."""
        query = self._settled(uid, stream).order_by(RANGES.c.closed_at.desc(), RANGES.c.id.desc()).limit(limit)
        if run_id is not None:
            query = query.where(RANGES.c.run_id == run_id)
        if since is not None:
            query = query.where(RANGES.c.closed_at >= since)
        if partition is not None:
            query = query.where(RANGES.c.partition_id == partition.id)
        if behind is not None:
            query = query.where(_behind(RANGES.c.closed_at, RANGES.c.id, behind))
        with self._read() as connection:
            return [settled_of(row) for row in connection.execute(query)]

    def written_before(self, one: SettledRange) -> SettledRange | None:
        """The newest one before it, of the same partition in the same stream, all of whose records its own attempt has
        written: what earlier attempts left of those behind it stands behind what that one says."""
        mine = self._settled(one.uid, one.stream).where(
            RANGES.c.partition_id == one.partition.id,
            RANGES.c.id < one.id,
            RANGES.c.delivered > 0,
            RANGES.c.deduplicated == 0,
            RANGES.c.reconstructed.is_(False),
        )
        with self._read() as connection:
            row = connection.execute(mine.order_by(RANGES.c.id.desc()).limit(1)).one_or_none()
        return None if row is None else settled_of(row)

    def receipts_near(
        self, uid: str, partition: Partition, offset: int, each_side: int = 16
    ) -> tuple[SettledRange, list[SettledRange]] | None:
        """Of the live stream: the newest settled range of a partition, and of its incarnation those next to `offset`
        that delivered something, in order. None when nothing was ever settled."""
        mine = self._settled(uid, LIVE).where(RANGES.c.partition_id == partition.id)
        newest = mine.order_by(RANGES.c.incarnation.desc(), RANGES.c.end_offset.desc(), RANGES.c.id.desc()).limit(1)
        with self._read() as connection:
            row = connection.execute(newest).one_or_none()
            if row is None:
                return None
            same = mine.where(RANGES.c.incarnation == row.incarnation, RANGES.c.delivered > 0)
            before = same.where(RANGES.c.end_offset <= offset).order_by(RANGES.c.end_offset.desc()).limit(each_side)
            behind = same.where(RANGES.c.end_offset > offset).order_by(RANGES.c.begin_offset).limit(each_side)
            around = [settled_of(one) for query in (before, behind) for one in connection.execute(query)]
        return settled_of(row), sorted(around, key=lambda one: (one.receipt.begin, one.receipt.end))

    def read_lately(
        self, uid: str, stream: str, partitions: Sequence[Partition], window_s: float
    ) -> dict[str, ReadLately]:
        """What the receipts of the last `window_s` seconds say of these partitions, by their id."""
        read, rejected = (sa.func.coalesce(sa.func.sum(RANGES.c[name]), 0) for name in ("read", "rejected"))
        query = (
            sa.select(RANGES.c.partition_id, read.label("read"), rejected.label("rejected"))
            .where(RANGES.c.uid == uid, RANGES.c.stream == stream, RANGES.c.state == "settled")
            .where(RANGES.c.closed_at >= now() - timedelta(seconds=window_s))
            .where(RANGES.c.partition_id.in_([one.id for one in partitions]))
            .group_by(RANGES.c.partition_id)
        )
        with self._read() as connection:
            rows = connection.execute(query)
            return {row.partition_id: ReadLately(int(row.read), int(row.rejected)) for row in rows}

    def ranges_of_run(self, uid: str, run: str) -> list[SettledRange]:
        """What one run has settled, in that order. `run` may be a scheduler's, with or without the words before it:
        then of all its tasks and attempts."""
        elsewhere = (RUNS.c.attempt_of == run) | RUNS.c.attempt_of.endswith(f" {run}", autoescape=True)
        ids = sa.select(RUNS.c.id).where(RUNS.c.uid == uid, (RUNS.c.id == run) | elsewhere)
        query = self._settled(uid).where(RANGES.c.run_id.in_(ids)).order_by(RANGES.c.closed_at, RANGES.c.id)
        with self._read() as connection:
            return [settled_of(row) for row in connection.execute(query)]

    def offsets(self, uid: str, stream: str | None = None) -> list[CommittedOffset]:
        """Committed positions, by stream and partition."""
        query = sa.select(OFFSETS).where(OFFSETS.c.uid == uid).order_by(OFFSETS.c.stream, OFFSETS.c.partition_key)
        if stream is not None:
            query = query.where(OFFSETS.c.stream == stream)
        with self._read() as connection:
            return [
                CommittedOffset(row.stream, Partition(row.partition_key), position_of(row), row.changed_at)
                for row in connection.execute(query)
            ]

    def offset_history(
        self, uid: str, partition: Partition | None = None, limit: int = 50, stream: str | None = None
    ) -> list[OffsetStep]:
        """The newest `limit` moves of committed positions, in the order in which they were made. The settled ranges
        are the history; what people changed stands between them."""
        settled, changed = self._settled(uid, stream), sa.select(OFFSET_CHANGES).where(OFFSET_CHANGES.c.uid == uid)
        if stream is not None:
            changed = changed.where(OFFSET_CHANGES.c.stream == stream)
        if partition is not None:
            settled = settled.where(RANGES.c.partition_id == partition.id)
            changed = changed.where(OFFSET_CHANGES.c.partition_id == partition.id)
        settled = settled.order_by(RANGES.c.closed_at.desc(), RANGES.c.id.desc()).limit(limit)
        changed = changed.order_by(OFFSET_CHANGES.c.id.desc()).limit(limit)
        with self._read() as connection:
            steps = [_settled_step(row) for row in connection.execute(settled)]
            steps += [_changed_step(row) for row in connection.execute(changed)]
        return sorted(steps, key=lambda step: (step.at, step.range_id or 0))[-limit:]

    def gaps(self, uid: str) -> list[StoredGap]:
        """Every gap that was settled, oldest first."""
        with self._read() as connection:
            return [_gap_of(row) for row in connection.execute(sa.select(GAPS).where(GAPS.c.uid == uid).order_by("id"))]

    def left_out(self, uid: str) -> list[StoredGap]:
        """What people left out when they set an offset, oldest first; not what was read after all."""
        by_hand = OFFSET_CHANGES.c.kind.in_(("set", "undo"))
        moves = sa.select(OFFSET_CHANGES).where(OFFSET_CHANGES.c.uid == uid, by_hand).order_by("id")
        with self._read() as connection:
            return [_gap_by_hand(skip) for skip in skips_of(map(_hand_move, connection.execute(moves)))]

    def audit(self, uid: str | None = None, limit: int = 50) -> list[Deed]:
        """What people changed, newest first."""
        query = sa.select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit)
        if uid is not None:
            query = query.where(AUDIT.c.uid == uid)
        with self._read() as connection:
            return [
                Deed(row.uid, row.action, row.who, row.why, row.detail, row.done_at)
                for row in connection.execute(query)
            ]

    def _settled(self, uid: str, stream: str | None = None) -> sa.Select[Any]:
        query = sa.select(RANGES).where(RANGES.c.uid == uid, RANGES.c.state == "settled")
        return query if stream is None else query.where(RANGES.c.stream == stream)


def _behind(at: sa.Column[Any], number: sa.Column[Any], place: tuple[datetime, object]) -> sa.ColumnElement[bool]:
    """Of a list with the newest first."""
    return sa.or_(at < place[0], sa.and_(at == place[0], number < place[1]))


def run_of(row: Any) -> Run:
    failure = None if row.failure is None else Failure(**row.failure)
    return Run(
        row.id,
        row.uid,
        row.stream,
        row.task,
        row.engine,
        row.attempt_of,
        row.state,
        row.started_at,
        row.ended_at,
        failure,
        row.summary,
    )


def settled_of(row: Any) -> SettledRange:
    return SettledRange(
        id=row.id,
        uid=row.uid,
        stream=row.stream,
        partition=Partition(row.partition_key),
        slot=row.slot,
        incarnation=row.incarnation,
        planned_end=row.planned_end,
        pins=Pins(**row.pins),
        run_id=row.run_id,
        task=row.task,
        epoch=row.epoch,
        attempts=row.attempts,
        planned_at=row.planned_at,
        settled_at=row.closed_at,
        receipt=receipt_of(row),
        evidence=row.evidence,
    )


def _settled_step(row: Any) -> OffsetStep:
    return OffsetStep(
        row.closed_at,
        "settled",
        row.stream,
        Partition(row.partition_key),
        Position(row.incarnation, row.begin_offset),
        Position(row.incarnation, row.end_offset, row.end_evidence),
        run_id=row.run_id,
        range_id=row.id,
    )


def _changed_step(row: Any) -> OffsetStep:
    return OffsetStep(
        row.changed_at,
        row.kind,
        row.stream,
        Partition(row.partition_key),
        None if row.before is None else Position(**row.before),
        None if row.after is None else Position(**row.after),
        who=row.who,
        why=row.why,
    )


def _gap_of(row: Any) -> StoredGap:
    gap = Gap(row.incarnation, row.begin_offset, row.end_offset, row.reason)
    return StoredGap(row.stream, Partition(row.partition_key), gap, row.run_id, row.stored_at)


def _gap_by_hand(skip: Skip) -> StoredGap:
    return StoredGap(skip.move.stream, skip.move.partition, skip.gap, None, skip.move.at)


def _hand_move(row: Any) -> HandMove:
    step = _changed_step(row)
    return HandMove(step.stream, step.partition, step.before, step.after, row.who, row.why, step.at)
