"""What kits remember: the marker of a partition, versions of rows, and where a polled source goes on."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from connect_core import clock
from connect_core.errors import DataError, Fenced, OffsetGone, TargetChanged
from connect_core.sdk.kits import marker as markers
from connect_core.sdk.kits.keyed import STORED, Answer
from connect_core.sdk.kits.marker import Marker
from connect_core.sdk.kits.polled import Polled
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import NO_PREFIX, Prefix, ScanResult
from connect_core.sdk.testing.driving import Follower, attempt, limit, range_of, records
from connect_core.sdk.testing.memory import Index, MemoryIndex, MemoryPages
from connect_core.sdk.values import ORIGIN, Bounds, Json, Limit, OpenRange, Position, Range

PARTITION = Partition("all")
VALUES = [b"%d" % number for number in range(50)]


def wanted(begin: int, incarnation: int = 0, origin: str = "") -> Range:
    planned = range_of(PARTITION, Bounds(incarnation, begin, 0, begin + 100))
    return replace(planned, evidence={ORIGIN: origin})


def begun(marker: Marker | None, begin: int, settled: int, found: ScanResult | None = None) -> Marker:
    return markers.begun(marker, OpenRange(1, wanted(begin), (), found=found), settled, attempt(2))


KEPT = Marker(incarnation=0, since=0, position=100, count=100, owner="1")


@pytest.mark.parametrize("other", [wanted(80, incarnation=1), wanted(80, origin="b")])
def test_a_look_finds_rows_that_are_not_settled_and_counts_those_of_another_file(other: Range) -> None:
    kept = replace(KEPT, origin="a")
    seen = markers.found(kept, wanted(80), 80, "here")
    assert (seen.scanned, seen.complete) == ({"here": 100}, True)
    assert (seen.prefix, seen.possible_duplicates) == (Prefix(100, 20), 0)
    seen = markers.found(kept, other, 80, "here")
    assert (seen.prefix, seen.possible_duplicates) == (NO_PREFIX, 20)
    assert markers.found(None, wanted(0), 0, "here").prefix == NO_PREFIX


def test_a_range_that_goes_on_keeps_where_its_rows_begin() -> None:
    assert begun(KEPT, 120, 100).since == 0
    mine = replace(KEPT, owner=attempt(2).id)
    assert begun(mine, 80, 80, found=ScanResult(complete=True)) == replace(mine, begin=80, settled=80, highest=100)


@pytest.mark.parametrize("more", ["", ', "begin": 40, "settled": 40, "highest": 0, "elsewhere": 0'])
def test_a_marker_of_a_former_version_is_read(more: str) -> None:
    """It does not say what was refused: of what lies before its position nobody knows."""
    places = '"incarnation": 0, "since": 0, "position": 100, "count": 90, "origin": ""'
    stored = f'{{"version": 1, "owner": "1", {places}{more}}}'
    moved = {"begin": 40, "settled": 40} if more else {}
    expected = replace(KEPT, count=90, refused_since=100, **moved)
    assert Marker.decode(stored, "here") == expected
    assert Marker.decode(expected.encode(), "here") == expected


def test_a_marker_of_a_newer_version_is_not_written_on() -> None:
    with pytest.raises(TargetChanged, match="A newer version of Waybill"):
        Marker.decode(KEPT.encode().replace('"version": 2', '"version": 3'), "here")


def test_a_target_with_fewer_or_unknown_rows_is_not_written() -> None:
    with pytest.raises(
        TargetChanged, match="tells of 100 rows of this partition, up to offset 100, and 120 were settled"
    ):
        begun(KEPT, 120, 120)
    with pytest.raises(TargetChanged, match="20 rows more than the ledger knows of"):
        begun(KEPT, 80, 80)


@pytest.mark.parametrize("marker", [KEPT, None])
def test_who_has_looked_does_not_begin_when_another_attempt_has_the_marker(marker: Marker | None) -> None:
    """It may have written since the look, and nobody has looked for that."""
    with pytest.raises(Fenced):
        begun(marker, 0, 0, found=ScanResult(complete=True))


def test_what_is_stored_of_a_marker() -> None:
    """In tables of others: word for word."""
    kept = Marker(1, 2, 3, 4, "o", 5, 6, 7, 8, owner="host epoch 8", refused=((2, 3), (9, 12)), refused_since=1)
    kept = replace(kept, rows_in="oid 7", stands_in="oid 8")
    assert kept.encode() == (
        '{"version": 2, "owner": "host epoch 8", "incarnation": 1, "since": 2, "position": 3, "count": 4, '
        '"origin": "o", "begin": 5, "settled": 6, "highest": 7, "elsewhere": 8, "refused": [[2, 3], [9, 12]], '
        '"refused_since": 1, "rows_in": "oid 7", "stands_in": "oid 8"}'
    )
    assert Marker.decode(kept.encode(), "here") == kept


def test_a_marker_that_is_none_is_refused() -> None:
    with pytest.raises(TargetChanged, match="not the marker of a connector"):
        Marker.decode("{}", "here")


def test_an_older_record_is_not_stored_over_a_newer_one() -> None:
    """Of another incarnation as well, whose offsets begin anew."""
    index = Index()
    for incarnation, offset in ((0, 5), (0, 3), (1, 0), (0, 7)):
        sink, planned = MemoryIndex(index, by_key=True), wanted(0, incarnation)
        with sink.writer(attempt(), OpenRange(1, planned, sink.floors(planned, ()))) as writer:
            writer.write(records([b"%d/%d" % (incarnation, offset)], offset, key=["k"]), limit())
    assert [value for _, value in index.rows.values()] == [b"1/0"]


def test_what_has_no_version_of_its_own_is_not_stored() -> None:
    """Versions of two incarnations would meet."""
    sink, planned = MemoryIndex(Index(), by_key=True), wanted(0, 1 << 17)
    far = records([b"a", b"b"], (1 << 46) - 1, key=["k", "k"])
    assert [(row, kind) for row, kind, _ in sink.invalid_rows(far)] == [(1, "OffsetTooHigh")]
    opening = sink.writer(attempt(), OpenRange(1, planned, sink.floors(planned, ())))
    with pytest.raises(DataError, match="131,072"), opening:
        pass


def test_a_row_that_is_neither_stored_nor_refused_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is said of it."""
    index, answers = Index(), [Answer(False, "", "busy"), STORED]
    sink, planned = MemoryIndex(index), wanted(0)
    with sink.writer(attempt(), OpenRange(1, planned, sink.floors(planned, ()))) as writer:
        monkeypatch.setattr(vars(writer)["_connection"], "put", lambda *_: [answers.pop(0)], raising=False)
        writer.write(records([b"a"]), limit())
        assert (writer.flush(limit()).records, answers) == (1, [])


