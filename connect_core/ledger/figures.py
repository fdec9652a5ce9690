"""What the ledger can say of every connector in figures, for metrics. Writes nothing.

Whoever asks does so again and again: one statement a table, however many connectors there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from connect_core.ledger.database import Transactions
from connect_core.ledger.tables import (
    CONNECTOR_REVISIONS,
    CONNECTORS,
    DEAD_LETTERS,
    GAPS,
    LEASES,
    PARTITIONS,
    RANGES,
    RUNS,
)
from connect_core.sdk.values import LIVE, Json

_SUMMED = (
    *("read", "filtered", "rejected", "delivered", "deduplicated", "duplicates", "possible_duplicates"),
    *("bytes_read", "bytes_written", "seconds"),
)


@dataclass(frozen=True)
class EndedRun:
    """The newest run of a task of the live stream that is over, with what it told of itself."""

    task: int
    state: str
    started_at: datetime
    ended_at: datetime
    summary: Json


@dataclass(frozen=True)
class StreamSums:
    """The receipts of one stream, added up by field; a count that nobody knows adds nothing. How many `receipts` there
    are may become less: those of a window are merged."""

    receipts: int
    sums: Mapping[str, float]
    newest_at: datetime


@dataclass
class ConnectorFigures:
    """`settled` by stream, `letters` by the stage of their first rejection, `runs` by their state. `ended` has the
    newest run of each task, also of tasks that are no more. `held_up` are partitions of the live stream. `epoch` is the
    highest of all its leases, also of those that are free."""

    uid: str
    name: str
    target_state: str
    document: Json
    settled: dict[str, StreamSums] = field(default_factory=dict)
    letters: dict[str, int] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    ended: list[EndedRun] = field(default_factory=list)
    open_ranges: int = 0
    gaps: int = 0
    held_up: int = 0
    leases_held: int = 0
    oldest_lease_at: datetime | None = None
    epoch: int = 0


class Figures(Transactions):
    """The part of the ledger that counts for metrics."""

    def figures(self) -> list[ConnectorFigures]:
        """Of every connector that is not deleted, in the order in which they were made."""
        with self._read() as connection:
            known = {row.uid: ConnectorFigures(*row) for row in connection.execute(_CONNECTORS)}
            for query, put in _PUTS:
                for row in connection.execute(query):
                    if row.uid in known:
                        put(known[row.uid], row)
        return list(known.values())


def _put_settled(one: ConnectorFigures, row: Any) -> None:
    sums = {
        name: float(value) if name == "seconds" else int(value) for name, value in zip(_SUMMED, row[4:], strict=True)
    }
    one.settled[row.stream] = StreamSums(row.receipts, sums, row.newest)


def _put_letters(one: ConnectorFigures, row: Any) -> None:
    one.letters[row.stage] = row.number


def _put_runs(one: ConnectorFigures, row: Any) -> None:
    one.runs[row.state] = row.number


def _put_ended(one: ConnectorFigures, row: Any) -> None:
    one.ended.append(EndedRun(row.task, row.state, row.started_at, row.ended_at or row.started_at, row.summary or {}))


def _put_open_ranges(one: ConnectorFigures, row: Any) -> None:
    one.open_ranges = row.number


def _put_gaps(one: ConnectorFigures, row: Any) -> None:
    one.gaps = row.number


def _put_held_up(one: ConnectorFigures, row: Any) -> None:
    one.held_up = row.number


def _put_leases(one: ConnectorFigures, row: Any) -> None:
    one.leases_held, one.oldest_lease_at, one.epoch = row.held, row.oldest, row.epoch


_NUMBER = sa.func.count().label("number")
_CONNECTORS = (
    sa.select(CONNECTORS.c.uid, CONNECTORS.c.name, CONNECTORS.c.target_state, CONNECTOR_REVISIONS.c.document)
    .join(
        CONNECTOR_REVISIONS,
        (CONNECTOR_REVISIONS.c.uid == CONNECTORS.c.uid) & (CONNECTOR_REVISIONS.c.revision == CONNECTORS.c.revision),
    )
    .where(CONNECTORS.c.deleted_at.is_(None))
    .order_by(CONNECTORS.c.created_at, CONNECTORS.c.uid)
)
_SETTLED = (
    sa.select(
        RANGES.c.uid,
        RANGES.c.stream,
        sa.func.count().label("receipts"),
        sa.func.max(RANGES.c.closed_at).label("newest"),
        *(sa.func.coalesce(sa.func.sum(RANGES.c[name]), 0) for name in _SUMMED),
    )
    .where(RANGES.c.state == "settled")
    .group_by(RANGES.c.uid, RANGES.c.stream)
)
_LETTERS = sa.select(DEAD_LETTERS.c.uid, DEAD_LETTERS.c.stage, _NUMBER).group_by(
    DEAD_LETTERS.c.uid, DEAD_LETTERS.c.stage
)
_RUNS = sa.select(RUNS.c.uid, RUNS.c.state, _NUMBER).group_by(RUNS.c.uid, RUNS.c.state)
_NEWEST = (
    sa.select(sa.func.max(RUNS.c.id))
    .where(RUNS.c.stream == LIVE, RUNS.c.state != "running")
    .group_by(RUNS.c.uid, RUNS.c.task)
)
_ENDED = sa.select(RUNS.c.uid, RUNS.c.task, RUNS.c.state, RUNS.c.started_at, RUNS.c.ended_at, RUNS.c.summary).where(
    RUNS.c.id.in_(_NEWEST)
)
# `open_key` is what the index of open ranges is made by.
_OPEN_RANGES = sa.select(RANGES.c.uid, _NUMBER).where(RANGES.c.open_key.is_not(None)).group_by(RANGES.c.uid)
_GAPS = sa.select(GAPS.c.uid, _NUMBER).group_by(GAPS.c.uid)
_HELD_UP = (
    sa.select(PARTITIONS.c.uid, _NUMBER)
    .where(PARTITIONS.c.stream == LIVE, PARTITIONS.c.state == "quarantined")
    .group_by(PARTITIONS.c.uid)
)
_HELD = LEASES.c.released.is_(False)
_LEASES = (
    sa.select(
        LEASES.c.uid,
        sa.func.count().filter(_HELD).label("held"),
        sa.func.min(LEASES.c.taken_at).filter(_HELD).label("oldest"),
        sa.func.max(LEASES.c.epoch).label("epoch"),
    )
    .where(LEASES.c.uid.is_not(None))
    .group_by(LEASES.c.uid)
)

_PUTS: tuple[tuple[sa.Select[Any], Callable[[ConnectorFigures, Any], None]], ...] = (
    (_SETTLED, _put_settled),
    (_LETTERS, _put_letters),
    (_RUNS, _put_runs),
    (_ENDED, _put_ended),
    (_OPEN_RANGES, _put_open_ranges),
    (_GAPS, _put_gaps),
    (_HELD_UP, _put_held_up),
    (_LEASES, _put_leases),
)
