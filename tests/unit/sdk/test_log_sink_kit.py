"""What a `LogSink` recognises in a log, where its partitions go, and how it searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyarrow import RecordBatch

from connect_core import clock
from connect_core.errors import Retriable, TargetChanged
from connect_core.sdk.kits.log_connection import LogEntry, LogSlice, StoredAt
from connect_core.sdk.kits.log_marks import Damaged, Elsewhere, Mark, MarkRecogniser, marks
from connect_core.sdk.records import Coordinates, Lineage, Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan
from connect_core.sdk.spans import uncovered
from connect_core.sdk.testing.driving import UID, attempt, limit, range_of, records
from connect_core.sdk.testing.memory_log import Journal, Log, MemoryLog
from connect_core.sdk.values import ORIGIN, Bounds, Floor, OpenRange, Range

PARTITION = Partition("source")
LINEAGE = Lineage(UID, "live", PARTITION.id, 0)
NAMED = LINEAGE._replace(incarnation=2, origin="a")


def journal(*names: str) -> Journal:
    return Journal(logs={name: Log() for name in names or ("log",)})


def planned(sink: MemoryLog, begin: int = 0, end: int = 40, floors: Sequence[Floor] = ()) -> Range:
    targets = sink.targets(0, floors, {})
    return range_of(PARTITION, Bounds(0, begin, 0, end), pins=targets.pins_for("", PARTITION))


def stored(log: Journal, numbers: Sequence[int], lineage: Lineage = LINEAGE, name: str = "log") -> None:
    batch = records([b"%d" % number for number in numbers], offset=list(numbers))
    log.append(name, marks(lineage, batch), [b"%d" % number for number in numbers])


def scanned(sink: MemoryLog, item: OpenRange, limit_s: float = 10.0) -> ScanResult:
    return sink.scan(Scan(attempt(2), (item,), limit_s))[item.id]


def read(*texts: str | None, lineage: Lineage = NAMED) -> list[Mark | Elsewhere | Damaged]:
    entries = [LogEntry(position, text) for position, text in enumerate(texts)]
    return list(MarkRecogniser(UID, [lineage]).read(entries))


def test_marks_are_coordinates_and_are_recognised_with_all_that_they_say() -> None:
    batch = records([b"a", b"b"], 7, ordinal=[0, 1], outputs=[None, 3], trace=[None, 255])
    texts = marks(NAMED, batch)
    assert [Coordinates.parse(text) for text in texts] == [Coordinates(NAMED, 7, 0), Coordinates(NAMED, 8, 1)]
    assert read(*texts) == [Mark(NAMED, 7, 0, 0), Mark(NAMED, 8, 1, 1, 255, 3)]


def test_a_mark_says_no_more_than_it_has_to() -> None:
    assert marks(LINEAGE, records([b"a"], 7)) == [f"{UID}:live:{PARTITION.id}:0:7:0"]
    assert marks(LINEAGE, records([b"a"], 7, trace=[1])) == [f"{UID}:live:{PARTITION.id}:0:7:0:0000000000000001"]


def test_records_of_others_are_passed_over() -> None:
    others = [NAMED._replace(uid="other"), NAMED._replace(stream="backfill"), NAMED._replace(partition_id="another")]
    texts = [f"{one.prefix()}1:0" for one in others]
    assert read(None, "", "something else", *texts) == []


def test_an_incarnation_is_known_with_its_name_and_without() -> None:
    assert [type(one) for one in read(f"{UID}:live:{PARTITION.id}:2:5:0", f"{NAMED.prefix()}6:0")] == [Mark, Mark]


def test_other_incarnations_matter_when_they_are_later_or_the_same_by_name() -> None:
    before, later = NAMED._replace(incarnation=1, origin="b"), NAMED._replace(incarnation=3, origin="b")
    same = NAMED._replace(incarnation=1)
    assert read(f"{before.prefix()}1:0", f"{later.prefix()}2:0", f"{same.prefix()}3:0") == [
        Elsewhere(NAMED, 2, 1, False),
        Elsewhere(NAMED, 3, 2, True),
    ]


def test_a_mark_of_ours_that_nobody_can_read_is_told() -> None:
    assert read(f"{UID}:live:", f"{NAMED.prefix()}x:0") == [Damaged(0), Damaged(1)]


def test_a_damaged_record_is_a_possible_repeat() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    log.append("log", [f"{UID}:torn"], [b"?"])
    assert scanned(sink, item).possible_duplicates == 1


def test_a_record_of_the_same_file_under_another_number_is_a_possible_repeat() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = replace(planned(sink, 10), evidence={ORIGIN: "a"}, incarnation=2)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    stored(log, [5, 15], NAMED._replace(incarnation=7))
    found = scanned(sink, item)
    assert (found.possible_duplicates, found.there(), found.later) == (1, 0, {})


def test_a_record_of_a_later_incarnation_holds_the_floor() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    stored(log, [0, 1])
    stored(log, [0], LINEAGE._replace(incarnation=1))
    assert scanned(sink, item).lowest_from(40) == {"memory#log": 2}


def test_a_partition_stays_in_its_log_when_there_are_more() -> None:
    log = journal("a", "b")
    sink = MemoryLog(log)
    wanted = replace(planned(sink), slot=3)
    floors = sink.floors(wanted, ())
    assert [floor.target for floor in floors] == ["memory#b"]
    log.logs |= {"c": Log(), "d": Log()}
    again = MemoryLog(log)
    later = replace(planned(again, floors=floors), slot=2)
    assert [floor.target for floor in again.floors(later, floors)] == ["memory#b"]


def test_a_partition_whose_log_is_gone_stops_alone() -> None:
    floor = Floor(PARTITION.id, "memory#gone", 0)
    gone = MemoryLog(journal()).targets(0, (floor, Floor("another", "memory#log", 0)), {}).gone
    assert list(gone) == [PARTITION.id]
    assert gone[PARTITION.id].family == TargetChanged.__name__


def test_floors_of_the_target_before_say_nothing_of_this_one() -> None:
    before = Floor(PARTITION.id, "memory/log#log", 7)
    found = MemoryLog(journal()).targets(0, (before,), {})
    assert (found.gone, found.by_partition) == ({}, {})


def test_a_restored_ledger_learns_in_which_log_a_partition_stands() -> None:
    log = journal("a", "b")
    stored(log, range(5), name="b")
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, (), restored=True))
    assert [floor.target for floor in item.floors] == ["memory#a", "memory#b"]
    found = scanned(sink, item)
    assert sink.home_found(replace(item, found=found)) == {"home": "b"}
    wanted.pins.target["home"] = "b"
    assert sink.home_found(replace(item, found=found)) is None


def test_a_search_is_continued_where_it_stopped() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink, end=1_000)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    stored(log, range(300))
    first = scanned(sink, item, limit_s=0)
    assert (first.complete, first.there()) == (False, 0)
    rest = scanned(sink, replace(item, found=replace(first, scanned={"memory#log": 100})))
    assert (rest.complete, rest.there()) == (True, 200)


def test_what_is_doubtful_stays_so_until_a_record_decides() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    stored(log, range(20))
    log.expire(5)
    first = scanned(sink, item, limit_s=0)
    assert (first.complete, first.failure) == (False, None)
    assert scanned(sink, replace(item, found=first)).failure is not None


def test_records_that_expire_while_they_are_searched_are_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    stored(log, range(20))
    reading = MemoryLog.Connection.read

    def slowly(connection: MemoryLog.Connection, name: str, begin: int, end: int) -> LogSlice:
        log.expire(5)
        return reading(connection, name, begin, end)

    monkeypatch.setattr(MemoryLog.Connection, "read", slowly)
    with pytest.raises(Retriable, match="expired while"):
        scanned(sink, item)


def test_a_look_waits_for_the_requests_of_senders_that_died(monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal()
    sink = MemoryLog(log)
    sink.in_flight_s = 0.7
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    waited: list[float] = []

    def arrives(seconds: float) -> None:
        waited.append(seconds)
        stored(log, range(3))

    monkeypatch.setattr(clock, "sleep", arrives)
    assert scanned(sink, item).there() == 3
    assert waited == [0.7]


def others(log: Journal, count: int) -> None:
    log.append("log", [None] * count, [b"of others"] * count)


def test_a_late_request_that_a_plan_has_moved_past_is_surplus() -> None:
    log = journal()
    stored(log, range(5))
    floor = Floor(PARTITION.id, "memory#log", 5)
    stored(log, [3, 4])
    others(log, 30)
    log.expire(3)
    sink = MemoryLog(log)
    wanted = planned(sink, 5, floors=[floor])
    (moved,) = sink.floors(wanted, [floor])
    assert moved.position == 37
    with sink.writer(attempt(), OpenRange(1, wanted, (moved,))) as writer:
        writer.write(records([b"5"], 5), limit())
        assert writer.flush(limit()).duplicates == 2


def test_what_was_settled_and_forgotten_is_no_surplus() -> None:
    log = journal()
    stored(log, range(20))
    sink = MemoryLog(log)
    wanted = planned(sink, 10)
    found = scanned(sink, OpenRange(1, wanted, sink.floors(wanted, (), restored=True)))
    assert (found.duplicates(40), found.count_below(40)) == (0, 10)


def test_a_record_that_lacks_an_output_is_not_taken_for_whole() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    batch = records([b"0", b"1a"], offset=[0, 1], ordinal=[0, 0], outputs=[1, 2])
    log.append("log", marks(LINEAGE, batch), [b"0", b"1a"])
    found = scanned(sink, item)
    assert found.doubtful_from(0, 2) == 1


def test_a_log_that_was_made_anew_is_not_searched() -> None:
    log = journal()
    stored(log, range(10))
    sink = MemoryLog(log)
    wanted = planned(sink, 10)
    evidence = {"at": 9, "mark": marks(LINEAGE, records([b"9"], 9))[0]}
    item = OpenRange(1, wanted, (Floor(PARTITION.id, "memory#log", 10, evidence=evidence),))
    assert scanned(sink, item).complete
    log.recreate()
    others(log, 30)
    with pytest.raises(TargetChanged, match="another record at 9"):
        scanned(sink, item)


def test_a_log_that_ends_before_a_floor_has_lost_records() -> None:
    """Also where nothing is known of the record before it."""
    floor = Floor(PARTITION.id, "memory#log", 10)
    with pytest.raises(TargetChanged, match="ends at 0, before 10"):
        planned(MemoryLog(journal()), 10, floors=[floor])


def test_a_log_that_goes_back_ends_the_range_at_once() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    with sink.writer(attempt(), OpenRange(1, wanted, sink.floors(wanted, ()))) as writer:
        writer.write(records([b"0", b"1"]), limit())
        log.recreate()
        with pytest.raises(TargetChanged, match="ends at 0, before 2"):
            writer.write(records([b"2"], 2), limit())


def test_no_more_than_some_records_of_others_are_read_before_the_first_batch() -> None:
    log = journal()
    sink = MemoryLog(log)
    sink.look_back = 150
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    others(log, 1_000)
    with sink.writer(attempt(), item) as writer:
        writer.write(records([b"0"]), limit())
        log.reads = 0
        writer.flush(limit())
    assert log.reads == 3  # the anchor, and two pages of a hundred


def test_a_batch_ends_between_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a writer whose quantum is over has taken all outputs of a record, or none."""
    log, sizes = journal(), []
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    appending = MemoryLog.Connection.append

    def append(one: MemoryLog.Connection, name: str, each: Sequence[str], batch: RecordBatch) -> StoredAt:
        sizes.append(len(batch))
        return appending(one, name, each, batch)

    monkeypatch.setattr(MemoryLog.Connection, "append", append)
    rows = range(1_500)
    batch = records([b"x" for _ in rows], offset=[row // 3 for row in rows], ordinal=[row % 3 for row in rows])
    with sink.writer(attempt(), item) as writer:
        assert writer.write(batch, limit()) == 1_500
    assert sizes == [1_002, 498]


def test_a_late_request_within_a_batch_is_surplus(monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    appending = MemoryLog.Connection.append

    def interrupted(one: MemoryLog.Connection, name: str, each: Sequence[str], batch: RecordBatch) -> StoredAt:
        first = appending(one, name, each[:1], batch.slice(0, 1))
        stored(log, [1])
        return first._replace(behind=appending(one, name, each[1:], batch.slice(1)).behind)

    monkeypatch.setattr(MemoryLog.Connection, "append", interrupted)
    with sink.writer(attempt(), item) as writer:
        writer.write(records([b"0", b"1", b"2"]), limit())
        delivered = writer.flush(limit())
    assert (delivered.records, delivered.duplicates, delivered.behind) == (3, 1, {"memory#log": 4})


def test_what_was_found_is_what_a_log_is_known_by_when_nothing_is_written() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    item = OpenRange(1, wanted, sink.floors(wanted, ()))
    stored(log, range(3))
    with sink.writer(attempt(), replace(item, found=scanned(sink, item))) as writer:
        stands = writer.flush(limit()).stands
    assert stands == {"memory#log": {"at": 2, "mark": marks(LINEAGE, records([b"2"], 2))[0]}}


def test_partitions_of_one_lane_share_a_log_without_reading_each_other() -> None:
    log = journal()
    sink = MemoryLog(log)
    wanted = planned(sink)
    other = replace(wanted, partition=Partition("other"))
    items = [OpenRange(number, one, sink.floors(one, ())) for number, one in enumerate((wanted, other))]
    with sink.writer(attempt(), items[0]) as first, sink.writer(attempt(), items[1]) as second:
        for begin in range(0, 30, 10):
            for writer in (first, second):
                writer.write(records([b"x"] * 10, begin), limit())
        log.reads = 0
        assert [writer.flush(limit()).duplicates for writer in (first, second)] == [0, 0]
    assert log.reads == 2  # the anchor of each


def test_a_person_who_gives_up_a_range_need_not_look_where_nothing_is_left() -> None:
    log = journal()
    stored(log, range(20))
    log.expire(5)
    floors = [Floor(PARTITION.id, "memory#log", 2), Floor(PARTITION.id, "memory#log", 9), Floor("", "another", 1)]
    assert [floor.position for floor in MemoryLog(log).within(floors)] == [5, 9, 1]


def test_what_no_span_covers() -> None:
    assert uncovered(0, 10, [(2, 4), (3, 6), (8, 20)]) == [(0, 2), (6, 8)]
    assert uncovered(0, 10, []) == [(0, 10)]
    assert uncovered(0, 10, [(0, 10)]) == []
