"""What a source made with `ReceivedSource` promises: inherit the suite. It takes the place of the contract of other
sources, since a source that pushes has no records to read again.

A case lets happen what can happen to a queue. What yours cannot do is skipped.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect_core.errors import ConfigError, Failure, Unreachable
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.cutting import part_before
from connect_core.sdk.kits.received import ReceivedSource
from connect_core.sdk.scan import Hit, ScanResult
from connect_core.sdk.source import Followed, PushSource
from connect_core.sdk.testing import content
from connect_core.sdk.testing.differences import difference
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.testing.failing import Failing, Killed
from connect_core.sdk.values import OPEN_END, Bounds, Position, Range, SourceBatch

MANY = 2_500
"""More than what an author's code is apt to do at once."""
VALUES = [b"value %d" % number for number in range(60)]


class ReceivedCase(ABC):
    """A fresh queue. `source` builds anew each time, as driver and worker do."""

    idle_timeout_s = 0.02
    """After so long a silence a test takes it that nothing more comes."""
    unkept: Set[str] = frozenset()
    """Names in `testing.content`: what cannot be in this queue, and its documentation says so."""

    @abstractmethod
    def source(self) -> ReceivedSource: ...

    @abstractmethod
    def append(self, values: Sequence[bytes | None]) -> None:
        """Messages that somebody sends, each with a key of its own where keys are unique."""

    def shuffle(self, seed: int) -> None:
        """What is not acknowledged comes again in another order."""
        pytest.skip("messages keep their order here")

    def forget(self, messages: int) -> None:
        """The server forgets that the newest `messages` were acknowledged."""
        pytest.skip("no acknowledgement is forgotten here")


@dataclass
class Deliveries:
    """A target with the coordinates of its records, and the position that was settled last. A sink that does not tell
    which records it holds (`tells`) has nothing acknowledged within a quantum. A worker that `stays` goes on with the
    source that it has, until an attempt fails."""

    system: ReceivedCase
    tells: bool = True
    stays: bool = True
    target: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    """Number of arrival, trace and value."""
    position: Position = field(default_factory=lambda: Position(0, 0))
    possible_duplicates: int = 0
    open: Range | None = None
    kept: ReceivedSource | None = None

    def attempt(self, failing: Failing | None = None, *, stops_at: int | None = None, most: int | None = None) -> None:
        """A quantum. Killed, it leaves no receipt. A rejected record before `stops_at` would stop acknowledgements
        there. It ends behind the `most`th number of its range, wherever that is in a batch."""
        self._recover()
        source = self.kept or self.system.source()
        self.kept = source if self.stays and failing is None else None
        if failing is not None:
            failing.connections(source)
        with suppress(Killed):
            self._settle(source, self._received(source, self._planned(source), stops_at, most))

    def values(self) -> list[bytes | None]:
        return [value for _, _, value in self.target]

    def _planned(self, source: ReceivedSource) -> Range:
        (partition,) = source.partitions([])
        seen = source.available_offsets({partition: self.position})[partition]
        assert (seen.pushes, seen.gaps) == (True, ())
        self.open = replace(range_of(partition, seen), end=OPEN_END)
        return self.open

    def _received(self, source: ReceivedSource, wanted: Range, stops_at: int | None, most: int | None) -> int:
        """Where the quantum ends. When the connection breaks, what came before is settled."""
        end, last = wanted.begin, OPEN_END if most is None else wanted.begin + most
        quantum = limit()._replace(first_record_timeout_s=self.system.idle_timeout_s)
        came = source.follow([wanted], quantum, self.system.idle_timeout_s)
        with suppress(Unreachable), closing(_until_closed(came)) as batches:
            for _, batch in batches:
                if isinstance(batch, Failure):
                    raise batch.as_error()
                end = min(batch.next_offset, last)
                self._write(part_before(batch, end))
                durable = end if self.tells else wanted.begin
                source.acknowledge(wanted, durable if stops_at is None else min(durable, stops_at))
                if end == last:
                    break
        return end

    def _write(self, batch: SourceBatch) -> None:
        assert batch.records.schema == RECORD_SCHEMA
        columns = [batch.records.column(name).to_pylist() for name in ("offset", "trace", "value")]
        self.target += zip(*columns, strict=True)
        self.possible_duplicates += len(batch.doubtful)

    def _settle(self, source: ReceivedSource, end: int) -> None:
        if self.open is not None and end > self.open.begin:
            self.position = Position(0, end, json.loads(json.dumps(source.evidence(self.open, end))))
        self.open = None

    def _recover(self) -> None:
        """Of an attempt that left no receipt the target says what it wrote."""
        if self.open is None:
            return
        hits = [Hit(row[0], 0, "t", at, row[1]) for at, row in enumerate(self.target) if row[0] >= self.open.begin]
        found = ScanResult().merged(hits, {}, True)
        recovered = self.system.source().recovered(self.open, found)
        end = found.behind_highest(self.open.begin, self.open.end)
        self.position = Position(0, end, json.loads(json.dumps(recovered.evidence)))
        self.possible_duplicates += recovered.possible_duplicates
        self.open = None


