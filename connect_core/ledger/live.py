"""Live ranges: those that nobody knows the end of when they are planned. Called by a run's driver in a window.

One that nothing was written of is withdrawn, as if it had never been planned; one that an attempt left open gets an end
when it is adopted. Settled ones of one run that adjoin become one: a run that stays for an hour has one receipt a
partition, and the newest beside it, which is never merged, so that it can be read back (delivery rule 5).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.errors import DataError
from connect_core.ledger.database import Transactions
from connect_core.ledger.leases import Lease, fence
from connect_core.ledger.rows import receipt_of, receipt_row
from connect_core.ledger.tables import DEAD_LETTERS, GAPS, RANGES
from connect_core.sdk.digest_texts import added_up
from connect_core.sdk.values import OPEN_END, Json
from connect_core.work import COUNTS, Receipt

MAX_SPANS = 64
"""Stretches of one place that a merged receipt names; of more only from where to where."""

_SUMMED = (*COUNTS, "bytes_read", "bytes_written", "seconds")
_OPEN_LIVE = (
    RANGES.update()
    .where(RANGES.c.id == sa.bindparam("range_id"), RANGES.c.state == "open", RANGES.c.planned_end >= OPEN_END)
    .values(planned_end=sa.bindparam("reached"))
)
_OF_RUN = (
    sa.select(RANGES)
    .where(RANGES.c.run_id == sa.bindparam("run"), RANGES.c.state == "settled", RANGES.c.planned_end >= OPEN_END)
    .where(RANGES.c.partition_id.in_(sa.bindparam("wanted", expanding=True)))
    .order_by(RANGES.c.partition_id, RANGES.c.id)
)


class LiveRanges(Transactions):
    """The part of the ledger that is about ranges without an end."""

    def bound(self, leases: Sequence[Lease], ends: Mapping[int, int]) -> None:
        """Gives open live ranges an end, by id. Raises DataError when one is not open or has an end already."""
        with self._write() as connection:
            fence(connection, leases)
            for range_id, end in ends.items():
                if connection.execute(_OPEN_LIVE, {"range_id": range_id, "reached": end}).rowcount != 1:
                    raise _cannot_change(range_id)

    def withdraw(self, leases: Sequence[Lease], range_ids: Sequence[int]) -> None:
        """Takes back open ranges of which nothing is in a target: live ones, or ones that no later attempt has adopted.
        Raises DataError when one is not open."""
        with self._write() as connection:
            fence(connection, leases)
            for range_id in range_ids:
                own = (RANGES.c.planned_end >= OPEN_END) | (RANGES.c.attempts == 1)
                withdrawn = (RANGES.c.id == range_id) & (RANGES.c.state == "open") & own
                if connection.execute(RANGES.delete().where(withdrawn)).rowcount != 1:
                    raise _cannot_change(range_id)


def _cannot_change(range_id: int) -> DataError:
    return DataError(
        f"Range {range_id} is no longer open, or has changed: it has an end, or was adopted",
        next_step="Read the open ranges again",
    )


def merge_settled(connection: Connection, run_id: str, partition_ids: Collection[str]) -> None:
    """Merges the settled live ranges of a run that adjoin, but the newest of each of these partitions. In the
    transaction that has just settled it, so there are at most three of each."""
    rows = connection.execute(_OF_RUN, {"run": run_id, "wanted": sorted(partition_ids)}).all()
    older = [row for row, following in pairwise(rows) if row.partition_id == following.partition_id]
    kept: Any = None
    for row in older:
        values = _merged_row(kept, row) if kept is not None else None
        if values is None:
            kept = row
            continue
        for table in (GAPS, DEAD_LETTERS):
            connection.execute(table.update().where(table.c.range_id == row.id).values(range_id=kept.id))
        connection.execute(RANGES.delete().where(RANGES.c.id == row.id))
        connection.execute(RANGES.update().where(RANGES.c.id == kept.id).values(**values))
        kept = None


def _merged_row(first: Any, second: Any) -> Json | None:
    """The columns that change when `second` becomes part of `first`; None when they do not go together."""
    same = ("partition_id", "stream", "incarnation", "pins", "epoch")
    if any(getattr(first, name) != getattr(second, name) for name in same) or first.end_offset != second.begin_offset:
        return None
    receipt = None if second.gaps else merged(receipt_of(first), receipt_of(second))
    return None if receipt is None else receipt_row(receipt) | {"closed_at": second.closed_at}


def merged(first: Receipt, second: Receipt) -> Receipt | None:
    """One receipt for two that adjoin; None when their digests or places cannot be put together."""
    read, sent = added_up(first.digest_read, second.digest_read), added_up(first.digest_sent, second.digest_sent)
    where = _joined(first.where, second.where)
    if read is None or sent is None or where is None or first.reconstructed or second.reconstructed:
        return None
    sums = {name: getattr(first, name) + getattr(second, name) for name in _SUMMED}
    return replace(
        second,
        begin=first.begin,
        where=where,
        digest_read=read,
        digest_sent=sent,
        gaps=(*first.gaps, *second.gaps),
        covered=None if first.covered is None or second.covered is None else first.covered + second.covered,
        **sums,
    )


def _joined(first: Json, second: Json) -> Json | None:
    """Stretches by place, as the receipts of live ranges have them: `{place: [[begin, end], ...]}`."""
    places = {}
    for place in (*first, *(place for place in second if place not in first)):
        spans = [*first.get(place, ()), *second.get(place, ())]
        if not all(isinstance(span, list) and len(span) == 2 for span in spans):
            return None
        places[place] = _coalesced(spans)
    return places


def _coalesced(spans: Sequence[list[int]]) -> list[list[int]]:
    joined: list[list[int]] = []
    for begin, end in spans:
        if joined and joined[-1][1] == begin:
            joined[-1][1] = end
        else:
            joined.append([begin, end])
    return joined if len(joined) <= MAX_SPANS else [[joined[0][0], joined[-1][1]]]
