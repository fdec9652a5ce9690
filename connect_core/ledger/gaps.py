"""Gaps as they are kept: one row for each place at which something was lost or noticed.

Two can begin at one place: a plan and its receipt tell of one each, or reading begins there again by hand. What is
kept then says all that both say, so that a notice never hides a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.database import upsert
from connect_core.ledger.rows import Row
from connect_core.ledger.tables import GAPS

_KEY = ("uid", "stream", "partition_id", "incarnation", "begin_offset")
_PLACE = sa.tuple_(*(GAPS.c[name] for name in _KEY))
_AT = sa.select(GAPS).where(_PLACE.in_(sa.bindparam("places", expanding=True)))


def keep_gaps(connection: Connection, rows: Sequence[Row]) -> None:
    """Stores gaps together with what is stored at their places. For the holder of the partitions' leases."""
    if not rows:
        return
    stored = connection.execute(_AT, {"places": [_place(row) for row in rows]}).mappings()
    kept: dict[tuple[Any, ...], Row] = {_place(row): dict(row) for row in stored}
    for row in rows:
        before = kept.get(_place(row))
        kept[_place(row)] = row | _both(before, row) if before else row
    upsert(connection, GAPS, _KEY, [kept[place] for place in dict.fromkeys(map(_place, rows))])


def _place(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)


def _both(before: Row, row: Row) -> Row:
    """The end and the reason of two gaps that begin at one place. An end that is not known is the farthest."""
    ends = [before["end_offset"], row["end_offset"]]
    told = _AND.join(("", before["reason"], ""))  # a reason may have _AND in it
    known = _AND.join(("", row["reason"], "")) in told
    reason = before["reason"] if known else _AND.join((before["reason"], row["reason"]))
    return {"end_offset": None if None in ends else max(ends), "reason": reason}


_AND = "; "
