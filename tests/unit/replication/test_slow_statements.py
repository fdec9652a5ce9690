"""How many records are shaped at once, where a statement takes too long for a batch."""

from __future__ import annotations

from connect_core.pipeline.transforms.too_slow import StatementTooSlow
from connect_core.replication.worker.slow_statements import AtOnce
from connect_core.sdk.testing.driving import records

BATCH = records([b"x"] * 100, offset=list(range(50, 150)))


def slow(offset: int | None) -> StatementTooSlow:
    return StatementTooSlow("too slow", offset=offset)


def test_all_that_come_until_they_are_too_many_then_one_and_more_while_that_is_quick() -> None:
    at_once = AtOnce()
    assert (len(at_once.of(BATCH)), at_once.reduced) == (100, False)
    assert at_once.reduce(BATCH, slow(None))
    assert at_once.reduced
    found = []
    for seconds in (0.01, 0.01, 1.0, 0.01):
        found.append(len(at_once.of(BATCH)))
        at_once.took(seconds)
    assert found == [1, 4, 16, 16]


def test_those_before_the_one_that_takes_too_long_go_first() -> None:
    at_once = AtOnce()
    assert at_once.reduce(BATCH, slow(57))
    assert at_once.of(BATCH).column("offset").to_pylist() == list(range(50, 57))
    assert not at_once.reduce(BATCH.slice(7), slow(57))
