"""What a source of logs makes of holes, names, errors and waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from connect_core.errors import ConfigError, Failure, OffsetGone, PartitionUnreachable, Refused, Retriable, Unreachable
from connect_core.sdk.kits.log_positions import SourceMark
from connect_core.sdk.kits.log_source import Ends, Fetched, LogSource
from connect_core.sdk.records import Partition, Record
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.memory_sources import LogServer, MemorySourceLog
from connect_core.sdk.values import OPEN_END, ORIGIN, Bounds, Position, Range, SourceBatch

LOG = Partition("log")
VALUES = [b"%d" % number for number in range(50)]


def server(**given: object) -> LogServer:
    made = replace(LogServer(), **given)  # type: ignore[arg-type]
    made.append(VALUES)
    return made


def planned(source: LogSource) -> Range:
    return range_of(LOG, source.available_offsets({LOG: None})[LOG])


def test_holes_of_a_sparse_log_are_counted() -> None:
    log = server(page=10)
    log.drop(0, 9, 10, 11, 30, 49)
    source = MemorySourceLog(log, sparse=True)
    batches = list(source.read(planned(source), limit()))
    assert [hole for batch in batches for hole in batch.holes] == [(0, 1), (9, 12), (30, 31), (49, 50)]
    assert sum(batch.absent_before(50) + len(batch.records) for batch in batches) == 50
    assert batches[-1].next_offset == 50


def test_a_batch_of_a_sparse_log_has_a_bound_before_a_hole() -> None:
    log = server()
    log.drop(3, 4)
    source = MemorySourceLog(log, sparse=True)
    (batch,) = source.read(replace(planned(source), max_records=3), limit())
    assert (len(batch.records), batch.next_offset, batch.holes) == (3, 5, ((3, 5),))


def test_what_expires_under_a_range_of_a_sparse_log_is_no_hole() -> None:
    kept = server()
    source = MemorySourceLog(kept, sparse=True)
    wanted = planned(source)
    fetch = source.fetch

    def late(log: str, begin: int, end: int) -> Fetched:
        kept.expire(5)
        return fetch(log, begin, end)

    source.fetch = late  # type: ignore[method-assign]
    with pytest.raises(OffsetGone):
        list(source.read(wanted, limit()))


def test_a_record_that_is_missing_is_a_gap() -> None:
    log = server()
    log.drop(20, 21)
    source = MemorySourceLog(log)
    read: list[SourceBatch] = []
    with pytest.raises(OffsetGone):
        read += source.read(planned(source), limit())
    follower = Follower(source, {LOG: None})
    with pytest.raises(OffsetGone):
        follower.run()
    at = Position(0, 20, {})
    (gap,) = source.available_offsets({LOG: at})[LOG].gaps
    assert (gap.begin, gap.end, gap.reason) == (20, 22, "missing")
    follower.positions[LOG] = at
    assert follower.run() == VALUES[22:]


def test_a_log_with_another_name_is_another_log_whatever_is_in_it() -> None:
    log = server(name="a")
    follower = Follower(MemorySourceLog(log))
    assert follower.run() == VALUES
    log.recreate("b")
    log.append(VALUES)
    assert follower.run() == VALUES
    assert [(gap.end, gap.reason) for gap in follower.gaps] == [(None, "recreated")]


def test_the_name_of_a_log_travels_with_its_records() -> None:
    source = MemorySourceLog(server(name="a name that is too long for coordinates, and has: colons"))
    wanted = planned(source)
    assert len(wanted.origin) == 16
    next(source.read(wanted, limit()))
    assert source.evidence(wanted, 5)[ORIGIN] == wanted.origin


def test_a_server_that_gives_no_name_any_more_is_believed() -> None:
    log = server(name="a")
    follower = Follower(MemorySourceLog(log))
    assert follower.run() == VALUES
    log.name = ""
    assert follower.run() == []
    assert follower.gaps == []


class FromOne(MemorySourceLog):
    """Its first record has offset 1, as in a table that numbers its rows."""

    first_offset = 1


@pytest.mark.parametrize(("expired", "gap"), [(0, []), (3, [(1, 4, "expired")])])
def test_a_log_that_was_read_deleted_and_made_anew_begins_at_its_first_offset(
    expired: int, gap: list[tuple[int, int, str]]
) -> None:
    log = server(begin=1, end=1)
    follower = Follower(FromOne(log))
    assert follower.run() == VALUES
    log.remove()
    assert [one.loses for one in follower.tell()] == [False]
    log.recreate()
    log.begin = log.end = 1
    log.append(VALUES)
    log.expire(expired)
    assert follower.run() == VALUES[expired:]
    assert [(one.begin, one.end, one.reason) for one in follower.gaps] == gap


@pytest.mark.parametrize(
    "other",
    [
        Record(b"w"),
        Record(None),
        Record(b"", key="k"),
        Record(b"", headers=(("a", "b"),)),
        Record(b"", timestamp=datetime.now(UTC)),
        Record(b"", topic="t"),
    ],
)
def test_a_mark_tells_records_apart(other: Record) -> None:
    assert SourceMark.of(1, other) != SourceMark.of(1, Record(b""))


class Several(LogSource):
    """Logs that fail as they are told to."""

    every_s = 0.01

    def __init__(self, failing: Mapping[str, Exception]) -> None:
        super().__init__()
        self.failing, self.committed = failing, dict[str, int]()

    def logs(self, known: Sequence[str]) -> Sequence[str]:
        return ["a", "b", "c"]

    def ends(self, log: str) -> Ends | None:
        if log in self.failing:
            raise self.failing[log]
        return None if log == "c" else Ends(0, 2)

    def fetch(self, log: str, begin: int, end: int) -> Fetched:
        rows = [(offset, Record(b"%d" % offset)) for offset in range(begin, min(end, 2))]
        return Fetched(rows, max(begin, min(end, 2)))

    def commit(self, log: str, offset: int) -> None:
        self.committed[log] = offset


A, B, C = map(Partition, "abc")


def live(partition: Partition) -> Range:
    return replace(range_of(partition, Bounds(0, 0, 0, 0)), end=OPEN_END)


def test_a_log_that_is_not_there_yet_is_no_partition_and_one_that_was_read_stays() -> None:
    assert Several({}).partitions([]) == [A, B]
    assert Several({}).partitions([C]) == [A, B, C]


def test_a_log_that_fails_stops_no_other() -> None:
    for error in (Refused("no"), PartitionUnreachable("its leader is away"), Retriable("odd")):
        source = Several({"a": error})
        seen = source.available_offsets({A: None, B: None})
        assert (seen[A].failure, seen[B].failure) == (Failure.of(error), None)
        came = [(wanted.partition, batch) for wanted, batch in source.follow([live(A), live(B)], limit(), 0.01)]
        assert came[0] == (A, Failure.of(error))
        assert [partition for partition, _ in came[1:]] == [B]


def test_following_ends_at_once_when_every_log_has_failed() -> None:
    source = Several({"a": Refused("no")})
    assert list(source.follow([live(A)], limit(), idle_timeout_s=600)) == [(live(A), Failure.of(Refused("no")))]


def test_a_server_that_does_not_answer_stops_all() -> None:
    source = Several({"a": Unreachable("away")})
    with pytest.raises(Unreachable):
        source.available_offsets({A: None, B: None})
    with pytest.raises(Unreachable):
        list(source.follow([live(A), live(B)], limit(), 0.01))


def test_a_wait_ends_when_nobody_can_say_what_has_come() -> None:
    Several({"a": Unreachable("away")}).wait({A: Bounds(0, 2, 0, 2)}, limit_s=60)


def test_what_is_settled_is_shown_to_the_server() -> None:
    source = Several({})
    source.commit_offsets({A: Position(0, 2)})
    assert source.committed == {"a": 2}


def test_a_log_is_asked_for_a_time_only_where_it_knows_one() -> None:
    with pytest.raises(ConfigError):
        Several({}).offsets_for_time([A], datetime.now(UTC))


def test_records_that_were_there_and_are_not_given_are_tried_again() -> None:
    source = MemorySourceLog(server())
    wanted = planned(source)
    source.fetch = lambda log, begin, end: Fetched([], begin)  # type: ignore[method-assign]
    with pytest.raises(Retriable, match="gives no record 0"):
        list(source.read(wanted, limit()))
