"""Records that the source has lost: told as gaps, in the transaction that moves the offset behind them."""

from __future__ import annotations

import pytest

from connect_core.contracts import Gap
from connect_core.errors import OffsetGone
from connect_core.observe import Step
from tests.unit.replication.dying import Killed, Mortal
from tests.unit.replication.world import BODIES, World


@pytest.fixture
def expired(world: World) -> World:
    """100 records are settled; of the 100 that came since, the source has lost the first 50."""
    world.source.bodies = BODIES[:100]
    world.run()
    world.source.bodies = list(BODIES)
    world.source.oldest = 150
    return world


@pytest.fixture
def nothing_left(expired: World) -> World:
    """All of them are lost."""
    expired.source.oldest = len(BODIES)
    return expired


def told(world: World) -> list[Gap]:
    return [stored.gap for stored in world.ledger.gaps(world.connector.uid)]


def test_a_gap_stops_the_run_and_the_error_says_how_to_go_on(expired: World) -> None:
    with pytest.raises(OffsetGone, match=r"expired: from 100 to 150.*waybill run orders --accept-gaps"):
        expired.run()
    assert (expired.committed(), told(expired)) == (100, [])


@pytest.mark.parametrize("how", ["document", "command"])
def test_a_gap_is_told_and_the_run_goes_on_where_somebody_wants_that(expired: World, how: str) -> None:
    expired.on_gap, expired.accept_gaps = ("skip", False) if how == "document" else ("fail", True)
    expired.run()
    assert [offset for offset, _ in expired.sink.rows] == [*range(100), *range(150, 200)]
    assert told(expired) == [Gap(0, 100, 150, "expired")]


def test_a_gap_with_nothing_behind_it_is_settled(nothing_left: World) -> None:
    nothing_left.accept_gaps = True
    nothing_left.run()
    assert (nothing_left.committed(), told(nothing_left)) == (200, [Gap(0, 100, 200, "expired")])
    empty = nothing_left.receipts()[-1]
    assert (empty.begin, empty.end, empty.read, empty.gaps) == (200, 200, 0, tuple(told(nothing_left)))
    assert len(nothing_left.engine.lanes) == 1
    nothing_left.accept_gaps = False
    assert nothing_left.run().receipts == []


def test_a_gap_with_nothing_behind_it_is_settled_by_the_attempt_after_a_kill(nothing_left: World) -> None:
    nothing_left.accept_gaps = True
    with pytest.raises(Killed):
        Mortal.run_of(nothing_left, Step.PLANNED)
    nothing_left.run()
    assert (nothing_left.committed(), told(nothing_left)) == (200, [Gap(0, 100, 200, "expired")])
