"""The contract of sinks, for their authors: inherit it in a test class, and give it a fixture `target`.

Exactly once, whatever attempt dies wherever, as the ledger and the lane see to it.
"""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from connect_core.sdk.batches import ordinals
from connect_core.sdk.floors import next_floors
from connect_core.sdk.records import Partition, Record
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Sink
from connect_core.sdk.testing.differences import difference
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.values import LIVE, ORIGIN, Bounds, Delivered, Floor, Json, Limit, OpenRange, Range

PARTITION = Partition("source")
_SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
"""The examples of a history share a target, and several classes may inherit the suite."""


Repeats = Literal["nothing", "unflushed", "unsettled"]
"""What of an attempt that died may be there twice: nothing, what it had not made durable, or all that it wrote."""


class SinkCase(Protocol):
    """A fresh place in one system. `sink` builds anew each time, as driver and worker do.

    There is one target: several connectors of a test write to it, and `content` shows what all of them wrote.
    """

    repeats: Repeats

    def sink(self) -> Sink: ...

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        """The values that stand in the sink's target, whichever connector wrote them, but for the first `behind`, in
        order. Of a target that keeps rows by id each has its place when its id first comes."""

    def count(self) -> int:
        """How many records that is."""

    def outputs(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """What a pipeline makes of them on their way to this sink."""


class SimpleCase(ABC):
    """A `SinkCase` to begin with: only `sink` and `content` are yours. What your system cannot do is skipped."""

    repeats: Repeats = "nothing"
    refused: bytes | None = None
    """A value that the target refuses for good; None where it refuses nothing."""
    unkept: Set[str] = frozenset()
    """What the target cannot keep as it came, and its documentation says so: names in `testing.content`. It is kept in
    another form, or refused; whatever is not named here has to be kept byte by byte."""
    in_memory = False
    """Whether the target is in the memory of the tests, where no process that is killed can leave anything."""

    @abstractmethod
    def sink(self) -> Sink: ...

    @abstractmethod
    def content(self, behind: int = 0) -> Sequence[bytes | None]: ...

    def records(self) -> Sequence[Record]:
        """As `content`, with keys and headers, which are compared then."""
        pytest.skip("the case shows values alone (it has no `records`)")

    def break_(self) -> None:
        """The target does not answer any more."""
        pytest.skip("the case has no way to break its target (`break_`)")

    def expire(self, records: int) -> None:
        """Of a log: the oldest so many of its records expire."""
        pytest.skip("the case has no way to let records expire (`expire`)")

    def recreate(self) -> None:
        """Of a log: it is deleted and created again, empty."""
        pytest.skip("the case has no way to create its log again (`recreate`)")

    def commit_as_others(self) -> None:
        """Of a target with commits: another program commits, and adds no rows."""
        pytest.skip("the case has no way to commit as another program (`commit_as_others`)")

    def count(self) -> int:
        return len(self.content())

    def outputs(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return records


@dataclass
class SettledState:
    """What survives an attempt: the settled end and the floors. Records of the partition are numbered from 0; their
    offsets begin at `first`."""

    system: SinkCase
    settled: int = 0
    floors: dict[str, Floor] = field(default_factory=dict)
    open: OpenRange | None = None
    epoch: int = 0
    uid: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    partition: Partition = PARTITION
    stream: str = LIVE
    incarnation: int = 0
    origin: str = ""
    first: int = 0
    possible_duplicates: int = 0
    """As the receipts count them."""

    def attempt(self, end: int, *, settle_at: int | None, flushed: bool = True) -> None:
        """Delivers values up to `end` and settles at `settle_at`, or dies before that."""
        self.epoch += 1
        sink = self.system.sink()
        item = self.adopted(sink) if self.open else self.planned(sink, end)
        stop = end if settle_at is None else settle_at
        rows = self.system.outputs(self.rows(self.settled, stop))
        fresh = rows.filter(pa.array(~_present(item, rows)))
        with sink.writer(attempt(self.epoch, self.uid), item) as writer:
            assert writer.write(fresh, limit()) == len(fresh)
            if not flushed:
                return
            delivered = writer.flush(limit())
        assert delivered.records == len(fresh)
        if settle_at is not None:
            self._settle(item, delivered, settle_at)

    def kept(self) -> dict[str, Any]:
        """All that another process has to know to go on; `take` takes it."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "system"}

    def take(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)

    def rows(self, begin: int, end: int) -> pa.RecordBatch:
        """Records of the partition, each with its number as its value."""
        return self.rows_of(numbers(end)[begin:], begin)

    def rows_of(self, values: Sequence[bytes | None], begin: int = 0) -> pa.RecordBatch:
        """Records with these values, numbered from `begin`."""
        keys: list[object] = [self._key(number) for number in range(begin, begin + len(values))]
        return records(list(values), self.first + begin, key=keys)

    def planned(self, sink: Sink, end: int) -> OpenRange:
        pins = sink.targets(0, list(self.floors.values()), {}).pins
        wanted = self._range(end, json.loads(json.dumps(pins)))
        for floor in sink.floors(wanted, list(self.floors.values())):
            self.floors[floor.target] = floor
        item = OpenRange(1, wanted, tuple(self.floors.values()))
        self.open = replace(item, inherited=True)
        return self._found(sink, item) if any(floor.ahead for floor in item.floors) else item

    def adopted(self, sink: Sink) -> OpenRange:
        assert self.open
        sink.targets(0, list(self.floors.values()), {})
        return self._found(sink, replace(self.open, floors=tuple(self.floors.values())))

    @cached_property
    def _by_key(self) -> bool:
        return bool(getattr(self.system.sink(), "by_key", False))

    def _key(self, number: int) -> str:
        """Where rows are stored by key, no other record of any connector has it."""
        unique = f"{self.uid}, {self.stream}, {self.partition.key}, {number}"
        return unique if self._by_key else f"key {number % 7}"

    def _range(self, end: int, pins: Json) -> Range:
        evidence = {ORIGIN: self.origin} if self.origin else {}
        bounds = Bounds(self.incarnation, self.first + self.settled, 0, self.first + end, evidence)
        return replace(range_of(self.partition, bounds, pins=pins), stream=self.stream)

    def _found(self, sink: Sink, item: OpenRange) -> OpenRange:
        found = sink.scan(Scan(attempt(self.epoch, self.uid), (item,), 10.0))[item.id]
        assert found.complete
        return replace(item, found=ScanResult.decode(found.encode()))

    def _settle(self, item: OpenRange, delivered: Delivered, end: int) -> None:
        already = self.first + end - item.range.begin - delivered.records
        for begin, floor in next_floors(item, delivered, self.first + end, already):
            assert begin == self.floors[floor.target].position
            self.floors[floor.target] = floor
        found = item.found or ScanResult()
        self.possible_duplicates += delivered.possible_duplicates + found.possible_duplicates
        self.settled, self.open = end, None


def _present(item: OpenRange, rows: pa.RecordBatch) -> NDArray[np.bool_]:
    return (item.found or ScanResult()).present(rows.column("offset").to_numpy(), ordinals(rows))


def numbers(upto: int) -> list[bytes]:
    return [b"%d" % number for number in range(upto)]


def in_order(values: Iterable[bytes | None]) -> list[bytes | None]:
    """Numbers by number."""
    return sorted(values, key=lambda value: (len(value or b""), value or b""))


class SinkSuite:
    """What the suites of sinks have in common."""

    def there(self, target: SinkCase, behind: int = 0) -> list[bytes | None]:
        """What stands in the target, and of what may be there twice the first."""
        content = list(target.content(behind))
        return list(dict.fromkeys(content)) if target.repeats == "unsettled" else content


class SinkContract(SinkSuite):
    """What every sink promises. `target` is a fixture of yours: a fresh `SinkCase`."""

    def test_attempts_that_settle_follow_each_other(self, target: SinkCase) -> None:
        ledger = SettledState(target)
        for end in (10, 11, 50):
            ledger.attempt(end, settle_at=end)
        assert self.there(target) == numbers(50)

    def test_what_was_not_settled_is_there_once_in_the_end(self, target: SinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        ledger.attempt(40, settle_at=None)
        ledger.attempt(40, settle_at=None)
        ledger.attempt(40, settle_at=40)
        ledger.attempt(45, settle_at=45)
        assert self.there(target) == numbers(45)

    def test_a_range_may_close_before_what_is_there(self, target: SinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(500, settle_at=None)
        ledger.attempt(500, settle_at=300)
        ledger.attempt(500, settle_at=400)
        ledger.attempt(600, settle_at=600)
        assert not difference(self.there(target), numbers(600))

    def test_a_writer_that_is_left_made_nothing_durable_that_counts(self, target: SinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        ledger.attempt(20, settle_at=None, flushed=False)
        ledger.attempt(20, settle_at=20)
        there = target.content()
        assert in_order(there if target.repeats == "nothing" else {*there}) == numbers(20)

    @settings(max_examples=8, deadline=None, suppress_health_check=_SUPPRESSED)
    @given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=6))
    def test_any_history_of_attempts_ends_with_each_record_once(
        self, target: SinkCase, history: list[tuple[int, bool]]
    ) -> None:
        before = target.count()  # the examples share one system
        ledger = SettledState(target)
        upto = 0
        for more, dies in history:
            end = ledger.open.range.end if ledger.open else ledger.settled + more
            ledger.attempt(end, settle_at=None if dies else end)
            upto = max(upto, end)
        ledger.attempt(upto, settle_at=upto)
        assert self.there(target, before) == numbers(upto)

    def test_floors_that_stand_are_kept(self, target: SinkCase) -> None:
        """Also when the target has grown past them since, by an attempt that was not settled."""
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        ledger.attempt(20, settle_at=None)
        sink = target.sink()
        pins = sink.targets(0, list(ledger.floors.values()), {}).pins
        wanted = range_of(PARTITION, Bounds(0, 10, 0, 20), pins=pins)
        assert sink.floors(wanted, tuple(ledger.floors.values())) == tuple(ledger.floors.values())

    def test_no_rows_are_a_delivery_of_nothing(self, target: SinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(0, settle_at=0)
        assert ledger.settled == 0
        ledger.attempt(5, settle_at=5)
        assert self.there(target) == numbers(5)

    def test_a_pinned_target_does_not_change_by_itself(self, target: SinkCase) -> None:
        first = target.sink().targets(0, (), {})
        assert target.sink().targets(0, (), {}) == first

    @pytest.mark.parametrize("left", [limit(quantum_s=-5, deadline_s=-1)])
    def test_nothing_is_taken_when_the_time_is_over(self, target: SinkCase, left: Limit) -> None:
        sink = target.sink()
        pins = sink.targets(0, (), {}).pins
        wanted = range_of(PARTITION, Bounds(0, 0, 0, 10), pins=pins)
        with sink.writer(attempt(), OpenRange(1, wanted, sink.floors(wanted, ()))) as writer:
            assert writer.write(records([b"a"]), left) == 0

    def test_ordinary_rows_are_fit(self, target: SinkCase) -> None:
        assert target.sink().invalid_rows(SettledState(target).rows_of([b"a", None, b""])) == []
