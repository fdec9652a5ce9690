"""What authors return by mistake is a typed error that names their method, and nothing goes on with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from connect_core import clock
from connect_core.errors import ContractBroken
from connect_core.sdk.kits.keyed import STORED
from connect_core.sdk.kits.log_connection import slices
from connect_core.sdk.kits.polled import Polled
from connect_core.sdk.records import Partition, Record
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.testing.memory import Database, Index, MemoryBox, MemoryIndex, MemoryPages, MemoryTable
from connect_core.sdk.testing.memory_log import Journal, MemoryLog
from connect_core.sdk.values import Bounds, Json, OpenRange, Position

ALL = Partition("all")


def open_range(sink: Sink) -> OpenRange:
    planned = range_of(ALL, Bounds(0, 0, 0, 10), pins=sink.targets(0, [], {"": 1}).pins)
    return OpenRange(1, planned, sink.floors(planned, []))


class Pages(MemoryPages):
    def __init__(self, answer: Any) -> None:
        super().__init__([])
        self.answer = answer

    def poll(self, name: str, checkpoint: Json) -> Polled:
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "The answer of Pages.poll must be a Polled, and is None"),
        (([], {}), "The answer of Pages.poll must be a Polled, and is a tuple"),
        (Polled(iter([]), {}), "the records of Pages.poll must be a Sequence"),  # type: ignore[arg-type]
        (Polled([], None), "The checkpoint of Pages.poll must be a dict, and is None"),  # type: ignore[arg-type]
        (Polled([], {"at": datetime(2026, 1, 1)}), "The checkpoint of Pages.poll cannot be stored as JSON"),
        (Polled([], {"at": float("nan")}), "cannot be stored as JSON"),
        (
            Polled([Record(b"a")], {}),
            "The checkpoint of Pages.poll must move, and 1 records came with the one that it was asked with",
        ),
    ],
)
def test_a_poll_gives_records_and_a_checkpoint_that_moves(answer: Any, words: str) -> None:
    failure = Pages(answer).available_offsets({ALL: None})[ALL].failure
    assert failure is not None
    assert (failure.kind, failure.family) == ("ContractBroken", "ContractBroken")
    assert words in failure.what


def test_a_poll_without_records_may_keep_its_checkpoint() -> None:
    assert Pages(Polled([], {})).available_offsets({ALL: None})[ALL].end == 0


class Altering(MemoryPages):
    """Its author takes the checkpoint apart, and fills the one that was given, and one list, again and again."""

    def poll(self, name: str, checkpoint: Json) -> Polled:
        first = int(checkpoint.pop("next", 0))
        checkpoint["next"] = min(first + 2, len(self._values))
        self.page: list[Record] = getattr(self, "page", [])
        self.page[:] = [Record(value) for value in self._values[first : first + 2]]
        return Polled(self.page, checkpoint)


def test_a_checkpoint_or_a_list_that_an_author_alters_moves_no_position() -> None:
    values = [b"%d" % number for number in range(5)]
    first = Altering(values)
    seen = first.available_offsets({ALL: None})[ALL]
    assert (seen.begin, seen.end) == (0, 5)
    read = [
        one for batch in first.read(range_of(ALL, seen), limit()) for one in batch.records.column("value").to_pylist()
    ]
    assert read == values
    evidence = first.evidence(range_of(ALL, seen), 5)
    more = Altering([*values, b"5", b"6"])
    known = Position(0, 5, evidence)
    for _ in range(2):
        again = more.available_offsets({ALL: known})[ALL]
        assert (known.evidence, again.end) == (evidence, 7)
    planned = range_of(ALL, replace(again, begin=5))
    read = [one for batch in more.read(planned, limit()) for one in batch.records.column("value").to_pylist()]
    assert read == [b"5", b"6"]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (None, "The answer of Connection.put must be a Sequence, and is None"),
        ([STORED], "Connection.put must have one value for each of 2 rows, and has 1"),
        ([STORED, True], "Each value of the answer of Connection.put must be an Answer, and is a bool"),
    ],
)
def test_a_put_answers_each_row(answers: Any, words: str) -> None:
    class Connection:
        def put(self, *_: object) -> Any:
            return answers

    class Answering(MemoryIndex):
        def connect(self) -> Any:
            return nullcontext(Connection())

    sink = Answering(Index())
    with sink.writer(attempt(1), open_range(sink)) as writer, pytest.raises(ContractBroken, match=words):
        writer.write(records([b"a", b"b"]), limit())


class Lazy(MemoryBox):
    def write(self, records: Any) -> Any:
        yield super().write(records)


class Unsure(MemoryBox):
    def write(self, records: Any) -> Any:
        return False


@pytest.mark.parametrize(("box", "answer"), [(Lazy, "a generator"), (Unsure, "a bool")])
def test_a_write_returns_nothing(box: type[MemoryBox], answer: str) -> None:
    sink = box([])
    words = f"{box.__name__}.write must return None, and returns {answer}"
    with sink.writer(attempt(1), open_range(sink)) as writer, pytest.raises(ContractBroken, match=words):
        writer.write(records([b"a"]), limit())


@pytest.mark.parametrize("name", ["write", "commit"])
def test_a_transaction_returns_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = MemoryTable(Database())
    with sink.writer(attempt(1), open_range(sink)) as writer, sink.connect() as transaction:
        monkeypatch.setattr(type(transaction), name, lambda *_: iter(()))
        with pytest.raises(ContractBroken, match=f"Transaction.{name} must return None"):
            writer.write(records([b"a"]), limit())


class Broken(MemoryLog.Connection):
    def append(self, log: str, marks: Sequence[str], records: Any) -> Any:
        return 7

    def read(self, log: str, begin: int, end: int) -> Any:
        return [1]


class BrokenLog(MemoryLog):
    def connect(self) -> Any:
        return nullcontext(Broken(self._journal))


def test_an_append_says_where_its_batch_is() -> None:
    sink = BrokenLog(Journal())
    planned = open_range(sink)
    words = "The answer of Broken.append must be a StoredAt, and is an int"
    with sink.writer(attempt(1), planned) as writer, pytest.raises(ContractBroken, match=words):
        writer.write(records([b"a"]), limit())


def test_a_read_gives_a_slice() -> None:
    words = "The answer of Broken.read must be a LogSlice, and is a list"
    with pytest.raises(ContractBroken, match=words):
        next(slices(Broken(Journal()), "log", 0, 1, clock.monotonic() + 10))
