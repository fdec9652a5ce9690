"""How a `CommitSink` commits: once, behind the commits of others, and only while its marker is the one it has seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connect_core.errors import Fenced, Retriable, Unreachable
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import Prefix
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.testing.memory import HATED
from connect_core.sdk.testing.memory_lake import Lake, MemoryLake
from connect_core.sdk.values import Bounds, Json, OpenRange

PARTITION = Partition("source")
ROWS = [b"%d" % number for number in range(10)]


def item(sink: MemoryLake, begin: int = 0, settled: int = 0) -> OpenRange:
    wanted = range_of(PARTITION, Bounds(0, begin, 0, 100), pins=sink.targets(0, (), {}).pins)
    (floor,) = sink.floors(wanted, ())
    return OpenRange(1, wanted, (floor._replace(position=settled),))


def test_a_flush_is_one_commit_whatever_others_commit_meanwhile() -> None:
    lake = Lake(rivals=3)
    sink = MemoryLake(lake)
    with sink.writer(attempt(), item(sink)) as writer:
        for begin in (0, 4, 8):
            writer.write(records(list(ROWS[begin : begin + 4]), begin), limit())
        delivered = writer.flush(limit())
    assert (delivered.records, delivered.behind, delivered.where) == (10, {"memory": 10}, {"memory": [[0, 10]]})
    assert [commit.name for commit in lake.commits[:3]] == ["others"] * 3
    assert [commit.rows for commit in lake.commits[3:]] == [tuple(ROWS)]


def test_nothing_taken_is_no_commit() -> None:
    lake = Lake()
    sink = MemoryLake(lake)
    with sink.writer(attempt(), item(sink)) as writer:
        assert writer.flush(limit()).records == 0
    assert lake.commits == []


def test_a_second_flush_commits_what_came_since() -> None:
    lake = Lake()
    sink = MemoryLake(lake)
    with sink.writer(attempt(), item(sink)) as writer:
        for begin in (0, 5):
            writer.write(records(list(ROWS[begin : begin + 5]), begin), limit())
            delivered = writer.flush(limit())
    assert delivered.records == 10
    assert [len(commit.rows) for commit in lake.commits] == [5, 5]


def test_a_commit_that_others_always_come_before_ends_before_the_deadline() -> None:
    lake = Lake(rivals=1_000_000)
    sink = MemoryLake(lake)
    with sink.writer(attempt(), item(sink)) as writer:
        writer.write(records(list(ROWS)), limit())
        with pytest.raises(Retriable, match="came first"):
            writer.flush(limit(deadline_s=1.1))
    assert lake.rows() == []


def test_a_look_takes_over_and_finds_what_is_there() -> None:
    lake = Lake()
    sink = MemoryLake(lake)
    wanted = item(sink)
    with sink.writer(attempt(1), wanted) as late:
        late.write(records(list(ROWS)), limit())
        late.flush(limit())
        found = sink.scan(Scan(attempt(2), (wanted,), 10.0))[1]
        assert (found.complete, found.prefix) == (True, Prefix(10, 10))
        late.write(records([b"10"], 10), limit())
        with pytest.raises(Fenced):
            late.flush(limit())
    assert lake.rows() == ROWS


def test_an_answer_that_is_lost_twice_is_left_to_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise Unreachable("The answer was lost")

    monkeypatch.setattr(MemoryLake.Connection, "commit", lost)
    sink = MemoryLake(Lake())
    with sink.writer(attempt(), item(sink)) as writer:
        writer.write(records(list(ROWS)), limit())
        with pytest.raises(Unreachable):
            writer.flush(limit())


def test_a_refused_row_ends_the_range_behind_its_record() -> None:
    """With all outputs of the record."""
    lake = Lake()
    sink = MemoryLake(lake)
    refused: list[int] = []
    batch = records([b"0", b"1a", HATED, b"1c", b"2"], offset=[0, 1, 1, 1, 2], ordinal=[0, 0, 1, 2, 0])
    with sink.writer(attempt(), item(sink)) as writer:
        writer.on_refused = lambda row, kind, message: refused.append(row.column("ordinal")[0].as_py())
        assert writer.write(batch, limit()) == 4
        assert writer.write(records([b"2"], 2), limit()) == 0
        assert writer.flush(limit()).records == 1
    assert (lake.rows(), refused) == ([b"0"], [0, 1, 2])


def test_a_commit_shows_what_was_staged_for_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[Json]] = []
    committing = MemoryLake.Connection.commit

    def commit(one: MemoryLake.Connection, staged: Sequence[Json], name: str, marker: str, behind: str) -> None:
        shown.append(list(staged))
        committing(one, staged, name, marker, behind)

    monkeypatch.setattr(MemoryLake.Connection, "commit", commit)
    sink = MemoryLake(Lake())
    with sink.writer(attempt(), item(sink)) as writer:
        for begin in (0, 5):
            writer.write(records(list(ROWS[begin : begin + 5]), begin), limit())
            writer.flush(limit())
    assert shown == [[{"staged": 0}], [{"staged": 1}]]
