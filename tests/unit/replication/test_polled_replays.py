"""What a replay sees of a polled source whose pages without records are more than one look passes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from connect_core.planning.backfill_plan import BackfillPlan, Part
from connect_core.replication.driver import available
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.memory import MemoryPages
from connect_core.sdk.values import Position

ALL = Partition("all")


def test_a_record_behind_many_pages_without_records_is_not_lost() -> None:
    """And the lease is renewed in between: each look takes its time."""
    renewed: list[None] = []
    task: Any = SimpleNamespace(
        context=SimpleNamespace(backfill_plan=BackfillPlan((Part(ALL, 0, 0, 1, {}),))),
        positions=lambda: {ALL: Position(0, 0)},
        source=MemoryPages([b"far"], empty=2_500),
        held=SimpleNamespace(renew_in_time=lambda: renewed.append(None)),
        lifecycle=SimpleNamespace(reads=lambda partition: True, readable=lambda bounds, failures: bounds),
        end_offsets=SimpleNamespace(saw=lambda bounds: None, aims_at=lambda goals: None),
        gaps_accepted=lambda: True,
    )
    seen = available.bounds(task)[ALL]
    assert (seen.begin, seen.end, seen.gaps) == (0, 1, ())
    assert renewed