class ReceivedContract:
    """`system` is a fixture of yours: a fresh `ReceivedCase`."""

    def test_a_kit_makes_a_source_that_pushes(self, system: ReceivedCase) -> None:
        source = system.source()
        assert isinstance(source, PushSource)
        (partition,) = source.partitions([])
        with pytest.raises(ConfigError):
            source.align_offset(partition, Bounds(0, 0, 0, 0, pushes=True), 0)

    @pytest.mark.parametrize("stays", [False, True], ids=["another worker", "the same worker"])
    def test_what_is_sent_is_delivered_once_and_acknowledged(self, system: ReceivedCase, stays: bool) -> None:
        deliveries = Deliveries(system, stays=stays)
        for first in range(0, 60, 20):
            system.append(VALUES[first : first + 20])
            deliveries.attempt()
        assert deliveries.values() == VALUES
        afresh = Deliveries(system)
        afresh.attempt()
        assert afresh.values() == []

    @pytest.mark.parametrize("stays", [False, True], ids=["another worker", "the same worker"])
    @pytest.mark.parametrize("tells", [True, False])
    def test_a_range_that_ends_before_what_came_is_gone_on_from_there(
        self, system: ReceivedCase, tells: bool, stays: bool
    ) -> None:
        """At a limit, or where the target is slow: what is left of a batch is neither lost nor delivered twice."""
        deliveries = Deliveries(system, tells=tells, stays=stays)
        for first in range(0, 60, 20):
            system.append(VALUES[first : first + 20])
            for most in (1, 4, 2, 9):
                deliveries.attempt(most=most)
        _finish(deliveries)
        assert deliveries.values() == VALUES

    def test_thousands_are_delivered_once_and_acknowledged(self, system: ReceivedCase) -> None:
        values = [b"value %d" % number for number in range(MANY)]
        deliveries = Deliveries(system)
        system.append(values)
        _finish(deliveries)
        assert not difference(deliveries.values(), values)
        afresh = Deliveries(system)
        afresh.attempt()
        assert afresh.values() == []

    @pytest.mark.parametrize("name", content.VALUES)
    def test_a_value_is_received_as_it_is(self, system: ReceivedCase, name: str) -> None:
        content.check_names(system.unkept)
        if name in system.unkept:
            pytest.skip("the case says that this cannot be in its queue")
        values = [b"1", content.VALUES[name], b"3"]
        deliveries = Deliveries(system)
        system.append(values)
        _finish(deliveries)
        assert deliveries.values() == values

    @pytest.mark.parametrize("after", [False, True])
    @pytest.mark.parametrize("error", [Killed(), Unreachable("The connection was lost")], ids=["killed", "lost"])
    def test_an_attempt_that_ends_at_any_call_loses_nothing(
        self, system: ReceivedCase, error: Exception, after: bool
    ) -> None:
        for calls in range(10):
            deliveries = Deliveries(system)
            system.append(VALUES[:20])
            deliveries.attempt(Failing(calls, error, after=after))
            deliveries.attempt(Failing(calls, error, after=after))
            _finish(deliveries)
            _check(system, deliveries, VALUES[:20])

    @pytest.mark.parametrize("tells", [True, False])
    def test_equal_messages_are_messages_of_their_own(self, system: ReceivedCase, tells: bool) -> None:
        """Somebody sends the same value more than once, also while an attempt dies: none is taken for another."""
        for calls in range(5):
            deliveries = Deliveries(system, tells=tells)
            system.append([b"same"] * 5)
            deliveries.attempt(Failing(calls, Killed(), after=True))
            system.append([b"same"] * 5)
            _finish(deliveries)
            _check(system, deliveries, [b"same"] * 10)

    def test_a_sink_that_cannot_tell_its_records_gets_each_once(self, system: ReceivedCase) -> None:
        """Nothing is acknowledged before it is settled: each quantum receives again what the one before has moved."""
        deliveries = Deliveries(system, tells=False)
        system.append(VALUES)
        _finish(deliveries)
        assert deliveries.values() == VALUES

    def test_what_is_not_durable_is_not_acknowledged(self, system: ReceivedCase) -> None:
        """As behind a rejected record: it is in the ledger only when the range is settled."""
        system.append(VALUES[:10])
        Deliveries(system).attempt(stops_at=4)
        afresh = Deliveries(system)
        afresh.attempt()
        assert Counter(afresh.values()) == Counter(VALUES[4:10])

    def test_what_comes_again_in_another_order_is_recognised(self, system: ReceivedCase) -> None:
        deliveries = Deliveries(system, tells=False)
        system.append(VALUES[:15])
        deliveries.attempt()
        system.append(VALUES[15:18])
        system.shuffle(1)
        _finish(deliveries)
        assert Counter(deliveries.values()) == Counter(VALUES[:18])

    def test_what_a_server_has_forgotten_is_recognised_or_counted(self, system: ReceivedCase) -> None:
        deliveries = Deliveries(system)
        system.append(VALUES[:15])
        deliveries.attempt()
        system.forget(10)
        _finish(deliveries)
        _check(system, deliveries, VALUES[:15])

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12), st.booleans(), st.booleans()), max_size=6))
    def test_any_history_ends_with_each_message_once(
        self, system: ReceivedCase, history: list[tuple[int, int, bool, bool]]
    ) -> None:
        """Or as often as is counted. Each step sends some messages, and its attempt ends at a call."""
        deliveries, sent = Deliveries(system), 0
        for number, (more, calls, after, killed) in enumerate(history):
            system.append(VALUES[sent : sent + more])
            sent += more
            with suppress(pytest.skip.Exception):
                system.shuffle(number)
            error = Killed() if killed else Unreachable("The connection was lost")
            deliveries.attempt(Failing(calls, error, after=after))
        _finish(deliveries)
        _check(system, deliveries, VALUES[:sent])


def _until_closed(came: Iterator[Followed]) -> Generator[Followed, None, None]:
    yield from came


def _finish(deliveries: Deliveries) -> None:
    """Until an attempt brings nothing more."""
    before = -1
    while before < deliveries.position.offset:
        before = deliveries.position.offset
        deliveries.attempt()


def _check(system: ReceivedCase, deliveries: Deliveries, values: Sequence[bytes | None]) -> None:
    """Nothing is lost, and what is there more often is counted. With unique keys nothing is."""
    assert not Counter(values) - Counter(deliveries.values())
    more = (Counter(deliveries.values()) - Counter(values)).total()
    assert more <= (0 if system.source().unique else deliveries.possible_duplicates)
