"""What the partitions of a connector have begun: for sources that recognise it under another name (delivery rule 15).

Tasks look and plan side by side. A plan that begins something is made, and what was seen of a partition is kept, only
while the others have begun nothing since it was looked: the transaction holds the connector's row, so that of two that
begin at once the second one looks again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.rows import position_of
from connect_core.ledger.tables import OFFSETS, RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Position


class Begun(NamedTuple):
    """As one task sees it. `mine` are its partitions, by id. `places` are where all partitions stand, and where all
    open ranges begin. `others` changes whenever somebody else begins something, also in one of `mine`: what is seen of
    a partition first is kept without a lease."""

    mine: frozenset[str]
    places: tuple[tuple[Partition, Position], ...]
    others: frozenset[tuple[str, int]]


# Built once: building a statement costs more than running it.
_STANDING = sa.select(OFFSETS).where(
    OFFSETS.c.uid == sa.bindparam("connector"), OFFSETS.c.stream == sa.bindparam("of_stream")
)
_OPEN = sa.select(
    RANGES.c.partition_id, RANGES.c.partition_key, RANGES.c.incarnation, RANGES.c.begin_offset, RANGES.c.evidence
).where(
    RANGES.c.uid == sa.bindparam("connector"),
    RANGES.c.stream == sa.bindparam("of_stream"),
    RANGES.c.open_key.is_not(None),
)


def begun(connection: Connection, uid: str, stream: str, mine: Collection[str]) -> Begun:
    of_stream = {"connector": uid, "of_stream": stream}
    opened = list(connection.execute(_OPEN, of_stream))  # first: what is settled meanwhile stands there
    standing = list(connection.execute(_STANDING, of_stream))
    places = [(Partition(row.partition_key), position_of(row)) for row in standing]
    places += [(Partition(row.partition_key), _begin_of(row)) for row in opened]
    others = {(row.partition_id, row.incarnation) for row in standing}
    others |= {(row.partition_id, row.incarnation) for row in opened if row.partition_id not in mine}
    return Begun(frozenset(mine), tuple(places), frozenset(others))


def undisturbed(connection: Connection, uid: str, stream: str, beside: Begun | None) -> bool:
    """Whether the others have begun nothing since a task was `beside` them; None: there are no others."""
    return beside is None or begun(connection, uid, stream, beside.mine).others == beside.others


def _begin_of(row: Any) -> Position:
    return Position(row.incarnation, row.begin_offset, row.evidence)
