"""What people are told when a run ends."""

from __future__ import annotations

import pytest

from connect_core.replication.driver.errors import records_gone
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Gap


@pytest.mark.parametrize(("begin", "says_so"), [(0, True), (99, True), (100, False), (500, False)])
def test_who_accepts_a_gap_is_told_what_is_delivered_again(begin: int, says_so: bool) -> None:
    """What is in the place of a file that was read in part may be the same file, whole this time."""
    gaps = [Gap(0, 100, None, "replaced"), Gap(0, 400, 500, "deleted")]
    told = records_gone("waybill run copy", "connector copy", Partition("a.log"), gaps, begin)
    assert f"To continue at {begin} and record the gap: waybill run copy --accept-gaps" in told.next_step
    assert ("also what was delivered before" in told.next_step) is says_so
