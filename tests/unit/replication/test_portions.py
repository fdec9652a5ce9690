"""Many ranges go to the ledger in portions, and an attempt may die between any two of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.ledger import floors as moving
from connect_core.observe import Step
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.replication.driver.ledger_batches import in_batches, to_settle
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Floor, FloorMove
from connect_core.work import Outcome
from tests.contract.ledger.samples import receipt
from tests.unit.replication.dying import Killed, Mortal
from tests.unit.replication.memory import MemorySource
from tests.unit.replication.several import SeveralEngine, SeveralSink, SeveralSources, SeveralWorld
from tests.unit.replication.world import World

PARTITIONS = [Partition(f"p{n}") for n in range(7)]
EACH = 30
PORTION = 2


@pytest.fixture
def seven(world: World) -> SeveralWorld:
    """Seven partitions, of which two go into one transaction."""
    parts = {one: MemorySource([f"{one.key}{n}".encode() for n in range(EACH)]) for one in PARTITIONS}
    source, sink = SeveralSources(parts, {*PARTITIONS}), SeveralSink()
    made = SeveralWorld(world.ledger, world.connector, world.home, source, sink, SeveralEngine(source, sink))  # type: ignore[arg-type]
    made.batch_ranges = PORTION
    return made


def sound(world: SeveralWorld) -> bool:
    """Every record is there once, nothing is open, and the receipts account for all of them."""
    rows = world.receipts()
    return (
        world.moved() == {one.key: EACH for one in PARTITIONS}
        and not world.open_keys()
        and sum(one.delivered + one.deduplicated for one in rows) == EACH * len(PARTITIONS)
        and not any(one.duplicates for one in rows)
    )


def killed_at(world: SeveralWorld, step: Step, times: int) -> None:
    """The driver dies when it reaches the step for the n-th time."""
    named = world.source.partitions([])
    assignment = world.ledger.assign(world.connector.uid, named, 1)
    driver = Mortal(world.context(), assignment, 0, world.source, world.sink, frozenset(named))
    driver.dies_at, driver.lives_through = step, times - 1
    with pytest.raises(Killed):
        driver.run()


@pytest.mark.parametrize("step", [Step.PLANNED, Step.SETTLED])
@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_an_attempt_may_die_between_any_two_portions(seven: SeveralWorld, step: Step, times: int) -> None:
    killed_at(seven, step, times)
    left = 2 * times if step is Step.PLANNED else 7 - 2 * times
    assert len(seven.open_keys()) == min(max(left, 0), 7)
    seven.run()
    assert sound(seven)
    assert sum(one.deduplicated for one in seven.receipts()) == (EACH * max(left, 0) if step is Step.SETTLED else 0)


@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_and_the_next_attempt_as_well(seven: SeveralWorld, times: int) -> None:
    """What it inherits is adopted, looked for and settled in portions too."""
    killed_at(seven, Step.PLANNED, 4)
    killed_at(seven, Step.SETTLED, times)
    killed_at(seven, Step.FOUND, 1) if times < 4 else None
    seven.run()
    assert sound(seven)


@pytest.mark.parametrize("times", [1, 3, 4])
def test_in_a_window_too(seven: SeveralWorld, times: int) -> None:
    seven.window_s, seven.times = 1.0, LeaseTimes(ttl_s=4, margin_s=0.5, quantum_s=0.5, idle_timeout_s=0.05)
    killed_at(seven, Step.SETTLED, times)
    seven.run()
    seven.run_closed()
    assert sound(seven)


WRITES: dict[str, Callable[[Sequence[Any]], int]] = {
    "plan": lambda asked: len(asked[4]),
    "settle": lambda asked: len(asked[3]),
    "adopt": lambda asked: len(asked[2]),
    "withdraw": lambda asked: len(asked[1]),
    "record_found": lambda asked: len(asked[1]),
    "bound": lambda asked: len(asked[1]),
}


def test_no_transaction_holds_more_than_a_portion(seven: SeveralWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a plan, a settle, and everything that is done with what an attempt left."""
    seen: dict[str, list[int]] = {name: [] for name in WRITES}

    def watched(name: str) -> Callable[..., object]:
        real = getattr(seven.ledger, name)

        def call(*asked: Any, **more: Any) -> object:
            seen[name].append(WRITES[name](asked))
            return real(*asked, **more)

        return call

    for name in WRITES:
        monkeypatch.setattr(seven.ledger, name, watched(name))
    killed_at(seven, Step.EXECUTED, 1)
    seven.window_s, seven.times = 1.0, LeaseTimes(ttl_s=4, margin_s=0.5, quantum_s=0.4, idle_timeout_s=0.05)
    seven.run()
    assert sound(seven)
    assert all(max(sizes) <= PORTION for sizes in seen.values() if sizes), seen
    assert {name for name, sizes in seen.items() if sizes} >= {"plan", "settle", "adopt", "record_found"}


# ------------------------------------------------------------------------------------------- floors that all share


def outcome(number: int, *moves: tuple[int, int]) -> Outcome:
    floors = tuple(FloorMove(begin, Floor("", "/out", end)) for begin, end in moves)
    return Outcome(number, receipt(0, 10, floors=floors))


@given(lengths=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=12), data=st.data())
def test_each_portion_moves_a_shared_floor_from_where_the_one_before_left_it(
    lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Whatever the order of the outcomes. Live ranges that were flushed together move the same stretch."""
    at, made = 0, list[Outcome]()
    for length, together in lengths:
        made += [outcome(len(made) + n, (at, at + length)) for n in range(together)]
        at += length
    size = data.draw(st.integers(1, 5))
    cut = list(to_settle(data.draw(st.permutations(made)), size))
    assert sorted(one.range_id for some in cut for one in some) == list(range(len(made)))
    stored = Floor("", "/out", 0)
    for some in cut:
        wanted = [
            moving.WantedMove(one.range_id, "p", move, shared=True) for one in some for move in one.receipt.floors
        ]  # type: ignore[union-attr]
        [stored], misfits = moving.moved({moving.key_of(stored): stored}, wanted)
        assert not misfits
    assert stored.position == at


@given(count=st.integers(0, 20), size=st.integers(1, 7))
def test_without_shared_floors_portions_are_full(count: int, size: int) -> None:
    outcomes = [outcome(n) for n in range(count)]
    assert list(to_settle(outcomes, size)) == [list(some) for some in in_batches(outcomes, size)]
