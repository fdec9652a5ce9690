"""`errors.budget`: how many records of a partition may be rejected within a time, over all runs (delivery rule 26)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from connect_core.errors import TooManyRejects
from connect_core.replication.driver.task import TaskRun
from connect_core.replication.worker.reject_budget import first_over, is_spent, words
from connect_core.sdk.values import Reject
from connect_core.work import ReadLately, RejectLimit
from tests.unit.replication.world import BODIES, MEMORY, World

HOUR = 3600.0


def rejects(*offsets: int) -> list[Reject]:
    return [Reject(offset, 0, "parse", "Bad", "m", b"") for offset in offsets]


def first(limit: RejectLimit, lately: ReadLately, *bad: int, read: int = 0, rejected: int = 0) -> int | None:
    over = first_over(limit, lately, read, rejected, rejects(*bad), np.arange(4_000))
    return None if over is None else over.offset


def test_so_many_records_are_allowed_and_not_one_more() -> None:
    limit = RejectLimit(3, None, HOUR)
    assert first(limit, ReadLately(), 1, 2, 3) is None
    assert first(limit, ReadLately(), 1, 2, 3, 9) == 9
    assert first(limit, ReadLately(500, 2), 1, 5) == 5
    assert first(limit, ReadLately(500, 3), 1, 5) == 1
    assert first(limit, ReadLately(), 7, 8, rejected=2) == 8


def test_a_share_is_one_of_what_was_read_up_to_there() -> None:
    limit = RejectLimit(None, 0.01, HOUR)
    assert first(limit, ReadLately(), *range(10)) is None  # of 1,000 at least
    assert first(limit, ReadLately(), *range(11)) == 10
    assert first(limit, ReadLately(), *range(10), 1_050, 1_600) == 1_050
    assert first(limit, ReadLately(), *range(10), 1_099, 1_199) is None
    assert first(limit, ReadLately(2_000, 15), *range(6)) == 5
    assert first(limit, ReadLately(), *range(20), read=1_990) is None


def test_a_share_is_not_rounded_down() -> None:
    assert not is_spent(RejectLimit(None, 0.29, HOUR), ReadLately(1_000, 0), 0, 289)
    assert is_spent(RejectLimit(None, 0.29, HOUR), ReadLately(1_000, 0), 0, 290)


def test_both_hold() -> None:
    limit = RejectLimit(12, 0.01, HOUR)
    assert first(limit, ReadLately(10_000, 12), 5) == 5
    assert first(limit, ReadLately(100, 10), 5) == 5
    assert not is_spent(limit, ReadLately(2_000, 11), 0, 0)
    assert words(limit) == "12 records and 1% of those read in 1h"
    assert words(RejectLimit(1, None, 90)) == "1 record in 90s"


def run(world: World, limit: RejectLimit) -> None:
    context = replace(world.context(), resolved=replace(world.context().resolved, reject_limit=limit))
    world.said.append("new attempt")
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    TaskRun(context, assignment, 0, world.source, world.sink).run()


def test_a_budget_counts_over_runs_and_frees_itself(world: World) -> None:
    world.tolerance, world.sink.hated = -1, frozenset({BODIES[7], BODIES[77], BODIES[177]})
    limit = RejectLimit(2, None, HOUR)
    with pytest.raises(TooManyRejects, match=r"errors.budget allows 2 records in 1h of each partition"):
        run(world, limit)
    assert (world.committed(), len(world.ledger.dead_letters(world.connector.uid))) == (177, 2)
    with pytest.raises(TooManyRejects, match="offset 177"):
        run(world, limit)
    assert world.committed() == 177
    run(world, limit._replace(window_s=0.000_001))
    assert (world.committed(), len(world.ledger.dead_letters(world.connector.uid))) == (200, 3)


def test_a_record_that_the_target_refuses_late_counts_too() -> None:
    assert is_spent(RejectLimit(2, None, HOUR), ReadLately(5, 1), 9, 1)
    assert not is_spent(RejectLimit(2, None, HOUR), ReadLately(5, 1), 9, 0)
