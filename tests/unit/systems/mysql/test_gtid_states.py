"""Which transactions are before a place, by their GTIDs."""

from __future__ import annotations

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.gtid_states import GtidState, MysqlGtids, parsed_state, state_in
from connect_core.systems.mysql.binlog.log_events import LogEvent

A, B = str(uuid.UUID(int=10)), str(uuid.UUID(int=11))


def mysql(text: str) -> GtidState:
    state = parsed_state(text, is_mariadb=False)
    assert state is not None
    return state


def mariadb(text: str) -> GtidState:
    state = parsed_state(text, is_mariadb=True)
    assert state is not None
    return state


@given(some.lists(some.integers(1, 40), unique=True))
def test_numbers_of_mysql_in_any_order_are_runs(numbers: list[int]) -> None:
    state: MysqlGtids | None = MysqlGtids({})
    for one in numbers:
        assert state is not None
        assert state.behind(f"{A}:{one}") is not None
        state = state.behind(f"{A}:{one}")
    assert state is not None
    there = {one for first, last in state.runs.get(A, ()) for one in range(first, last + 1)}
    assert there == {*numbers}
    assert mysql(state.text) == state
    assert all(state.behind(f"{A}:{one}") is None for one in numbers)


@given(some.sets(some.integers(1, 30)), some.sets(some.integers(1, 30)))
def test_what_of_mysql_is_missing(here: set[int], wanted: set[int]) -> None:
    def of(numbers: set[int]) -> GtidState:
        return mysql(f"{A}:{':'.join(map(str, sorted(numbers)))}" if numbers else "")

    lacks = of(here).lacks(of(wanted))
    missing = {one for run in lacks.split(":")[1:] for one in _numbers(run)}
    assert missing == wanted - here
    assert of(wanted).is_within(of(here)) == (wanted <= here)


def _numbers(run: str) -> range:
    first, _, last = run.partition("-")
    return range(int(first), int(last or first) + 1)


def test_a_transaction_without_a_gtid_or_with_a_tag_is_not_told_for_sure() -> None:
    assert mysql(f"{A}:1-5").behind("") is None
    assert parsed_state(f"{A}:1-5:tag:1-3", is_mariadb=False) is None
    assert mariadb("0-1-5").behind("") is None


def test_mysql_is_at_a_place_where_all_are_the_same() -> None:
    read = mysql(f"{A}:1-5,{B}:1-2")
    assert mysql(f"{B}:1-2,\n{A.upper()}:1-5").is_at(read)
    assert not mysql(f"{A}:1-5").is_at(read)
    assert not mysql(f"{A}:1-5,{B}:1-3").is_at(read)


def test_the_first_number_that_is_read_tells_what_was_before_a_place() -> None:
    begun = MysqlGtids({A: ((1, 5),), B: ((1, 2), (4, 4))}).at_least()
    assert mysql(begun.text) == begun
    read = begun.behind(f"{A}:9")
    assert read is not None
    assert mysql(read.text) == read
    assert mysql(f"{A}:1-9,{B}:1-2:4").is_at(read)
    later = read.behind(f"{A}:11")
    assert later is not None
    assert mysql(f"{A}:1-9:11,{B}:1-2:4").is_at(later), "a number that was read is no guess"
    assert begun.behind(f"{B}:3") is not None
    assert begun.behind(f"{A}:5") is None
    assert mariadb("0-1-5").at_least() == mariadb("0-1-5")


MARIADB = [
    ("0-1-100", True, ""),
    ("0-1-99", False, "0-1-100"),
    ("0-1-100,0-2-98", True, ""),
    ("0-1-100,0-3-50", False, ""),
    ("0-1-100,0-2-97", False, ""),
    ("0-1-100,1-1-1", False, ""),
    ("0-2-101", False, "0-1-100"),
]


@pytest.mark.parametrize(("text", "is_there", "lacks"), MARIADB)
def test_mariadb_is_at_a_place_where_the_newest_is_there_and_nothing_else(
    text: str, is_there: bool, lacks: str
) -> None:
    """What the replica never logged may be missing."""
    read = mariadb("0-1-100,0-2-98")
    assert (mariadb(text).is_at(read), mariadb(text).lacks(read)) == (is_there, lacks)


@pytest.mark.parametrize("gtid", ["0-1-100", "0-1-7", "0-2-100"])
def test_a_number_of_mariadb_that_was_there_is_not_told_for_sure(gtid: str) -> None:
    assert mariadb("0-1-100").behind(gtid) is None
    following = mariadb("0-1-100").behind("0-2-101")
    assert following is not None
    assert following.text == "0-1-100,0-2-101"


def test_what_a_file_says_at_its_begin() -> None:
    body = struct.pack("<Q", 1) + uuid.UUID(A).bytes + struct.pack("<QQQQQ", 2, 1, 6, 8, 9)
    assert state_in(LogEvent(log_events.PREVIOUS_GTIDS, 0, 1, 99, 99, 0, body)) == mysql(f"{A}:1-5:8")
    with_tags = struct.pack("<Q", 1 | 1 << 56) + body[8:]
    assert state_in(LogEvent(log_events.PREVIOUS_GTIDS, 0, 1, 99, 99, 0, with_tags)) is None
    listed = struct.pack("<I", 2 | 1 << 28) + struct.pack("<IIQ", 0, 1, 7) + struct.pack("<IIQ", 0, 2, 5)
    assert state_in(LogEvent(log_events.GTID_LIST, 0, 1, 99, 99, 0, listed)) == mariadb("0-1-7,0-2-5")


def test_states_of_the_two_kinds_are_nowhere_in_each_other() -> None:
    assert not mysql(f"{A}:1").is_within(mariadb("0-1-5"))
    assert not mariadb("0-1-5").is_within(mysql(f"{A}:1"))
    assert mysql(f"{A}:1").lacks(mariadb("0-1-5")) == "0-1-5"
