"""How shares are given out: for every order of partitions and every history of changes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_core.ledger.assignments import Assignment, Share, assigned
from connect_core.records import Partition

NOTHING = Assignment(0, 0, {})
PARTITIONS = st.lists(st.integers(0, 40).map(lambda n: Partition(f"q{n:02}")), unique=True)
STEPS = st.lists(st.tuples(PARTITIONS, st.integers(1, 5)), min_size=1, max_size=6)


def play(steps: list[tuple[list[Partition], int]]) -> list[Assignment]:
    history = [NOTHING]
    for partitions, tasks in steps:
        history.append(assigned(history[-1], partitions, tasks))
    return history


@settings(max_examples=50)
@given(STEPS)
def test_slots_are_numbered_without_a_hole_and_never_change(steps: list[tuple[list[Partition], int]]) -> None:
    history = play(steps)
    for before, after in pairwise(history):
        assert sorted(share.slot for share in after.shares.values()) == list(range(len(after.shares)))
        for partition, share in before.shares.items():
            assert after.shares[partition].slot == share.slot


@settings(max_examples=50)
@given(STEPS)
def test_every_partition_has_one_task_that_exists(steps: list[tuple[list[Partition], int]]) -> None:
    seen: set[Partition] = set()
    for (partitions, tasks), after in zip(steps, play(steps)[1:], strict=True):
        seen |= set(partitions)
        assert after.shares.keys() == seen
        assert all(0 <= share.task < tasks for share in after.shares.values())
        assert after.tasks == tasks


@settings(max_examples=50)
@given(STEPS)
def test_tasks_stay_within_a_version_and_a_version_changes_only_with_the_number_of_tasks(
    steps: list[tuple[list[Partition], int]],
) -> None:
    history = play(steps)
    for before, after in pairwise(history):
        assert after.version == before.version + (before.tasks != after.tasks)
        if after.version == before.version:
            assert before.shares.items() <= after.shares.items()


@settings(max_examples=50)
@given(STEPS)
def test_the_load_is_even(steps: list[tuple[list[Partition], int]]) -> None:
    for after in play(steps)[1:]:
        load = Counter(share.task for share in after.shares.values())
        counts = [load[task] for task in range(after.tasks)]
        assert max(counts) - min(counts) <= 1


@settings(max_examples=50)
@given(PARTITIONS, PARTITIONS, st.integers(1, 5), st.randoms())
def test_the_order_of_the_input_means_nothing(
    known: list[Partition], new: list[Partition], tasks: int, random: st.DataObject
) -> None:
    first = assigned(NOTHING, known, tasks)
    shuffled = list(new)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assigned(first, new, tasks) == assigned(first, shuffled, tasks)


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
