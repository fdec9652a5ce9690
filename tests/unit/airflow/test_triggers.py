"""The trigger of on_change: what waits at the source is told once, more of it again, and nothing is told of nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from connect_core.airflow.triggers import SourceTrigger
from connect_core.errors import ConfigError, Unreachable

Look = Mapping[str, int] | Exception


class Scripted(SourceTrigger):
    """Sees one look after the other; when there are no more, its task is cancelled, as Airflow ends a trigger."""

    look_every_s = after_an_error_s = 0.0

    def __init__(self, looks: Sequence[Look]) -> None:
        super().__init__("orders")
        self.looks = list(looks)

    def _waiting(self) -> dict[str, int]:
        if not self.looks:
            raise asyncio.CancelledError
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        return dict(look)


def told(trigger: Scripted) -> list[int]:
    """How many looks were left at each event."""

    async def listen() -> list[int]:
        seen: list[int] = []
        try:
            async for _ in trigger.run():
                seen += [len(trigger.looks)]
        except asyncio.CancelledError:
            return seen
        raise AssertionError("a trigger ends only when it is ended")

    return asyncio.run(listen())


@pytest.mark.parametrize(
    ("looks", "events"),
    [
        ([{}, {}, {}], []),
        ([{}, {"a.log": 10}, {"a.log": 10}, {"a.log": 10}], [2]),
        ([{"a.log": 10}, {"a.log": 20}, {"a.log": 20, "b.log": 5}], [2, 1, 0]),
        ([{"a.log": 10}, {}, {}], [2]),
        ([{"a.log": 10}, {}, {"a.log": 10}], [2, 0]),
    ],
    ids=["silence", "the same waits", "more comes", "it is moved", "it was set back"],
)
def test_what_waits_is_told_once(looks: Sequence[Look], events: list[int]) -> None:
    assert told(Scripted(looks)) == events


def test_what_still_waits_after_a_while_is_told_again() -> None:
    """Its run may have failed."""

    class Impatient(Scripted):
        tell_again_s = 0.0

    assert told(Impatient([{"a.log": 10}, {"a.log": 10}])) == [1, 0]


AWAY, WRONG = Unreachable("the broker does not answer"), ConfigError("there is no such topic")


@pytest.mark.parametrize(
    ("looks", "events"),
    [
        ([AWAY, AWAY, AWAY], [2]),
        ([{}, AWAY, WRONG, AWAY, WRONG], [3, 2]),
        ([AWAY, {}, {}], [2, 1]),
        ([AWAY, {"a.log": 10}, {"a.log": 10}], [2, 1]),
        ([AWAY, {}, AWAY, {}, AWAY, {}], [5, 4]),
        ([ZeroDivisionError("of a plug-in"), {}], [1, 0]),
    ],
    ids=["it lasts", "another one", "it is over", "and something waits", "it comes and goes", "of an unexpected class"],
)
def test_a_source_that_cannot_be_looked_at_begins_a_run_that_says_so(looks: Sequence[Look], events: list[int]) -> None:
    """One for each class of failure, and one when it is over."""
    assert told(Scripted(looks)) == events


def test_a_failure_that_lasts_is_told_again_after_some_minutes() -> None:
    class Impatient(Scripted):
        error_again_s = 0.0

    assert told(Impatient([AWAY, AWAY])) == [1, 0]
