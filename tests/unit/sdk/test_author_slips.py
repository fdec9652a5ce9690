"""What authors return by mistake is a typed error that names their method, and nothing goes on with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
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
from connect_core.sdk.testing.memory import Index, MemoryIndex, MemoryPages
from connect_core.sdk.testing.memory_log import Journal, MemoryLog
from connect_core.sdk.values import Bounds, Json, OpenRange

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
