"""What a sink that is made with a kit promises beyond the contract of every sink: inherit the suite of your kit.

A sink is killed by making its connection fail: before or after any of its calls has done its work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import pytest

from connect_core.errors import Fenced, TargetChanged, Unreachable
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Refusable, Scan, Sink, Writer
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.testing.failing import Failing
from connect_core.sdk.testing.sinks import PARTITION, SettledState, SinkCase, SinkContract, numbers, once
from connect_core.sdk.values import Bounds, OpenRange

ROWS = 40


class KitCase(SinkCase, Protocol):
    """`refused` is a value that the target refuses for good; None where it refuses nothing."""

    refused: bytes | None


class ChangedCase:
    """A case whose sinks get other connections than it has: `changed` is called with each."""

    def __init__(self, case: SinkCase, changed: Callable[[Any], Any]) -> None:
        self._case, self._changed = case, changed
        self.repeats = case.repeats

    def __getattr__(self, name: str) -> Any:
        return getattr(self._case, name)

    def sink(self) -> Sink:
        sink: Any = self._case.sink()
        connect = sink.connect

        @contextmanager
        def connecting() -> Iterator[Any]:
            with connect() as connection:
                yield self._changed(connection)

        sink.connect = connecting
        return sink  # type: ignore[no-any-return]


def dying(calls: int, *, after: bool) -> Callable[[Any], Any]:
    """For a `ChangedCase`: each connection is lost at one of its calls."""
    lost = Unreachable("The connection was lost")
    return lambda connection: Failing(calls, lost, after=after).connection(connection)


class KitContract(SinkContract):
    """What the suites of all kits have in common."""

    calls = 8
    """So many calls of a connection are made to fail, one after the other."""

    @pytest.mark.parametrize("after", [False, True])
    def test_an_attempt_that_dies_at_any_call_loses_nothing(self, target: KitCase, after: bool) -> None:
        for calls in range(self.calls):
            before, ledger = target.count(), SettledState(target)
            ledger.attempt(5, settle_at=5)
            ledger.system = ChangedCase(target, dying(calls, after=after))
            with suppress(Unreachable):
                ledger.attempt(ROWS, settle_at=None)
            ledger.system = target
            ledger.attempt(ROWS, settle_at=ROWS)
            assert sorted(once(target, before), key=int) == numbers(ROWS)


class RefusingContract(KitContract):
    """Of a target that may refuse a row for good."""

    def test_a_refused_row_is_reported_and_the_others_are_there_once(self, target: KitCase) -> None:
        assert target.refused is not None
        values = [*numbers(6), target.refused, *[b"%d" % number for number in range(7, 12)]]
        ledger = SettledState(target)
        refused: list[int] = []
        while ledger.settled < len(values):
            ledger.settled += self._written(target, ledger, values[ledger.settled :], refused)
            ledger.open = None
        assert refused == [6]
        assert sorted(target.content(), key=int) == [value for value in values if value != target.refused]

    def _written(self, target: KitCase, ledger: SettledState, values: list[bytes], refused: list[int]) -> int:
        """One range; returns how many records it is done with."""
        ledger.epoch += 1
        item = ledger.planned(target.sink(), ledger.settled + len(values))
        with target.sink().writer(attempt(ledger.epoch, ledger.uid), item) as writer:
            assert isinstance(writer, Refusable)
            writer.on_refused = lambda row, kind, message: refused.append(row.column("offset")[0].as_py())
            taken = writer.write(records(list(values), ledger.settled), limit())
            delivered = writer.flush(limit())
        for name, position in delivered.behind.items():
            ledger.floors[name] = ledger.floors[name]._replace(position=position)
        return taken


class SimpleContract(KitContract):
    def test_what_may_be_there_twice_is_counted(self, target: KitCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=None)
        item = ledger.adopted(target.sink())
        with target.sink().writer(attempt(2, ledger.uid), item) as writer:
            writer.write(records(numbers(10)), limit())  # type: ignore[arg-type]
            assert writer.flush(limit()).possible_duplicates == 10


class KeyedContract(RefusingContract):
    def test_a_late_writer_stores_nothing_over_what_is_newer(self, target: KitCase) -> None:
        """A writer that was stopped while its successor finished the range, and goes on then."""
        ledger = SettledState(target)
        ledger.attempt(ROWS, settle_at=None)
        assert ledger.open
        with target.sink().writer(attempt(1, ledger.uid), ledger.open) as late:
            ledger.attempt(ROWS, settle_at=ROWS)
            late.write(records(numbers(ROWS)), limit())  # type: ignore[arg-type]
        assert sorted(target.content(), key=int) == numbers(ROWS)


class TransactionContract(RefusingContract):
    def test_an_attempt_that_was_taken_over_writes_nothing_more(self, target: KitCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(5, settle_at=5)
        ledger.epoch += 1
        item = ledger.planned(target.sink(), ROWS)
        with target.sink().writer(attempt(ledger.epoch, ledger.uid), item) as late:
            self._write(late, 5, 9)
            ledger.attempt(ROWS, settle_at=ROWS)
            with pytest.raises(Fenced):
                self._write(late, 9, ROWS)
        assert sorted(target.content(), key=int) == numbers(ROWS)

    def test_an_attempt_that_was_taken_over_before_it_wrote_writes_nothing(self, target: KitCase) -> None:
        """The look takes over by itself: from then on what it saw is final."""
        ledger = SettledState(target)
        ledger.epoch += 1
        item = ledger.planned(target.sink(), ROWS)
        with target.sink().writer(attempt(ledger.epoch, ledger.uid), item) as late:
            found = self._scan(target, item, ledger, later=1)
            assert found.there() == 0
            with pytest.raises(Fenced):
                self._write(late, 0, ROWS)
        assert target.count() == 0

    def test_rows_that_the_target_has_lost_stop_the_partition(self, target: KitCase) -> None:
        """As when it was restored from a backup of before."""
        ledger = SettledState(target)
        ledger.attempt(5, settle_at=5)
        (name, floor) = next(iter(ledger.floors.items()))
        ledger.floors[name] = floor._replace(position=9)
        ledger.epoch += 1
        item = ledger.planned(target.sink(), ROWS)
        assert self._scan(target, item, ledger).failure
        with pytest.raises(TargetChanged), target.sink().writer(attempt(ledger.epoch, ledger.uid), item):
            pass

    def test_rows_that_the_ledger_has_forgotten_are_looked_for(self, target: KitCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(30, settle_at=30)
        ledger.epoch += 1
        sink = target.sink()
        wanted = range_of(PARTITION, Bounds(0, 0, 0, ROWS), pins=sink.targets(0, (), {}).pins)
        unknown = OpenRange(1, wanted, sink.floors(wanted, ()))
        with pytest.raises(TargetChanged), sink.writer(attempt(ledger.epoch, ledger.uid), unknown):
            pass
        floors = sink.floors(wanted, (), restored=True)
        assert [floor.ahead for floor in floors] == [True]
        assert self._scan(target, OpenRange(1, wanted, floors), ledger).there() == 30

    def _write(self, writer: Writer, begin: int, end: int) -> None:
        values: Sequence[bytes | None] = [b"%d" % number for number in range(begin, end)]
        assert writer.write(records(list(values), begin), limit()) == end - begin
        writer.flush(limit())

    def _scan(self, target: KitCase, item: OpenRange, ledger: SettledState, later: int = 0) -> ScanResult:
        return target.sink().scan(Scan(attempt(ledger.epoch + later, ledger.uid), (item,), 10.0))[item.id]
