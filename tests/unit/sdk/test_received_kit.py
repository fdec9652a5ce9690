"""By what a source that pushes recognises a message, and what it remembers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from connect_core.errors import Failure, PartitionUnreachable, Unreachable
from connect_core.sdk.kits.arrivals import (
    Arrivals,
    ArrivedRecord,
    Message,
    entries_in,
    evidence_of,
    is_doubtful,
    left_by,
    trace_of,
)
from connect_core.sdk.kits.received import ReceivedSource
from connect_core.sdk.records import Partition, Record
from connect_core.sdk.scan import Hit, ScanResult
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import OPEN_END, Bounds, Range, SourceBatch


def message(key: str, *, again: bool = False) -> Message:
    return Message(Record(key.encode()), key, again)


def arrivals(*entries: ArrivedRecord, unique: bool = True, begin: int = 10, window: int = 5) -> Arrivals:
    return Arrivals(begin, entries, unique=unique, window=window)


def values(batch: SourceBatch) -> list[bytes]:
    return batch.records.column("value").to_pylist()  # type: ignore[no-any-return]


A = ArrivedRecord(3, trace_of("a"))


def test_a_key_that_is_known_is_dropped_and_its_number_is_a_hole() -> None:
    come = arrivals(A)
    batch = come.take([message("b"), message("a"), message("c")])
    assert (values(batch), batch.holes, batch.next_offset) == ([b"b", b"c"], ((11, 12),), 13)
    assert batch.records.column("trace").to_pylist() == [trace_of("b"), trace_of("c")]


def test_acknowledgements_go_in_order_and_only_of_what_is_durable() -> None:
    come = arrivals(A)
    come.take([message("a"), message("b"), message("a"), message("c")])
    assert come.due() == 1
    assert come.due() == 0
    come.durable(12)
    assert come.due() == 3
    come.durable(14)
    assert come.due() == 4


def test_a_message_that_comes_again_before_it_is_durable_waits_for_it() -> None:
    come = arrivals()
    come.take([message("b"), message("b")])
    assert come.due() == 0
    come.durable(11)
    assert come.due() == 2


def test_no_more_are_under_way_than_the_window() -> None:
    come = arrivals(window=3)
    come.take([message("a"), message("b")])
    assert come.room() == 1
    come.durable(11)
    come.due()
    assert come.room() == 2


def test_what_is_settled_is_what_was_written_before_the_end() -> None:
    come = arrivals(A)
    come.take([message("b"), message("c")])
    come.durable(11)
    come.due()
    come.confirmed()
    kept = entries_in(come.evidence(11))
    assert kept == [A, ArrivedRecord(10, trace_of("b"), sent=True, confirmed=True)]


def test_of_what_is_confirmed_the_newest_are_remembered_and_of_the_others_all() -> None:
    confirmed = [ArrivedRecord(number, trace_of(f"c{number}"), True, True) for number in range(0, 20, 2)]
    others = [ArrivedRecord(number, trace_of(f"o{number}")) for number in range(1, 20, 2)]
    kept = entries_in(evidence_of([*others, *confirmed], window=3))
    assert [one.arrival for one in kept if one.confirmed] == [14, 16, 18]
    assert [one.arrival for one in kept if not one.confirmed] == [*range(1, 20, 2)]


def test_what_a_server_has_forgotten_counts_as_not_acknowledged_again() -> None:
    confirmed = [ArrivedRecord(number, trace_of(f"c{number}"), True, True) for number in range(9)]
    come = arrivals(*confirmed, window=2)
    come.take([message("new"), message("c0")])
    kept = entries_in(come.evidence(12))
    assert [(one.arrival, one.sent, one.confirmed) for one in kept if not one.confirmed] == [
        (0, False, False),
        (10, False, False),
    ]


def test_a_position_that_a_person_has_set_knows_no_message() -> None:
    assert entries_in({}) == []
    assert evidence_of([], window=3) == {}


@pytest.mark.parametrize(
    ("entry", "again", "delivered", "doubtful"),
    [
        (A, True, 0, 0),
        (A, False, 1, 0),
        (replace(A, sent=True), True, 1, 1),
        (replace(A, sent=True, confirmed=True), True, 1, 1),
    ],
)
def test_a_key_that_is_not_unique_drops_what_surely_comes_again(
    entry: ArrivedRecord, again: bool, delivered: int, doubtful: int
) -> None:
    batch = arrivals(entry, unique=False).take([message("a", again=again)])
    assert (len(values(batch)), len(batch.doubtful)) == (delivered, doubtful)
    assert [is_doubtful(trace) for trace in batch.records.column("trace").to_pylist()] == [bool(doubtful)] * delivered


def test_of_equal_messages_as_many_are_dropped_as_were_written() -> None:
    come = arrivals(A, replace(A, arrival=4), unique=False)
    batch = come.take([message("a", again=True)] * 3)
    assert (batch.holes, batch.doubtful) == (((10, 11), (11, 12)), (12,))


def test_what_was_written_over_this_connection_drops_nothing_by_content() -> None:
    come = arrivals(unique=False)
    come.take([message("a", again=True)])
    assert len(come.take([message("a", again=True)]).doubtful) == 1


def test_a_dead_attempt_may_have_acknowledged_whatever_was_there() -> None:
    left = left_by([A], [(number, trace_of(str(number))) for number in range(10, 20)], window=4)
    assert [one.arrival for one in left] == [3, 16, 17, 18, 19]
    assert all(one.sent and not one.confirmed for one in left)


class Several(ReceivedSource):
    """Queues with a message each, until they fail as they are told to."""

    def __init__(self, **failing: Exception) -> None:
        super().__init__()
        self.failing = failing

    @contextmanager
    def connect(self, name: str) -> Iterator[Line]:
        if name in self.failing:
            raise self.failing[name]
        yield Line()


class Line:
    """Whose server never answers acknowledgements."""

    def receive(self, most: int, limit_s: float) -> Sequence[Message]:
        return [message("x")]

    def acknowledge(self, upto: int) -> None:
        raise Unreachable("The connection was lost")


def live(name: str) -> Range:
    return replace(range_of(Partition(name), Bounds(0, 0, 0, 0)), end=OPEN_END)


def test_a_queue_that_fails_stops_no_other() -> None:
    error = PartitionUnreachable("its node is away")
    source = Several(a=error)
    came = [(one.partition.key, batch) for one, batch in source.follow([live("a"), live("b")], limit(0.05), 1)]
    assert came[0] == ("a", Failure.of(error))
    assert {name for name, _ in came[1:]} == {"b"}


def test_a_server_that_does_not_answer_stops_all() -> None:
    with pytest.raises(Unreachable):
        list(Several(a=Unreachable("away")).follow([live("a"), live("b")], limit(0.05), 1))


def test_a_connection_that_breaks_while_it_acknowledges_ends_the_quantum_after_its_receipt() -> None:
    """What is durable is settled all the same, as not known to be acknowledged."""
    source, wanted = Several(), live("a")
    batches = source.follow([wanted], limit(), 60)
    _, batch = next(batches)
    assert isinstance(batch, SourceBatch)
    source.acknowledge(wanted, batch.next_offset)
    with pytest.raises(Unreachable):
        next(batches)
    assert entries_in(source.evidence(wanted, 1)) == [ArrivedRecord(0, trace_of("x"), sent=True)]


def test_a_quantum_ends_when_the_server_may_send_no_more() -> None:
    source = Several()
    source.window = 3
    assert len(list(source.follow([live("a")], limit(), 60))) == 3


def test_a_quantum_that_is_over_when_it_is_connected_looks_once() -> None:
    assert len(list(Several().follow([live("a")], limit(0), 60))) == 1


def test_doubtful_records_of_a_dead_attempt_are_counted() -> None:
    hits = [Hit(0, 0, "t", 0, trace_of("a")), Hit(1, 0, "t", 1, trace_of("b") | 1)]
    recovered = Several().recovered(live("a"), ScanResult().merged(hits, {}, True))
    assert recovered.possible_duplicates == 1
    assert [one.arrival for one in entries_in(recovered.evidence)] == [0, 1]
