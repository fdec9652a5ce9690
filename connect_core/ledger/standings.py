"""What the ledger knows of what connectors do now, of all of them at once: one statement a table, however many there
are. Of the live stream only.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from connect_core.ledger.database import Transactions
from connect_core.ledger.history import Run, run_of
from connect_core.ledger.leases import LeaseState, lease_state_of
from connect_core.ledger.partitions import PartitionState, partition_state_of
from connect_core.ledger.tables import AUDIT, LEASES, PARTITIONS, RUNS
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE


@dataclass
class Standing:
    """`runs` are those that never said how they ended, and of those that did the newest of each task; the newest first.
    `leases` are those that are not released; `quarantined` the partitions that were put aside. `switched_at` is when a
    person last said what the connector shall do; None where nobody has."""

    runs: list[Run] = field(default_factory=list)
    leases: list[LeaseState] = field(default_factory=list)
    quarantined: dict[Partition, PartitionState] = field(default_factory=dict)
    switched_at: datetime | None = None


class Standings(Transactions):
    """The part of the ledger that knows what connectors do."""

    def standings(self, uid: str | None = None, *, switched: bool = True) -> dict[str, Standing]:
        """By connector, of one or of all; none of those of which there is nothing to say. Without `switched` nobody
        looks when a switch was turned."""
        found: dict[str, Standing] = defaultdict(Standing)
        of, named = (_OF_ALL, {}) if uid is None else (_OF_ONE, {"connector": uid})
        with self._read() as connection:
            for row in connection.execute(of.runs, named):
                found[row.uid].runs.append(run_of(row))
            for row in connection.execute(of.leases, named):
                found[row.uid].leases.append(lease_state_of(row))
            for row in connection.execute(of.quarantined, named):
                found[row.uid].quarantined[Partition(row.partition_key)] = partition_state_of(row)
            for row in connection.execute(of.switched, named) if switched else ():
                found[row.uid].switched_at = row.switched_at
        for one in found.values():
            one.runs.sort(key=lambda run: (run.started_at, run.id), reverse=True)
        return dict(found)


class _Queries(NamedTuple):
    """Made once: to make them anew takes longer than to ask a small ledger."""

    runs: sa.CompoundSelect[Any]
    leases: sa.Select[Any]
    quarantined: sa.Select[Any]
    switched: sa.Select[Any]


def _queries(only: sa.BindParameter[str] | None) -> _Queries:
    """Of all connectors, or of one. Of the runs that ended the newest of each task: ids of runs ascend. One statement
    for both kinds of runs, so that none that ends meanwhile is seen twice, or not at all."""

    def of(table: sa.Table, query: sa.Select[Any]) -> sa.Select[Any]:
        return query if only is None else query.where(table.c.uid == only)

    running = sa.select(RUNS).where(RUNS.c.stream == LIVE, RUNS.c.state == "running")
    newest = sa.select(sa.func.max(RUNS.c.id)).where(RUNS.c.stream == LIVE, RUNS.c.state != "running")
    ended = sa.select(RUNS).where(RUNS.c.id.in_(of(RUNS, newest).group_by(RUNS.c.uid, RUNS.c.task)))
    leases = (
        sa.select(LEASES)
        .where(LEASES.c.stream == LIVE, LEASES.c.released.is_(False), LEASES.c.uid.is_not(None))
        .order_by(LEASES.c.version, LEASES.c.id)
    )
    quarantined = (
        sa.select(PARTITIONS)
        .where(PARTITIONS.c.stream == LIVE, PARTITIONS.c.state == "quarantined")
        .order_by(PARTITIONS.c.partition_key)
    )
    switched = (
        sa.select(AUDIT.c.uid, sa.func.max(AUDIT.c.done_at).label("switched_at"))
        .where(AUDIT.c.action == "target state", AUDIT.c.uid.is_not(None))
        .group_by(AUDIT.c.uid)
    )
    runs = sa.union_all(of(RUNS, running), of(RUNS, ended))
    return _Queries(runs, of(LEASES, leases), of(PARTITIONS, quarantined), of(AUDIT, switched))


_OF_ALL, _OF_ONE = _queries(None), _queries(sa.bindparam("connector", type_=sa.String))