def test_records_without_a_key_are_not_stored_by_key() -> None:
    rows = records([b"a", b"b"], key=["k", None])
    assert [(row, kind) for row, kind, _ in MemoryIndex(Index(), by_key=True).invalid_rows(rows)] == [(1, "NoKey")]


def stopped_at(end: int) -> Position:
    source = MemoryPages(VALUES)
    planned = replace(range_of(PARTITION, source.available_offsets({PARTITION: None})[PARTITION]), end=end)
    assert sum(len(batch.records) for batch in source.read(planned, limit())) == end
    return Position(0, end, source.evidence(planned, end))


@pytest.mark.parametrize("end", [5, 17, 40])
def test_a_polled_source_goes_on_within_a_page_and_between_two(end: int) -> None:
    seen = MemoryPages(VALUES).available_offsets({PARTITION: stopped_at(end)})[PARTITION]
    assert (seen.begin, seen.end, seen.failure) == (end, 50, None)


def test_other_records_before_a_position_within_a_page_are_noticed() -> None:
    changed = [*VALUES[:2], b"another", *VALUES[3:]]
    failure = MemoryPages(changed).available_offsets({PARTITION: stopped_at(5)})[PARTITION].failure
    assert failure is not None
    assert failure.family == OffsetGone.__name__


def test_fewer_records_than_before_are_noticed() -> None:
    failure = MemoryPages(VALUES[:20]).available_offsets({PARTITION: stopped_at(40)})[PARTITION].failure
    assert failure is not None
    assert failure.family == OffsetGone.__name__


def test_a_position_that_was_set_back_is_read_from_there_whatever_the_size_of_pages() -> None:
    """Its evidence is that of a later one: what comes between the two is not compared."""
    set_back = replace(stopped_at(40), offset=36)
    seen = MemoryPages(VALUES, page=1).available_offsets({PARTITION: set_back})[PARTITION]
    assert (seen.begin, seen.end, seen.failure) == (36, 50, None)


@pytest.mark.parametrize("empty", [1, 99, 2_500])
def test_pages_without_records_are_passed_when_their_checkpoint_moves(empty: int) -> None:
    """However many there are: each look keeps how far it has come."""
    follower = Follower(MemoryPages(VALUES, empty=empty))
    assert [value for _ in range(40) for value in follower.run()] == VALUES


def test_a_quantum_ends_in_time_though_many_pages_have_no_records() -> None:
    class Slow(MemoryPages):
        polls = 0

        def poll(self, name: str, checkpoint: Json) -> Polled:
            self.polls += 1
            time.sleep(0.01)
            return super().poll(name, checkpoint)

    source, wanted = Slow(VALUES, empty=10**6), range_of(PARTITION, Bounds(0, 0, 0, len(VALUES)))
    assert list(source.read(wanted, Limit(clock.now_ns() + 10**8, clock.now_ns() + 10**10))) == []
    assert list(source.follow([wanted], Limit(clock.now_ns() + 10**8, clock.now_ns() + 10**10), 60)) == []
    assert source.polls <= 30


def test_a_position_behind_records_that_do_not_come_again_is_not_looked_for_for_ever() -> None:
    failure = MemoryPages([], empty=1).available_offsets({PARTITION: stopped_at(40)})[PARTITION].failure
    assert failure is not None

    class Clock(MemoryPages):
        """Its checkpoint moves with each poll."""

        def poll(self, name: str, checkpoint: Json) -> Polled:
            return Polled([], {"next": checkpoint.get("next", 0) + 1})

    failure = Clock([]).available_offsets({PARTITION: stopped_at(40)})[PARTITION].failure
    assert failure is not None
    assert failure.family == OffsetGone.__name__
