"""Up to which number of a table nothing comes any more."""

from __future__ import annotations

import random

import pytest

from connect_core.systems.tables.finality import Finality, OpenTransaction


def writers(*names: str, prepared: tuple[str, ...] = ()) -> list[OpenTransaction]:
    return [OpenTransaction(name, False) for name in names] + [OpenTransaction(name, True) for name in prepared]


def test_what_nobody_writes_beside_is_final_at_once() -> None:
    final = Finality()
    final.look(None, [])
    assert (final.end, final.newest) == (0, 0)
    final.look(7, [])
    assert (final.end, final.newest) == (8, 8)


def test_who_was_there_has_to_end_and_who_came_later_does_not() -> None:
    final = Finality()
    final.look(7, writers("a", "b"))
    final.look(9, writers("b", "c"))
    assert (final.end, final.newest) == (0, 10)
    final.look(9, writers("c", "d"))
    assert final.end == 8
    final.look(9, writers("d"))
    assert final.end == 10


def test_a_long_transaction_holds_up_what_came_after_it_alone() -> None:
    final = Finality()
    final.look(1, writers("short"))
    final.look(2, writers("short", "long"))
    for newest in range(3, 1000):
        final.look(newest, writers("long", f"other {newest}"))
    assert final.end == 2
    assert len(final._candidates) < 5
    final.look(1000, writers())
    assert final.end == 1001


def test_one_that_is_prepared_may_have_another_name_then() -> None:
    final = Finality()
    final.look(7, writers("a", "b"))
    final.look(7, writers("b", prepared=("of a",)))
    final.look(7, writers(prepared=("of a",)))
    assert final.end == 0
    final.look(7, [])
    assert final.end == 8


def test_the_end_does_not_go_back_when_rows_are_deleted() -> None:
    final = Finality()
    final.look(7, [])
    final.look(3, [])
    final.look(None, writers("a"))
    assert final.end == 8


@pytest.mark.parametrize("seed", range(200))
def test_nothing_comes_below_the_end(seed: int) -> None:
    """Transactions draw numbers, commit and roll back in any order, with a look in between now and then."""
    chosen, final, counter = random.Random(seed), Finality(), 0
    committed: set[int] = set()
    running: dict[str, list[int]] = {}
    for step in range(400):
        way = chosen.random()
        if way < 0.3 or not running:
            running[f"t{step}"] = []
        elif way < 0.6:
            counter += 1
            chosen.choice([*running.values()]).append(counter)
        elif way < 0.8:
            drawn = running.pop(chosen.choice([*running]))
            if chosen.random() < 0.8:
                assert all(number >= final.end for number in drawn)
                committed |= set(drawn)
        else:
            newest = max(committed, default=None)
            if chosen.random() < 0.5 and running:  # one that commits between the two statements of a look
                committed |= set(running.pop(chosen.choice([*running])))
            final.look(newest, writers(*(name for name, drawn in running.items() if drawn)))
    for drawn in running.values():
        assert all(number >= final.end for number in drawn)
    final.look(max(committed), [])
    assert final.end == max(committed) + 1
