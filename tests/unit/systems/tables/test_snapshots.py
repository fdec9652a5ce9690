"""Of which tables rows are still to come, and which one is read next."""

from __future__ import annotations

from connect_core.errors import ConfigError, Refused
from connect_core.systems.tables.snapshots import Place, SnapshotProgress, first_readable, still_to_come

A, B, C = ("shop", "a"), ("shop", "b"), ("shop", "c")


def described(place: Place) -> str:
    if place == A:
        raise ConfigError("a has no key")
    if place == B:
        raise Refused("b may not be read")
    return place[1]


def test_the_first_table_that_can_be_read_and_why_the_first_one_cannot() -> None:
    found, unfit = first_readable(enumerate([A, B, C]), described)
    assert found is not None
    assert (found.before, found.table) == (2, "c")
    assert unfit is not None
    assert unfit.what == "a has no key"
    assert first_readable(enumerate([C, A]), described)[1] is None
    assert first_readable(enumerate([B, A]), described)[0] is None
    assert first_readable([], described) == (None, None)


def test_tables_that_are_read_later_are_read_from_their_begin() -> None:
    progress = SnapshotProgress((A, B, C), ("5",))
    assert progress.later(0) == progress
    assert progress.later() == SnapshotProgress((B, C, A))
    assert progress.later(2) == progress.later().later() == SnapshotProgress((C, A, B))


def test_what_is_said_of_rows_that_wait() -> None:
    assert still_to_come(SnapshotProgress((A,)), "x").startswith("rows of table shop.a are still to come: x; the next")
    assert "table shop.a and 2 more are" in still_to_come(SnapshotProgress((A, B, C)), "x")
