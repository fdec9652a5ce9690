"""The trigger of on_change: what waits at the source is told once, more of it again, and nothing is told of nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from connect_core.airflow.triggers import SourceTrigger
from connect_core.errors import Unreachable

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


def test_a_source_that_is_away_is_looked_at_again() -> None:
    assert told(Scripted([Unreachable("the broker does not answer"), {"a.log": 10}])) == [0]
