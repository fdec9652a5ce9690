"""Passes over a table by the time of the last change: simulated transactions, looks and attempts that were killed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from connect_core.sdk.values import Position
from connect_core.systems.tables.finality import Finality, OpenTransaction
from connect_core.systems.tables.passes import Pass, TimeWindow, second_behind, settled_second
from connect_core.systems.tables.stretches import PassStretch
from connect_core.systems.tables.whole import WholePass

DELAY_S = 0.5


class Version(NamedTuple):
    time: int
    """As the column keeps it: whole seconds."""
    number: int


@dataclass
class Transaction:
    name: str
    begun: float
    changed: dict[int, Version] = field(default_factory=dict)


@dataclass
class World:
    """A table, its writers, and the clock of its database. A row is locked until its transaction ends."""

    chosen: random.Random
    now: float = 1_000_000.0
    rows: dict[int, Version] = field(default_factory=dict)
    open: list[Transaction] = field(default_factory=list)
    count: int = 0

    def step(self) -> None:
        self.now += self.chosen.choice([0.0, 0.01, 0.2, 0.7])
        deed = self.chosen.random()
        if deed < 0.3 or not self.open:
            self.count += 1
            self.open.append(Transaction(f"t{self.count}", self.now))
        elif deed < 0.7:
            self._change(self.chosen.choice(self.open))
        else:
            self.open.remove(ended := self.chosen.choice(self.open))
            self.rows |= ended.changed if self.chosen.random() < 0.8 else {}

    def _change(self, by: Transaction) -> None:
        row = self.chosen.randrange(30)
        if any(row in one.changed for one in self.open if one is not by):
            return
        self.count += 1
        by.changed[row] = Version(int(by.begun), self.count)

    def end_all(self) -> None:
        for one in self.open:
            self.rows |= one.changed
        self.open.clear()
        self.now += 3

    def rows_in(self, window: TimeWindow) -> dict[int, Version]:
        begin = -1 if window.begin is None else window.begin
        return {row: one for row, one in sorted(self.rows.items()) if begin <= one.time < window.end}


@dataclass
class Reader:
    """What stays of it when it is killed: the position, and the target with what it knows by incarnation, origin and
    number."""

    world: World
    at: Position | None = None
    planned: Position | None = None
    target: dict[tuple[str, int], Version] = field(default_factory=dict)
    arrived: list[tuple[int, Version]] = field(default_factory=list)
    final: Finality = field(default_factory=Finality)

    def look(self) -> None:
        end = settled_second(self.world.now, DELAY_S)
        self.final.look(end - 1, [OpenTransaction(one.name, prepared=False) for one in self.world.open])
        done = Pass.of(self.at.evidence) if self.at else None
        if self.planned or (self.at and done and self.at.offset < done.stretch.end):
            self.planned = self.planned or self.at
            return
        window = TimeWindow(done.window.end if done else None, self.final.end)
        found = self.world.rows_in(window)
        if found:
            begun = Pass("table", window, PassStretch(min(found), max(found) + 1))
            self.planned = Position(self.at.incarnation + 1 if self.at else 0, begun.stretch.first, begun.evidence)

    def read(self, chosen: random.Random) -> None:
        """Some of the range that is planned. Killed, it leaves what has arrived, and no receipt."""
        if self.planned is None:
            return
        planned = Pass.of(self.planned.evidence)
        assert planned is not None
        left = {row: one for row, one in self.world.rows_in(planned.window).items() if row >= self.planned.offset}
        killed, most = chosen.random() < 0.4, chosen.randrange(1, 12)
        for row in list(left)[:most]:
            known = (str(self.planned.evidence["origin"]), row)
            if known not in self.target:
                self.target[known] = left[row]
                self.arrived.append((row, left[row]))
        if killed:
            self.final = Finality()
            return
        end = planned.stretch.end if len(left) <= most else list(left)[most - 1] + 1
        self.at, self.planned = Position(self.planned.incarnation, end, self.planned.evidence), None


@pytest.mark.parametrize("seed", range(200))
def test_the_last_version_of_each_row_arrives_and_none_twice(seed: int) -> None:
    chosen = random.Random(seed)
    world = World(chosen)
    reader = Reader(world)
    for _ in range(400):
        world.step()
        if chosen.random() < 0.3:
            reader.look()
        if chosen.random() < 0.2:
            reader.read(chosen)
    world.end_all()
    for _ in range(60):
        reader.look()
        reader.read(chosen)
    assert dict(reader.arrived) == world.rows
    assert max(Counter(reader.arrived).values()) == 1
    for row in world.rows:
        numbers = [version.number for one, version in reader.arrived if one == row]
        assert numbers == sorted(numbers)


def test_a_position_knows_its_pass() -> None:
    begun = Pass("a table", TimeWindow(None, 17), PassStretch(3, 9))
    assert Pass.of(begun.evidence) == begun
    assert Pass.of({}) is None
    assert Pass.of({"origin": "x", "numbering": ""}) is None


def test_two_passes_have_two_origins() -> None:
    one = Pass("a table", TimeWindow(5, 17), PassStretch(3, 9))
    others = [
        Pass("another", TimeWindow(5, 17), PassStretch(3, 9)),
        Pass("a table", TimeWindow(4, 17), PassStretch(3, 9)),
    ]
    assert len({each.evidence["origin"] for each in (one, *others)}) == 3


def test_what_is_left_of_a_pass() -> None:
    begun = Pass("a table", TimeWindow(5, 17), PassStretch(3, 9))
    bounds = begun.stretch.bounds(Position(4, 6, begun.evidence))
    assert (bounds.incarnation, bounds.oldest, bounds.begin, bounds.end) == (4, 3, 6, 9)
    assert (bounds.grows, bounds.evidence) == (False, begun.evidence)


def test_a_second_that_is_going_on_is_not_settled() -> None:
    assert settled_second(100.4, 0.5) == 99
    assert settled_second(100.6, 0.5) == 100
    assert second_behind(100.6) == 101


def test_positions_of_former_versions_are_read_and_written_alike() -> None:
    """They have no keys: their tables are numbered by a column."""
    timed = {"origin": "895a2513b564414e", "table": "t", "from": 5, "to": 17, "first": 3, "end": 9}
    assert Pass("t", TimeWindow(5, 17), PassStretch(3, 9)) == Pass.of(timed)
    assert Pass("t", TimeWindow(5, 17), PassStretch(3, 9)).evidence == timed
    whole = {"origin": "63ea84ba9f4c5f95", "table": "t", "pass": "abc", "first": 3, "end": 9}
    assert WholePass("t", "abc", PassStretch(3, 9)) == WholePass.of(whole)
    assert WholePass("t", "abc", PassStretch(3, 9)).evidence == whole


def test_stretches_have_keys_and_origins() -> None:
    first, rest = PassStretch(0, 9, None, ("a", "1")), PassStretch(0, 9, ("a", "1"), None)
    passes = [Pass("t", TimeWindow(5, 17), one) for one in (first, rest, PassStretch(0, 9))]
    assert [Pass.of(one.evidence) for one in passes] == passes
    assert len({one.evidence["origin"] for one in passes}) == 3
    assert [one.stretch.has_more_behind for one in passes] == [True, False, False]
