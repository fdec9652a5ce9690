"""How shares are given out: for every order of partitions and every history of changes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.planning import Assignment, Share, assigned
from connect_core.sdk.records import Partition

NOTHING = Assignment(0, 0, {})
PARTITIONS = st.lists(st.integers(0, 40).map(lambda n: Partition(f"q{n:02}")), unique=True)
STRATEGIES = st.sampled_from(["even", "consistent-hash"])
STEPS = st.lists(st.tuples(PARTITIONS, st.integers(1, 5), STRATEGIES), min_size=1, max_size=6)


def play(steps: list[tuple[list[Partition], int, str]]) -> list[Assignment]:
    history = [NOTHING]
    for partitions, tasks, strategy in steps:
        history.append(assigned(history[-1], partitions, tasks, strategy))
    return history


@given(STEPS)
def test_slots_are_numbered_without_a_hole_and_never_change(steps: list[tuple[list[Partition], int, str]]) -> None:
    history = play(steps)
    for before, after in pairwise(history):
        assert sorted(share.slot for share in after.shares.values()) == list(range(len(after.shares)))
        for partition, share in before.shares.items():
            assert after.shares[partition].slot == share.slot


@given(STEPS)
def test_every_partition_has_one_task_that_exists(steps: list[tuple[list[Partition], int, str]]) -> None:
    seen: set[Partition] = set()
    for (partitions, tasks, _), after in zip(steps, play(steps)[1:], strict=True):
        seen |= set(partitions)
        assert after.shares.keys() == seen
        assert all(0 <= share.task < tasks for share in after.shares.values())
        assert after.tasks == tasks


@given(STEPS)
def test_tasks_stay_within_a_version_and_a_version_changes_only_with_tasks_or_strategy(
    steps: list[tuple[list[Partition], int, str]],
) -> None:
    history = play(steps)
    for before, after in pairwise(history):
        changed = before.version == 0 or (before.tasks, before.strategy) != (after.tasks, after.strategy)
        assert after.version == before.version + changed
        if after.version == before.version:
            assert before.shares.items() <= after.shares.items()


@given(STEPS)
def test_the_load_is_even(steps: list[tuple[list[Partition], int, str]]) -> None:
    for after in play([(partitions, tasks, "even") for partitions, tasks, _ in steps])[1:]:
        load = Counter(share.task for share in after.shares.values())
        counts = [load[task] for task in range(after.tasks)]
        assert max(counts) - min(counts) <= 1


@given(PARTITIONS, PARTITIONS, st.integers(1, 5), st.randoms())
def test_the_order_of_the_input_means_nothing(
    known: list[Partition], new: list[Partition], tasks: int, random: st.DataObject
) -> None:
    first = assigned(NOTHING, known, tasks)
    shuffled = list(new)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assigned(first, new, tasks) == assigned(first, shuffled, tasks)


KEYS = st.sets(st.text(min_size=1, max_size=20), min_size=1, max_size=300)


@given(KEYS, st.integers(1, 12))
def test_another_task_takes_partitions_by_hash_and_no_other_move(keys: set[str], tasks: int) -> None:
    partitions = [Partition(key) for key in keys]
    before = assigned(NOTHING, partitions, tasks, "consistent-hash")
    more = assigned(before, partitions, tasks + 1, "consistent-hash")
    moved = {one for one in partitions if more.shares[one].task != before.shares[one].task}
    assert moved == {one for one in partitions if more.shares[one].task == tasks}
    assert assigned(more, partitions, tasks, "consistent-hash").shares == before.shares


def test_a_change_moves_few_partitions_by_hash_and_most_of_them_when_dealt_out() -> None:
    partitions = [Partition(f"topic-{number % 7}/broker-a/{number}") for number in range(1000)]
    moved = {}
    for strategy in ("even", "consistent-hash"):
        before = assigned(NOTHING, partitions, 4, strategy)
        after = assigned(before, partitions, 5, strategy)
        moved[strategy] = sum(after.shares[one].task != before.shares[one].task for one in partitions)
        load = Counter(share.task for share in after.shares.values())
        assert min(load.values()) > 150
    assert moved["consistent-hash"] < 250 < 700 < moved["even"]


def test_a_new_partition_has_the_task_by_hash_that_it_would_always_have_had() -> None:
    everything = [Partition(f"q{number}") for number in range(50)]
    whole = assigned(NOTHING, everything, 3, "consistent-hash")
    grown = assigned(assigned(NOTHING, everything[:20], 3, "consistent-hash"), everything, 3, "consistent-hash")
    assert grown.version == 1
    assert {one: share.task for one, share in grown.shares.items()} == {
        one: share.task for one, share in whole.shares.items()
    }


def test_ties_go_to_the_lower_task() -> None:
    three = assigned(NOTHING, [Partition(key) for key in "cab"], 2)
    assert three.shares == {Partition("a"): Share(0, 0), Partition("b"): Share(1, 1), Partition("c"): Share(2, 0)}


def test_the_same_again_is_equal() -> None:
    once = assigned(NOTHING, [Partition("a")], 2)
    assert assigned(once, [Partition("a")], 2) == once
    assert assigned(once, [], 2) == once


def test_no_task_cannot_share() -> None:
    with pytest.raises(ValueError, match="0 tasks"):
        assigned(NOTHING, [Partition("a")], 0)
