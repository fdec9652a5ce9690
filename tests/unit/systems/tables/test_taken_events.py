"""Events between the stream and a batch."""

from __future__ import annotations

import pytest

from connect_core.systems.tables import taken_events
from connect_core.systems.tables.change_events import Event
from connect_core.systems.tables.taken_events import TakenEvents


def taken(*numbers: int, first: int = 0) -> TakenEvents:
    made = TakenEvents(first)
    for number in numbers:
        made.add(number, Event("t", None, b"%d" % number, 0))
    return made


def test_what_is_cut_off_is_no_longer_there() -> None:
    events = taken(0, 1, 3, 4)
    events.left_out += [2, 5]
    batch = events.cut(4)
    assert batch.records.column("offset").to_pylist() == [0, 1, 3]
    assert (batch.next_offset, tuple(batch.filtered)) == (4, (2,))
    assert (events.first, events.numbers, events.left_out, events.size) == (4, [4], [5], 1)


def test_places_without_an_event_are_told() -> None:
    events = taken(12, 20, 40, first=10)
    batch = events.cut(30, has_holes=True)
    assert batch.records.column("offset").to_pylist() == [12, 20]
    assert [*batch.holes] == [(10, 12), (13, 20), (21, 30)]


def test_those_from_a_place_on_are_forgotten() -> None:
    events = taken(7, 8, 9)
    events.forget(8)
    assert (events.numbers, events.size, len(events.events)) == ([7], 1, 1)


def test_a_batch_is_full_by_number_or_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not taken(1, 2).fills_a_batch
    monkeypatch.setattr(taken_events, "MOST_EVENTS", 2)
    assert taken(1, 2).fills_a_batch
    monkeypatch.setattr(taken_events, "MOST_EVENTS", 9)
    monkeypatch.setattr(taken_events, "MOST_BYTES", 2)
    assert taken(1, 2).fills_a_batch
