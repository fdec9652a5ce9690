"""Dead letters as a source: numbers are offsets, what is no letter is a hole, names are those of the real source."""

from __future__ import annotations

import pytest

from connect_core.clock import now_ns
from connect_core.pipeline.sealing import letter_cipher
from connect_core.planning.backfill_plan import within
from connect_core.replication.worker import letters
from connect_core.replication.worker.letters import LettersSource, letters_source, opened_letters
from connect_core.sdk.records import Partition
from connect_core.sdk.source import OfFiles, PushSource
from connect_core.sdk.values import Limit, Part, Pins, Position, Range, Reject
from connect_core.work import Letter, LetterKey, LetterPlace, Letters
from tests.unit.replication.memory import MemorySource

QUEUE = Partition("memory")
WANTED = Range("dead-letters-1", QUEUE, 0, 0, 3, 20, 1000, 1 << 20, {}, Pins(1, "", {}, ""))
PLACE = LetterPlace("u", "live", QUEUE.id, 0, 7, 0, "parse")


def limit(seconds: float = 60) -> Limit:
    end = now_ns() + int(seconds * 1e9)
    return Limit(end, end)


def source(*numbers: int, upto: int = 20) -> LettersSource:
    rows = tuple(Letter(number, b"body %d" % number, "t", {"key": "k"}, PLACE) for number in numbers)
    return letters_source(MemorySource([]), {QUEUE.id: Letters(rows, upto)})


def test_every_position_is_a_letter_or_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "LETTERS_AT_ONCE", 2)
    batches = list(source(3, 5, 6, 9).read(WANTED, limit()))
    rows = [row for batch in batches for row in batch.records.to_pylist()]
    assert [(row["offset"], row["value"], row["key"]) for row in rows] == [
        (number, b"body %d" % number, "k") for number in (3, 5, 6, 9)
    ]
    assert [batch.next_offset for batch in batches] == [6, 10, 20]
    assert [batch.holes for batch in batches] == [((4, 5),), ((7, 9),), ((10, 20),)]
    assert sum(len(batch.records) + batch.absent_before(20) for batch in batches) == 17


def test_it_reads_as_far_as_its_lane_brought_letters() -> None:
    assert [batch.next_offset for batch in source(3, upto=4).read(WANTED, limit())] == [4]
    assert [batch.holes for batch in source(upto=20).read(WANTED, limit())] == [((3, 20),)]
    assert list(source(upto=3).read(WANTED, limit())) == []
    assert list(letters_source(MemorySource([])).read(WANTED, limit())) == []


def test_it_ends_with_the_quantum_behind_a_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "LETTERS_AT_ONCE", 2)
    assert [batch.next_offset for batch in source(3, 4, 5).read(WANTED, limit(-1))] == [5]


def test_bounds_end_where_the_part_does_whatever_the_real_source_has() -> None:
    seen = source().available_offsets({QUEUE: Position(0, 7)})[QUEUE]
    left = within(Part(QUEUE, 0, 3, 20), seen)
    assert (left.begin, left.end, left.gaps, left.grows) == (7, 20, (), False)


def test_names_are_those_of_the_real_source() -> None:
    real = MemorySource([])
    assert letters_source(real).topic(QUEUE) == real.topic(QUEUE)
    assert not isinstance(letters_source(real), OfFiles | PushSource)


def test_one_that_does_not_open_is_rejected_at_its_place_and_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "LETTERS_AT_ONCE", 2)
    cipher = letter_cipher("a key of letters")
    sealed = [cipher.sealed(reject(number), PLACE._replace(offset=number)) for number in range(4)]
    rows = [
        Letter(3 + number, one.original, "t", one.attributes, PLACE._replace(offset=number))
        for number, one in enumerate(sealed)
    ]
    rows[1] = rows[1]._replace(value=sealed[2].original)  # that of another one
    monkeypatch.setenv("LETTERS", "a key of letters")
    given = opened_letters({QUEUE.id: Letters(tuple(rows), 20)}, [LetterKey("${env:LETTERS}", cipher.key_id)])
    batches = list(letters_source(MemorySource([]), given).read(WANTED, limit()))
    found = [(row["offset"], row["value"]) for batch in batches for row in batch.records.to_pylist()]
    assert found == [(3, b"body 0"), (5, b"body 2"), (6, b"body 3")]
    [refused] = [one for batch in batches for one in batch.rejects]
    assert (refused.offset, refused.stage, refused.kind, refused.original) == (4, "read", "NotAuthentic", b"")
    assert [batch.next_offset for batch in batches] == [5, 7, 20]


def reject(number: int) -> Reject:
    return Reject(number, 0, "parse", "NotParsed", "no JSON", b"body %d" % number, "t", {})
