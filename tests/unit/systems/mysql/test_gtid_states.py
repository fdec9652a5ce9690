"""Which transactions are before a place, by their GTIDs."""

from __future__ import annotations

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.gtid_states import GtidState, MysqlGtids, parsed_state, state_in
from connect_core.systems.mysql.binlog.gtids import gtid_of, number_at
from connect_core.systems.mysql.binlog.log_events import DamagedLog, LogEvent

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


def test_a_transaction_without_a_gtid_is_not_told_for_sure() -> None:
    assert mysql(f"{A}:1-5").behind("") is None
    assert mysql(f"{A}:tag:1-5").behind("") is None
    assert mariadb("0-1-5").behind("") is None


def test_each_tag_has_numbers_of_its_own() -> None:
    state = mysql(f"{A}:1-5")
    for gtid in (f"{A}:tag:1", f"{A}:6", f"{A}:tag:2", f"{B}:tag:1", f"{A}:_9:8"):
        following = state.behind(gtid)
        assert following is not None
        state = following
    assert mysql(state.text) == state
    assert state.is_at(mysql(f"{A}:1-6:_9:8:tag:1-2,\n{B}:tag:1")), "as the server writes it"
    assert state.behind(f"{A}:tag:2") is None
    assert state.lacks(mysql(f"{A}:1-7:other:1:tag:1-4")) == f"{A}:7,{A}:other:1,{A}:tag:3-4"
    assert not mysql(f"{A}:tag:1").is_within(mysql(f"{A}:1-5"))
    assert not mysql(f"{A}:1").is_within(mysql(f"{A}:tag:1-5"))


@given(
    some.dictionaries(
        some.tuples(some.sampled_from([A, B]), some.sampled_from(["", ":tag", ":b", ":_1"])),
        some.sets(some.integers(1, 9), min_size=1),
    )
)
def test_states_with_tags_are_read_as_they_are_written(numbers: dict[tuple[str, str], set[int]]) -> None:
    state: MysqlGtids | None = MysqlGtids({})
    for (server, tag), many in numbers.items():
        for one in sorted(many):
            assert state is not None
            state = state.behind(f"{server}{tag}:{one}")
    assert state is not None
    assert mysql(state.text) == state
    assert mysql(state.at_least().text) == state.at_least()
    by_server = {
        one: "".join(text.removeprefix(one) for text in state.text.split(",") if text.startswith(one)) for one in (A, B)
    }
    assert mysql(",".join(f"{one}{said}" for one, said in by_server.items() if said)) == state


@pytest.mark.parametrize("text", [f"{A}:1-5:9tag:1", f"{A}:{'a' * 33}:1", f"{A}:ta-g:1", f"{A}:tag:x-1"])
def test_what_is_no_tag_is_not_known(text: str) -> None:
    assert parsed_state(text, is_mariadb=False) is None


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


def test_the_first_number_of_a_tag_tells_what_was_before_a_place() -> None:
    """Those of other tags, and those without one, say nothing of it."""
    begun = mysql(f"{A}:1-5:tag:1-2").at_least()
    read = begun.behind(f"{A}:tag:5")
    assert read is not None
    assert read.text == f"~{A}:1-5,{A}:tag:1-5"
    later = read.behind(f"{A}:8")
    assert later is not None
    assert later.text == f"{A}:1-8,{A}:tag:1-5"


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


SERVER = "a902ab1e-ed1e-11f1-a5ce-02fc00000001"
OTHER = "11111111-2222-3333-4444-555555555555"
HEAD = "027000000002a50204ad023cb5033c22c5039502390304f1030000000204"
"""Of an event of MySQL 9.7.4 with a tag, up to the number."""
TAGGED = [
    (HEAD + "040606746167080c0a140c7f1df7d1aa8761061051041283120b", f"{SERVER}:tag:1"),
    (HEAD + "080606746167080c0a180c7f71fad1aa8761061051041283120b", f"{SERVER}:tag:2"),
    (
        "02aa00000002a50204ad023cb5033c22c5039502390304f1030000000204040640615f766572795f6c6f6e675f7461675f776974685f"
        "33325f6c6574746572735f080c0a1c0c7faffdd1aa87610610c5041283120b",
        f"{SERVER}:a_very_long_tag_with_32_letters_:1",
    ),
    (
        "02640000000222222222444466668888aaaaaaaaaaaa0403171106047a7a080c0a280c7f6230d2aa8761061039041283120b",
        f"{OTHER}:zz:70000",
    ),
    (
        "02680000000222222222444466668888aaaaaaaaaaaa040f0000004006047a7a080c0a300c7f575fd2aa8761061041041283120b",
        f"{OTHER}:zz:4294967296",
    ),
    (
        "02700000000222222222444466668888aaaaaaaaaaaa04fffcffffffffffffff06047a7a080c0a2c0c7ffb43d2aa8761061051041283120b",
        f"{OTHER}:zz:9223372036854775806",
    ),
]


