"""What a source made with `LogSource` promises beyond the contract of every source: inherit the suite.

A case lets happen what can happen to a log. What yours cannot do is skipped.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from connect_core.errors import OffsetGone, Retriable
from connect_core.sdk.kits.log_source import LogSource
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.failing import Failing, Killed
from connect_core.sdk.testing.sources import VALUES, SourceContract
from connect_core.sdk.values import OPEN_END, Bounds, Position, Range, SourceBatch

OTHERS = [b"other %d" % number for number in range(300)]


class LogSourceCase(ABC):
    """A fresh log. `source` builds anew each time, as driver and worker do."""

    unkept: Set[str] = frozenset()
    """Names in `testing.content`: what cannot be in this log, and its documentation says so."""

    @abstractmethod
    def source(self) -> LogSource: ...

    @abstractmethod
    def append(self, values: Sequence[bytes | None]) -> None:
        """Records that somebody else writes. Makes the log where it is not there."""

    def expire(self, records: int) -> None:
        """The oldest `records` of the log expire."""
        pytest.skip("nothing expires here")

    def cut(self, records: int) -> None:
        """The log loses its newest `records`."""
        pytest.skip("no log loses its end here")

    def recreate(self) -> None:
        """The log is deleted and made anew, without a record."""
        pytest.skip("no log is recreated here")

    def remove(self) -> None:
        """The log is deleted."""
        pytest.skip("no log is deleted here")

    def break_(self) -> None:
        """The server does not answer any more."""
        pytest.skip("the case has no way to break its source")


class LogSourceContract(SourceContract):
    """`system` is a fixture of yours: a fresh `LogSourceCase`."""

    def test_a_known_log_is_there_also_when_it_is_not(self, system: LogSourceCase) -> None:
        """One that is empty, or deleted for a while, is not retired: what was lost with it would not be seen."""
        system.append(VALUES)
        known = system.source().partitions([])
        system.recreate()
        assert system.source().partitions(known) == known
        system.remove()
        assert system.source().partitions(known) == known

    def test_what_expired_before_it_was_read_is_a_gap(self, system: LogSourceCase) -> None:
        system.append(VALUES)
        follower = _read_partly(system)
        (before,) = follower.positions.values()
        system.expire(50)
        again = Follower(system.source(), follower.positions)
        assert again.run() == VALUES[50:]
        assert before is not None
        assert [(gap.begin, gap.end, gap.reason) for gap in again.gaps] == [
            (before.offset, before.offset + 27, "expired")
        ]

    def test_what_expired_and_was_read_is_no_gap(self, system: LogSourceCase) -> None:
        system.append(VALUES)
        follower = _read_partly(system)
        system.expire(23)
        again = Follower(system.source(), follower.positions)
        assert again.run() == VALUES[23:]
        assert again.gaps == []

    def test_records_that_expire_under_a_range_are_not_passed_over(self, system: LogSourceCase) -> None:
        planned = _planned(system)
        system.expire(50)
        with pytest.raises(OffsetGone):
            list(system.source().read(planned, limit()))
        (after,) = _bounds(system, _at_begin(planned)).gaps
        assert (after.begin, after.end, after.reason) == (planned.begin, planned.begin + 50, "expired")

    @pytest.mark.parametrize("back", [0, 150])
    def test_a_log_that_lost_its_end_is_another_one(self, system: LogSourceCase, back: int) -> None:
        """Also when it has grown past the position again."""
        system.append(VALUES)
        follower = Follower(system.source())
        assert follower.run() == VALUES
        system.cut(20)
        system.append(OTHERS[:back])
        self._is_another(system, follower, VALUES[:-20] + OTHERS[:back])

    @pytest.mark.parametrize("records", [0, 5, 300])
    def test_a_log_made_anew_is_another_one(self, system: LogSourceCase, records: int) -> None:
        system.append(VALUES)
        follower = Follower(system.source())
        assert follower.run() == VALUES
        system.recreate()
        system.append(OTHERS[:records])
        self._is_another(system, follower, OTHERS[:records])

    def _is_another(self, system: LogSourceCase, follower: Follower, values: list[bytes]) -> None:
        """The gap has no known end, and everything of the new log is read."""
        again = Follower(system.source(), follower.positions)
        told = again.tell()
        assert again.run() == values
        (gap,) = [*told, *again.gaps]
        assert (gap.end, gap.loses) == (None, True)
        (at,) = again.positions.values()
        assert at is not None
        assert at.incarnation == gap.incarnation + 1

    @pytest.mark.parametrize("records", [0, 300])
    def test_a_log_made_anew_under_a_range_is_not_taken_for_it(self, system: LogSourceCase, records: int) -> None:
        """Of a range that is the first one too: a later attempt must not find records in the target that are others."""
        planned = _planned(system)
        system.recreate()
        system.append(OTHERS[:records])
        read: list[SourceBatch] = []
        with pytest.raises(Retriable):
            read += system.source().read(planned, limit())
        assert read == []
        assert _bounds(system, _at_begin(planned)).incarnation == planned.incarnation + 1

    def test_a_log_made_anew_while_it_is_read_ends_the_range(self, system: LogSourceCase) -> None:
        planned = replace(_planned(system), max_records=10**6)
        batches = system.source().read(replace(planned, end=planned.begin + 150), limit())
        read = next(batches).records.column("value").to_pylist()
        system.recreate()
        system.append(OTHERS)
        with suppress(Retriable):
            for batch in batches:
                read += batch.records.column("value").to_pylist()
        assert read == VALUES[: len(read)]

    def test_a_log_made_anew_while_it_is_followed_ends_the_range(self, system: LogSourceCase) -> None:
        live = replace(_planned(system), end=OPEN_END)
        read: list[bytes] = []
        for _, batch in system.source().follow([live], limit(), self.idle_timeout_s):
            assert isinstance(batch, SourceBatch)
            read += batch.records.column("value").to_pylist()
            if len(read) == len(VALUES):
                system.recreate()
                system.append(OTHERS)
        assert read == VALUES

    def test_a_log_that_was_read_and_deleted_has_ended(self, system: LogSourceCase) -> None:
        system.append(VALUES)
        follower = Follower(system.source())
        assert follower.run() == VALUES
        system.remove()
        again = Follower(system.source(), follower.positions)
        (gap,) = again.tell()
        assert not gap.loses
        assert again.tell() == []
        system.append(OTHERS)
        assert again.run() == OTHERS
        assert again.gaps == []

    def test_a_log_that_was_deleted_before_it_was_read_is_a_gap(self, system: LogSourceCase) -> None:
        system.append(VALUES)
        follower = _read_partly(system)
        system.remove()
        (gap,) = Follower(system.source(), follower.positions).tell()
        assert (gap.end, gap.loses) == (None, True)

    @pytest.mark.parametrize("after", [False, True])
    @pytest.mark.parametrize("lives", [False, True])
    def test_an_attempt_that_dies_at_any_call_loses_nothing(
        self, system: LogSourceCase, after: bool, lives: bool
    ) -> None:
        system.append(VALUES[:40])
        for calls in range(16):
            deliveries = _Deliveries(system, lives)
            deliveries.attempt(Failing(calls, Killed(), after=after))
            deliveries.attempt(Failing(calls, Killed(), after=after))
            deliveries.attempt(None)
            assert [*deliveries.target.values()] == VALUES[:40]


@dataclass
class _Deliveries:
    """A target by offset, and the position of the last attempt that settled."""

    system: LogSourceCase
    lives: bool
    position: Position | None = None
    target: dict[int, bytes] = field(default_factory=dict)

    def attempt(self, failing: Failing | None) -> None:
        """What it reads before it dies is in the target."""
        source = self.system.source()
        if failing is not None:
            failing.methods(source, "logs", "ends", "fetch")
        with suppress(Killed):
            self._move(source)

    def _move(self, source: LogSource) -> None:
        (partition,) = source.partitions([])
        seen = source.available_offsets({partition: self.position})[partition]
        assert seen.gaps == ()
        wanted = range_of(partition, seen)
        end = wanted.begin
        for batch in self._batches(source, wanted):
            for offset, value in zip(
                *(batch.records.column(one).to_pylist() for one in ("offset", "value")), strict=True
            ):
                assert self.target.setdefault(offset, value) == value
            end = batch.next_offset
            evidence = json.loads(json.dumps(source.evidence(wanted, end)))
            self.position = Position(wanted.incarnation, end, evidence)

    def _batches(self, source: LogSource, wanted: Range) -> Iterator[SourceBatch]:
        if not self.lives:
            yield from source.read(wanted, limit())
            return
        for _, batch in source.follow([replace(wanted, end=OPEN_END)], limit(), idle_timeout_s=0.02):
            assert isinstance(batch, SourceBatch)
            yield batch


def _read_partly(system: LogSourceCase) -> Follower:
    """The first 23 records."""
    follower = Follower(system.source(), max_records=23)
    (partition,) = follower.source.partitions([])
    follower.positions[partition] = None
    assert follower.step() == VALUES[:23]
    return follower


def _planned(system: LogSourceCase) -> Range:
    system.append(VALUES)
    (partition,) = system.source().partitions([])
    return range_of(partition, system.source().available_offsets({partition: None})[partition])


def _at_begin(planned: Range) -> tuple[Partition, Position]:
    return planned.partition, Position(planned.incarnation, planned.begin, planned.evidence)


def _bounds(system: LogSourceCase, at: tuple[Partition, Position]) -> Bounds:
    return system.source().available_offsets(dict([at]))[at[0]]
