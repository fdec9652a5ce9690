"""Which server a position was reached at."""

from __future__ import annotations

import pytest

from connect_core.systems.tables.reading import ServerNames

HERE = ServerNames("db:3306", "one")


@pytest.mark.parametrize(
    ("before", "is_here"),
    [
        (["db:3306", "one"], True),
        (["db.example.com:3306", "one"], True),
        (["db:3306", "two"], True),
        (["other:3306", "two"], False),
        (["other:3306", ""], False),
    ],
)
def test_a_server_is_the_same_by_its_address_or_by_what_it_calls_itself(before: list[str], is_here: bool) -> None:
    assert HERE.are_of({"server": before}) is is_here


def test_servers_that_call_themselves_nothing_are_told_by_their_addresses() -> None:
    assert not ServerNames("db:3306", "").are_of({"server": ["other:3306", ""]})


def test_a_position_of_an_earlier_version_is_of_any_server() -> None:
    assert HERE.are_of({})