@pytest.mark.parametrize(("body", "gtid"), TAGGED, ids=[gtid for _, gtid in TAGGED])
def test_the_event_of_a_transaction_with_a_tag(body: str, gtid: str) -> None:
    assert gtid_of(LogEvent(log_events.TAGGED_GTID, 0, 1, 99, 99, 0, bytes.fromhex(body))) == gtid


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("04" + TAGGED[1][0][2:], "unknown form"),
        (TAGGED[1][0][:4] + "18" + TAGGED[1][0][6:], "unknown form"),
        (TAGGED[1][0][:6] + "02" + TAGGED[1][0][8:], "field 1 in place of 0"),
    ],
    ids=["form", "a field that must be known", "field"],
)
def test_an_event_of_a_later_server_is_not_guessed(body: str, said: str) -> None:
    """A field that says how to read the others would have to be known."""
    with pytest.raises(DamagedLog, match=said):
        gtid_of(LogEvent(log_events.TAGGED_GTID, 0, 1, 99, 99, 0, bytes.fromhex(body)))


@given(some.integers(0, (1 << 64) - 1), some.binary(max_size=3))
def test_numbers_of_any_width(number: int, behind: bytes) -> None:
    """Written as the description of MySQL says it."""
    width = max(1, min(9, -(-number.bit_length() // 7)))
    ones = (1 << width - 1) - 1
    data = (
        bytes([255]) + number.to_bytes(8, "little")
        if width == 9
        else (number << width | ones).to_bytes(width, "little")
    )
    assert number_at(data + behind, 0) == (number, width)


def test_what_a_file_says_at_its_begin() -> None:
    body = struct.pack("<Q", 1) + uuid.UUID(A).bytes + struct.pack("<QQQQQ", 2, 1, 6, 8, 9)
    assert state_in(_said(body)) == mysql(f"{A}:1-5:8")
    assert state_in(_said(struct.pack("<Q", 1 | 2 << 56) + body[8:])) is None, "a third form"
    listed = struct.pack("<I", 2 | 1 << 28) + struct.pack("<IIQ", 0, 1, 7) + struct.pack("<IIQ", 0, 2, 5)
    assert state_in(LogEvent(log_events.GTID_LIST, 0, 1, 99, 99, 0, listed)) == mariadb("0-1-7,0-2-5")


def test_what_a_file_of_a_server_with_tags_says_at_its_begin() -> None:
    """Of MySQL 9.7.4, whose @@GLOBAL.gtid_executed was that."""
    body = bytes.fromhex(
        "0106000000000001111111112222333344445555555555550001000000000000000700000000000000080000000000000011111111222233"
        "334444555555555555047a7a03000000000000007011010000000000711101000000000000000000010000000100000001000000feffffff"
        "ffffff7fffffffffffffff7fa902ab1eed1e11f1a5ce02fc0000000100010000000000000001000000000000000600000000000000a902ab"
        "1eed1e11f1a5ce02fc0000000140615f766572795f6c6f6e675f7461675f776974685f33325f6c6574746572735f01000000000000000100"
        "0000000000000200000000000000a902ab1eed1e11f1a5ce02fc00000001026201000000000000000100000000000000020000000000000"
        "0a902ab1eed1e11f1a5ce02fc0000000106746167010000000000000001000000000000000300000000000000"
    )
    executed = (
        "11111111-2222-3333-4444-555555555555:7:zz:70000:4294967296:9223372036854775806,\n"
        "a902ab1e-ed1e-11f1-a5ce-02fc00000001:1-5:a_very_long_tag_with_32_letters_:1:b:1:tag:1-2"
    )
    assert state_in(_said(body)) == mysql(executed)


def _said(body: bytes) -> LogEvent:
    return LogEvent(log_events.PREVIOUS_GTIDS, 0, 1, 99, 99, 0, body)


def test_states_of_the_two_kinds_are_nowhere_in_each_other() -> None:
    assert not mysql(f"{A}:1").is_within(mariadb("0-1-5"))
    assert not mariadb("0-1-5").is_within(mysql(f"{A}:1"))
    assert mysql(f"{A}:1").lacks(mariadb("0-1-5")) == "0-1-5"
