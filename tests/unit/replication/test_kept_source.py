"""The source of a worker that stays: kept from lane to lane, until something fails or another one is meant."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest

from connect_core.errors import Failure
from connect_core.replication.worker import lane as module
from connect_core.replication.worker.lane import KeptSource, work
from connect_core.work import Lane, Outcome, Side
from tests.unit.replication.memory import lane_of, open_range


@dataclass
class Opened:
    """What was built, and what of it is open; `comes` is what the next lanes come to."""

    built: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    comes: list[Outcome | Exception] = field(default_factory=list)

    def source(self, side: Side, resources: ExitStack) -> str:
        return self._built(f"source {side.options['n']}", resources)

    def sink(self, side: Side, resources: ExitStack) -> str:
        return self._built(f"sink {side.options['n']}", resources)

    def _built(self, what: str, resources: ExitStack) -> str:
        self.built.append(what)
        resources.callback(self.closed.append, what)
        return what

    def move(self, lane: Lane, source: str, sink: str, *rest: object) -> Sequence[Outcome]:
        came = self.comes.pop(0)
        if isinstance(came, Exception):
            raise came
        return [came]


FINE = Outcome(1, None)
FAILED = Outcome(1, None, Failure("Retriable", "it is slow"))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    there = Opened()
    monkeypatch.setattr(module.systems, "source", there.source)
    monkeypatch.setattr(module.systems, "sink", there.sink)
    monkeypatch.setattr(module, "move", there.move)
    return there


def lane(number: int = 1) -> Lane:
    side = Side("memory", {"n": number})
    return replace(lane_of(open_range(0, 1)), source=side, sink=side)


def test_a_source_is_kept_until_something_fails(opened: Opened) -> None:
    """The sink is not: what a lane writes has to end within its time."""
    kept = KeptSource()
    opened.comes = [FINE, FINE, FAILED, FINE, OSError("away"), FINE]
    for _ in range(4):
        work(lane(), kept)
    assert opened.closed == ["sink 1", "sink 1", "sink 1", "source 1", "sink 1"]
    with pytest.raises(OSError, match="away"):
        work(lane(), kept)
    assert opened.closed[5:] == ["sink 1", "source 1"]
    work(lane(), kept)
    assert opened.built.count("source 1") == 3
    kept.close()
    assert opened.closed.count("source 1") == 3


def test_another_source_takes_its_place(opened: Opened) -> None:
    kept = KeptSource()
    opened.comes = [FINE, FINE]
    work(lane(1), kept)
    work(lane(2), kept)
    assert opened.built == ["sink 1", "source 1", "sink 2", "source 2"]
    assert opened.closed == ["sink 1", "source 1", "sink 2"]


def test_a_source_that_fails_when_it_is_closed_fails_no_lane(opened: Opened) -> None:
    kept = KeptSource()
    opened.comes = [FINE]
    work(lane(), kept)
    kept._resources.callback(int, "x")
    kept.close()
