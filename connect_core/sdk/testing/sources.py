"""The contract of sources, for their authors: inherit it in a test class, and give it a fixture `system`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Protocol

import pytest

from connect_core.clock import now_ns
from connect_core.errors import WaybillError
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.source import Source
from connect_core.sdk.testing import content
from connect_core.sdk.testing.differences import difference
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.steps import CodeStep, Steps, leaving_files_open, spread
from connect_core.sdk.values import OPEN_END, Position, Range, SourceBatch

MANY = 2_500
"""More than what an author's code is apt to do at once."""
VALUES = [b"value %d" % number for number in range(200)]


class SourceCase(Protocol):
    """A fresh place in one system. `source` builds anew each time, as driver and worker do.

    It may also have an attribute `unkept` and a method `break_`, as a `testing.sinks.SimpleCase` has them: which
    content cannot be in the source, and how it comes that the source does not answer any more.
    """

    def source(self) -> Source: ...

    def append(self, values: Sequence[bytes | None]) -> None:
        """Records that somebody else writes, to one partition. None: one without a value."""


class SourceContract:
    """What every source promises. `system` is a fixture of yours: a fresh `SourceCase`."""

    steps = 200
    """At the most so many calls of the author's code are made to fail, one after the other."""
    idle_timeout_s = 1.0
    """After so long a silence nothing more comes. A source that answers at once needs less."""

    @pytest.fixture
    def wanted(self, system: SourceCase) -> Range:
        system.append(VALUES)
        (partition,) = system.source().partitions([])
        seen = system.source().available_offsets({partition: None})[partition]
        if seen.failure:
            raise seen.failure.as_error()
        assert seen.end > seen.begin, f"{len(VALUES)} records were appended, and a new source sees none of them"
        return range_of(partition, seen)

    def test_partitions_are_the_same_each_time(self, system: SourceCase, wanted: Range) -> None:
        known = system.source().partitions([])
        assert system.source().partitions(known) == known

    def test_everything_is_read_once_and_in_order(self, system: SourceCase, wanted: Range) -> None:
        batches = list(system.source().read(wanted, limit()))
        assert [value for batch in batches for value in batch.records.column("value").to_pylist()] == VALUES
        offsets = [offset for batch in batches for offset in batch.records.column("offset").to_pylist()]
        assert offsets == sorted(set(offsets))
        assert wanted.begin <= offsets[0]
        assert offsets[-1] < wanted.end
        assert batches[-1].next_offset == wanted.end
        assert all(batch.records.schema == RECORD_SCHEMA for batch in batches)

    def test_records_carry_the_topic_of_their_partition(self, system: SourceCase, wanted: Range) -> None:
        """Rules, transforms and targets go by it. A source whose records have none, or each its own, says none."""
        source = system.source()
        topics = {topic for one in source.read(wanted, limit()) for topic in one.records.column("topic").to_pylist()}
        if said := source.topic(wanted.partition):
            assert topics == {said}

    def test_thousands_are_read_once_and_in_order(self, system: SourceCase) -> None:
        values = [b"value %d" % number for number in range(MANY)]
        system.append(values)
        follower = Follower(system.source())
        assert not difference(follower.run(), values)
        assert follower.gaps == []

    @pytest.mark.parametrize("name", content.VALUES)
    def test_a_value_is_read_as_it_is(self, system: SourceCase, name: str) -> None:
        unkept: Set[str] = getattr(system, "unkept", frozenset())
        content.check_names(unkept)
        if name in unkept:
            pytest.skip("the case says that this cannot be in its source")
        values = [b"1", content.VALUES[name], b"3"]
        system.append(values)
        assert Follower(system.source()).run() == values

    def test_a_source_that_does_not_answer_is_an_error(self, system: SourceCase, wanted: Range) -> None:
        """It does not say that there is nothing more: a run would end well that has moved nothing."""
        if (break_ := getattr(system, "break_", None)) is None:
            pytest.skip("the case has no way to break its source")
        break_()
        with pytest.raises(WaybillError):
            list(system.source().read(wanted, limit()))
        with pytest.raises(WaybillError):
            Follower(system.source(), {wanted.partition: None}).step()

    @leaving_files_open
    def test_a_look_that_failed_is_not_taken_for_the_end(self, system: SourceCase, wanted: Range) -> None:
        """Whatever call of the author's code fails (`testing.steps`)."""
        for at in spread(self._looks(system, wanted), self.steps):
            self._looks(system, wanted, at)

    def _looks(self, system: SourceCase, wanted: Range, at: CodeStep | None = None) -> list[CodeStep]:
        """A look in which this call fails; the calls that it made."""
        source, steps = system.source(), Steps(at, ConnectionResetError, calls=True)
        steps.of(source)
        try:
            with steps.watched():
                seen = source.available_offsets({wanted.partition: None})[wanted.partition]
        except (WaybillError, ConnectionResetError):
            return steps.passed
        assert seen.failure or seen.end == wanted.end, f"failed: {at}"
        return steps.passed

    def test_the_same_range_gives_the_same_records(self, system: SourceCase, wanted: Range) -> None:
        once, again = (list(system.source().read(wanted, limit())) for _ in range(2))
        assert [batch.records for batch in once] == [batch.records for batch in again]

    def test_what_comes_later_is_not_in_the_range(self, system: SourceCase, wanted: Range) -> None:
        system.append([b"later"])
        batches = list(system.source().read(wanted, limit()))
        assert sum(len(batch.records) for batch in batches) == len(VALUES)

    @pytest.mark.parametrize("size", [1, 7, 199, 200, 500])
    def test_a_range_ends_at_its_records(self, system: SourceCase, wanted: Range, size: int) -> None:
        batches = list(system.source().read(replace(wanted, max_records=size), limit()))
        assert sum(len(batch.records) for batch in batches) == min(size, len(VALUES))

    def test_reading_goes_on_behind_any_place(self, system: SourceCase, wanted: Range) -> None:
        follower = Follower(system.source(), max_records=23, max_bytes=1000)
        assert follower.run() == VALUES
        system.append([b"more"])
        again = Follower(system.source(), follower.positions)
        assert again.run() == [b"more"]
        assert again.gaps == []

    def test_evidence_can_be_stored(self, system: SourceCase, wanted: Range) -> None:
        files = system.source()
        batches = list(files.read(replace(wanted, max_records=50), limit()))
        end = batches[-1].next_offset
        evidence = files.evidence(wanted, end)
        stored = json.loads(json.dumps(evidence))
        assert stored == evidence
        bounds = system.source().available_offsets({wanted.partition: Position(wanted.incarnation, end, stored)})[
            wanted.partition
        ]
        assert (bounds.begin, bounds.end, bounds.gaps) == (end, wanted.end, ())
        assert json.loads(json.dumps(bounds.evidence)) is not None

    def test_nothing_is_read_when_the_quantum_is_over(self, system: SourceCase, wanted: Range) -> None:
        assert list(system.source().read(wanted, limit(quantum_s=-1))) == []

    def test_an_empty_stretch_has_no_records(self, system: SourceCase, wanted: Range) -> None:
        empty = replace(wanted, begin=wanted.end)
        assert list(system.source().read(empty, limit())) == []
        assert system.source().evidence(empty, wanted.end) == wanted.evidence

    def test_telling_the_source_is_harmless(self, system: SourceCase, wanted: Range) -> None:
        files = system.source()
        for _ in range(2):
            files.commit_offsets({wanted.partition: Position(wanted.incarnation, wanted.end)})
        files.commit_offsets({})

    @pytest.fixture
    def live(self, wanted: Range) -> Range:
        """As planned in a window: from where the other one begins to an end that nobody knows."""
        return replace(wanted, end=OPEN_END)

    def test_a_live_range_is_followed_as_it_grows(self, system: SourceCase, live: Range) -> None:
        seen, place = [], live.begin
        for range_, batch in system.source().follow(
            [live], limit(), idle_timeout_s=10
        ):  # a broker's first answer is slow
            assert isinstance(batch, SourceBatch)
            assert range_ == live
            assert batch.next_offset > place
            place = batch.next_offset
            seen += batch.records.column("value").to_pylist()
            if len(seen) == len(VALUES) + 3:
                break
            if len(seen) >= len(VALUES):
                system.append([b"later %d" % (len(seen) - len(VALUES))])
        assert seen == [*VALUES, b"later 0", b"later 1", b"later 2"]

    @pytest.mark.parametrize("stays", [False, True], ids=["another worker", "the same worker"])
    def test_what_follows_a_live_range_goes_on_behind_any_place(
        self, system: SourceCase, live: Range, stays: bool
    ) -> None:
        """Each batch may be the last one: the evidence at its end leads to the next. A worker that stays goes on with
        the source that it has."""
        seen: list[bytes] = []
        position, of_worker = None, system.source()
        for _ in range(3):
            source = of_worker if stays else system.source()
            begin = system.source().available_offsets({live.partition: position})[live.partition]
            assert (begin.gaps, begin.grows) == ((), True)
            wanted = replace(live, begin=begin.begin, evidence=begin.evidence)
            for _, batch in source.follow([wanted], limit(), self.idle_timeout_s):
                assert isinstance(batch, SourceBatch)
                seen += batch.records.column("value").to_pylist()
                position = Position(live.incarnation, batch.next_offset, source.evidence(wanted, batch.next_offset))
            system.append([b"more %d" % len(seen)])
        assert seen == [*VALUES, b"more 200", b"more 201"]

    def test_nothing_is_followed_when_the_quantum_is_over(self, system: SourceCase, live: Range) -> None:
        assert list(system.source().follow([live], limit(quantum_s=-1), idle_timeout_s=1)) == []

    def test_a_quantum_that_is_ended_early_is_over(self, system: SourceCase, live: Range) -> None:
        """As when a person pauses the connector, while the worker waits for what comes next."""
        stopped = threading.Event()
        long = limit(quantum_s=60, deadline_s=90)._replace(stopped=stopped)
        threading.Timer(0.3, stopped.set).start()
        for _ in system.source().follow([live], long, idle_timeout_s=60):
            pass
        assert stopped.is_set()
        assert now_ns() < long.quantum_end_ns

    def test_waiting_ends_when_something_has_come(self, system: SourceCase, wanted: Range) -> None:
        source = system.source()
        seen = source.available_offsets({wanted.partition: Position(wanted.incarnation, wanted.end)})
        begun, waits = time.monotonic(), 0
        while time.monotonic() - begun < 0.2:  # what others write to the same server may end a wait early
            source.wait(seen, 0.2)
            waits += 1
        assert waits < 20
        system.append([b"more"])
        source.wait(seen, 60)
        assert time.monotonic() - begun < 30
