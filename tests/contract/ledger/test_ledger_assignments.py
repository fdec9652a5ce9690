"""Assignments as they are stored; how shares are given out is tested in tests/unit/ledger."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from connect_core.errors import ConfigError
from connect_core.ledger import Ledger
from connect_core.planning import Assignment, Share
from connect_core.sdk.records import Partition


@pytest.fixture
def uid(ledger: Ledger) -> str:
    return ledger.apply("orders", {}, who="ann").connector.uid


def parts(*keys: str) -> list[Partition]:
    return [Partition(key) for key in keys]


def test_nothing_is_assigned_at_first(ledger: Ledger, uid: str) -> None:
    assert ledger.partitions(uid) == {}
    assert ledger.assignment(uid) == Assignment(0, 0, {})


def test_shares_are_kept_and_new_partitions_join_the_version(ledger: Ledger, uid: str) -> None:
    first = ledger.assign(uid, parts("b", "a"), 2)
    assert first == Assignment(1, 2, {Partition("a"): Share(0, 0), Partition("b"): Share(1, 1)})
    second = ledger.assign(uid, parts("0", "b"), 2)
    assert second == Assignment(1, 2, {**first.shares, Partition("0"): Share(2, 0)})
    assert ledger.partitions(uid) == second.shares
    assert ledger.assign(uid, parts("a", "b", "0"), 2) == second


def test_what_was_found_without_knowing_of_others_is_not_shared_out(ledger: Ledger, uid: str) -> None:
    first = ledger.assign(uid, parts("a"), 2)
    second = ledger.assign(uid, parts("b"), 2)
    assert ledger.assign_beside(uid, parts("a", "c"), 2, "even", first.shares) is None
    assert ledger.assign_beside(uid, parts("a"), 3, "even", first.shares) is None
    assert ledger.partitions(uid) == second.shares
    assert ledger.assign_beside(uid, parts("a"), 2, "even", first.shares) == second
    third = ledger.assign_beside(uid, parts("a", "c"), 2, "even", second.shares)
    assert third is not None
    assert third.shares.keys() == {*parts("a", "b", "c")}


def test_another_number_of_tasks_is_a_new_version_and_the_old_one_is_kept(ledger: Ledger, uid: str) -> None:
    first = ledger.assign(uid, parts("a", "b", "c"), 1)
    second = ledger.assign(uid, parts("a", "b", "c", "d"), 2)
    assert second.version == 2
    assert [second.shares[part] for part in parts("a", "b", "c", "d")] == [
        Share(0, 0),
        Share(1, 1),
        Share(2, 0),
        Share(3, 1),
    ]
    assert ledger.assignment(uid, 1) == first
    assert ledger.assignment(uid) == second


def test_an_unknown_connector_is_told(ledger: Ledger) -> None:
    with pytest.raises(ConfigError):
        ledger.assign("0" * 12, parts("a"), 1)


def test_many_partitions(ledger: Ledger, uid: str) -> None:
    many = parts(*(f"q{n:05}" for n in range(2000)))
    assert ledger.assign(uid, many, 7).shares == ledger.partitions(uid)
    found = ledger.positions(uid, "live", many)
    assert len(found) == 2000
    assert set(found.values()) == {None}


def test_drivers_that_assign_at_once_agree(ledger: Ledger, uid: str) -> None:
    start = threading.Barrier(4)

    def assign(number: int) -> Assignment:
        start.wait()
        return ledger.assign(uid, parts("shared", f"own-{number}"), 2)

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(assign, range(4)))
    final = ledger.assignment(uid)
    assert {share.slot for share in final.shares.values()} == set(range(5))
    for assignment in seen:
        assert assignment.version == 1
        assert assignment.shares.items() <= final.shares.items()


def test_another_strategy_is_a_new_version_and_is_remembered(ledger: Ledger, uid: str) -> None:
    first = ledger.assign(uid, parts("a", "b"), 2)
    second = ledger.assign(uid, parts("a", "b"), 2, "consistent-hash")
    assert (first.strategy, second.strategy, second.version) == ("even", "consistent-hash", 2)
    assert ledger.assignment(uid) == second
    assert ledger.assignment(uid, 1) == first
