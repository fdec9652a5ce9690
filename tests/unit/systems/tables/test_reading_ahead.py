"""Pages of a range: the next one is asked for while the last one is worked on, and none that nobody wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from connect_core import clock
from connect_core.errors import Unreachable
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Limit, Pins, Position, Range
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.pages import Page
from connect_core.systems.tables.passes import Among, TimeWindow
from connect_core.systems.tables.reading import TableRows


class Looks:
    every_s = 1.0
    patience_s = 1.0


class Table:
    origin, id, numbering, is_query, is_keyed = "o", "id", "", False, False


class Database:
    """A connection of one thread at a time."""

    def __init__(self) -> None:
        self._used = threading.Lock()

    @contextmanager
    def cursor(self) -> Iterator[object]:
        assert self._used.acquire(blocking=False), "asked by two at once"
        try:
            yield object()
        finally:
            self._used.release()

    def close(self) -> None:
        pass


class Rows(TableRows[Any]):
    """A table of numbers without end, in pages of ten."""

    def __init__(self, broken_at: int = 1_000_000) -> None:
        super().__init__(Looks(), "public.t", "here")
        self.begins: list[int] = []
        self.threads: list[str] = []
        self.asked = threading.Condition()
        self._broken_at = broken_at

    def connect(self) -> Database:
        return Database()

    def understood(self) -> AbstractContextManager[None]:
        return nullcontext()

    def table(self, asking: Any) -> Table:
        return Table()

    def as_it_is(self, asking: Any) -> AbstractContextManager[Table]:
        return nullcontext(Table())

    def extent(self, asking: Any, table: Any, window: TimeWindow | None = None) -> tuple[int | None, int | None]:
        return 0, None

    def writers(self, asking: Any, table: Any) -> list[OpenTransaction]:
        return []

    def page(self, asking: Any, table: Any, begin: int, end: int, most: int, most_bytes: int, among: Among) -> Page:
        with self.asked:
            self.begins.append(begin)
            self.threads.append(threading.current_thread().name)
            self.asked.notify_all()
        if begin >= self._broken_at:
            raise Unreachable("The server is away", where="here", next_step="Wait")
        behind = min(begin + 10, begin + most, end)
        return Page([(number, None, "{}") for number in range(begin, behind)], at_end=behind == end)

    def wait_until_asked(self, begin: int) -> None:
        with self.asked:
            assert self.asked.wait_for(lambda: begin in self.begins, 20)

    def _bounds(self, at: Position | None) -> Bounds:
        return Bounds.unread(at)

    def _moved(self, seen: Bounds) -> bool:
        return False

    def _is_as_planned(self, table: Any, wanted: Range) -> bool:
        return True


def a_range(end: int, most: int = 1_000) -> Range:
    return Range("live", Partition("public.t"), 0, 0, 0, end, most, 1 << 30, {}, Pins(1, "", {}, ""))


def limit(seconds: float) -> Limit:
    now = clock.now_ns()
    return Limit(now + int(seconds * 1e9), now + int(seconds * 2e9))


def test_the_next_page_is_read_while_the_last_one_is_worked_on() -> None:
    rows = Rows()
    places = []
    for batch in rows.read(a_range(35), limit(60)):
        places.append((batch.next_offset, len(batch.records)))
        if batch.next_offset < 35:
            rows.wait_until_asked(batch.next_offset)
    assert places == [(10, 10), (20, 10), (30, 10), (35, 5)]
    assert rows.begins == [0, 10, 20, 30]
    assert rows.threads[0] == threading.current_thread().name
    assert len(set(rows.threads[1:])) == 1


def test_nothing_is_read_behind_what_the_range_may_hold() -> None:
    rows = Rows()
    assert [batch.next_offset for batch in rows.read(a_range(1_000, most=15), limit(60))] == [10, 15]
    assert rows.begins == [0, 10]


def test_nothing_is_read_ahead_when_the_quantum_might_be_over_before_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows()
    monkeypatch.setattr(clock, "monotonic", iter(range(0, 10_000, 100)).__next__)
    reading = rows.read(a_range(30), limit(60))
    next(reading)
    reading.close()
    assert rows.begins == [0]


def test_what_goes_wrong_meanwhile_is_said_when_its_page_is_wanted() -> None:
    rows = Rows(broken_at=20)
    reading = rows.read(a_range(100), limit(60))
    assert [next(reading).next_offset, next(reading).next_offset] == [10, 20]
    with pytest.raises(Unreachable):
        next(reading)


def test_who_stops_reading_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    rows = Rows(broken_at=20)
    reading = rows.read(a_range(100), limit(60))
    next(reading), next(reading)
    reading.close()
    assert threading.active_count() == before
