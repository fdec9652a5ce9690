"""Of which tables rows are still to come, and which one is read next."""

from __future__ import annotations

import pytest

from connect_core.errors import ConfigError, Refused
from connect_core.systems.tables.snapshots import (
    DueTable,
    SnapshotProgress,
    SnapshotRequest,
    first_readable,
    not_given,
    still_to_come,
    to_cancel,
)

A, B, C = DueTable(("shop", "a")), DueTable(("shop", "b")), DueTable(("shop", "c"))


def described(due: DueTable) -> str:
    if due == A:
        raise ConfigError("a has no key")
    if due == B:
        raise Refused("b may not be read")
    return due.place[1]


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
    assert progress.later(3) == SnapshotProgress((A, B, C)), "the first one from its begin"
    assert progress.later(2) == progress.later().later() == SnapshotProgress((C, A, B))


def test_what_is_said_of_rows_that_wait() -> None:
    assert still_to_come(SnapshotProgress((A,)), "x").startswith("rows of table shop.a are still to come: x; the next")
    assert "table shop.a and 2 more are" in still_to_come(SnapshotProgress((A, B, C)), "x")


def test_what_is_kept_of_tables_is_the_same_when_it_is_read() -> None:
    for tables in ((A, B), (A._replace(asked=""), B, C._replace(asked="id > 3"))):
        kept = SnapshotProgress(tables, ("5",))
        assert SnapshotProgress.parse(kept.as_json()) == kept
    assert SnapshotProgress((A, B)).as_json() == {"tables": [["shop", "a"], ["shop", "b"]], "after": None}, "as before"
    request = SnapshotRequest((A._replace(asked="id > 3"),), (B.place,))
    assert SnapshotRequest.parse(request.as_json()) == request


def test_a_condition_makes_other_rows() -> None:
    due = SnapshotProgress((A._replace(asked="id > 3"), B), ("5",))
    assert due.is_due([A._replace(asked="id > 3")], ("5",))
    for other in ([A], [A._replace(asked="")], [A._replace(asked="id > 4")], [B], [], [*due.tables]):
        assert not due.is_due(other, ("5",))
    assert not due.is_due([due.tables[0]], None)
    assert SnapshotProgress((A,)).is_due([A._replace(asked="")], None), "all rows are all rows, whoever has asked"


def test_what_is_cancelled() -> None:
    asked, some = A._replace(asked=""), C._replace(asked="id > 3")
    assert to_cancel(SnapshotProgress((A, B, asked)), [A.place], [], "") == [A.place]
    assert to_cancel(SnapshotProgress((A, B, some)), [], [A.place, B.place], "") == [C.place, A.place, B.place]
    assert to_cancel(SnapshotProgress(), [B.place], [], "") == [B.place], "there may be a request that nobody has read"
    for tables, named in (((A, B, some), [A.place]), ((A, B, some), [C.place, B.place]), ((A, B), [])):
        with pytest.raises(ConfigError, match="for which nobody has asked"):
            to_cancel(SnapshotProgress(tables), named, [A.place], "")


def test_a_table_whose_rows_are_not_given_names_no_condition() -> None:
    said = str(not_given(A._replace(asked="name = 'Ann'"), "DivisionByZero (22012)", "here", "leave it out"))
    assert "rows of table shop.a that fulfil the condition of a snapshot: DivisionByZero (22012) [here]" in said
    assert "waybill snapshot NAME --table shop.a --cancel" in said
    assert "Ann" not in said
    assert "leave it out" in str(not_given(A, "x", "here", "leave it out"))


def test_rows_of_a_condition_are_read_on_where_they_were() -> None:
    """Else two that fail on their way would bring what is before that for ever, in turn."""
    some, other = A._replace(asked="id > 3"), B._replace(asked="id > 4")
    progress = SnapshotProgress((some, other, C), ("5",))
    turned = progress.later(2)
    assert turned == SnapshotProgress((C, some._replace(kept=("5",)), other))
    assert SnapshotProgress.parse(turned.as_json()) == turned
    assert turned.behind(None) == SnapshotProgress((some, other), ("5",))
    assert turned.later() == SnapshotProgress((some, other, C), ("5",))
    assert turned.later().later() == SnapshotProgress((other, C, some._replace(kept=("5",))))
    assert turned.asked_by(SnapshotRequest(cancelled=(A.place,))) == SnapshotProgress((C, other))
    ahead = SnapshotProgress((other, some._replace(kept=("5",))), ("7",))
    assert ahead.asked_by(SnapshotRequest(cancelled=(B.place,))) == SnapshotProgress((some,), ("5",))
    assert ahead.from_begin(lambda place: place == A.place) == SnapshotProgress((other, some), ("7",))
    assert ahead.from_begin(lambda place: place == B.place) == SnapshotProgress(ahead.tables)
