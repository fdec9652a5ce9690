"""What a run has seen behind its ranges is not looked for again by those that follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connect_core.replication.driver.scan_cache import ScanCache
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import Floor, FloorMove, OpenRange
from connect_core.work import Receipt
from tests.unit.replication.memory import open_range

TARGET = "memory"


def settled(cache: ScanCache, end: int, *, ahead: bool = True) -> None:
    found = ScanResult().merged([(n, 0, TARGET, n) for n in range(90)], {TARGET: 90}, True)
    item = replace(open_range(0, 100), found=found)
    floors = (FloorMove(0, Floor(item.range.partition.id, TARGET, end, ahead)),)
    cache.settled(item, replace(receipt(end), floors=floors))


def receipt(end: int) -> Receipt:
    return Receipt(0, end, end, 0, 0, 0, end, end, 0, end, 0, 0, 0, 0, 0.0, "", "", where={}, evidence={}, floors=())


def test_the_range_that_follows_takes_its_part_of_what_was_seen() -> None:
    cache = ScanCache()
    settled(cache, 40)
    [item] = cache.with_known([open_range(40, 100)])
    assert item.found is not None
    assert (item.found.there(), item.found.scanned) == (50, {TARGET: 90})


@pytest.mark.parametrize("ahead", [True, False])
def test_where_nothing_stands_further_on_nothing_is_kept(ahead: bool) -> None:
    cache = ScanCache()
    settled(cache, 40)
    settled(cache, 40, ahead=ahead)
    assert (cache.known(open_range(40, 100)) is not None) == ahead


def other_target(item: OpenRange) -> OpenRange:
    pins = replace(item.range.pins, target={"topic": "another"})
    return replace(item, range=replace(item.range, pins=pins))


def test_a_range_elsewhere_or_to_another_target_is_looked_for() -> None:
    cache = ScanCache()
    settled(cache, 40)
    former = replace(open_range(40, 100), range=replace(open_range(40, 100).range, incarnation=1))
    for item in (open_range(41, 100), other_target(open_range(40, 100)), former):
        assert cache.known(item) is None


@pytest.mark.parametrize(
    ("changed", "known"),
    [({"code": "newer"}, True), ({"connections": {"sink": {"name_servers": ["b"]}}}, False), ({"revision": 2}, False)],
)
def test_targets_of_one_name_may_stand_in_two_clusters(changed: dict[str, Any], known: bool) -> None:
    cache = ScanCache()
    settled(cache, 40)
    item = open_range(40, 100)
    item = replace(item, range=replace(item.range, pins=replace(item.range.pins, **changed)))
    assert (cache.known(item) is not None) == known
