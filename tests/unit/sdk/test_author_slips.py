"""What authors return by mistake is a typed error that names their method, and nothing goes on with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from connect_core import clock
from connect_core.errors import ContractBroken, Failure
from connect_core.sdk.kits.keyed import STORED
from connect_core.sdk.kits.log_connection import slices
from connect_core.sdk.kits.log_source import Ends, Fetched
from connect_core.sdk.kits.polled import Polled
from connect_core.sdk.records import Partition, Record
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.testing.memory import Database, Index, MemoryBox, MemoryIndex, MemoryPages, MemoryTable
from connect_core.sdk.testing.memory_lake import Lake, MemoryLake
from connect_core.sdk.testing.memory_log import Journal, MemoryLog
from connect_core.sdk.testing.memory_sources import LogServer, MemorySourceLog
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


class Reusing(MemoryLake):
    """Its author fills one dictionary again and again."""

    @contextmanager
    def connect(self) -> Iterator[MemoryLake.Connection]:
        yield Reusing.Connection(self._lake)

    class Connection(MemoryLake.Connection):
        def stage(self, records: Any) -> Json:
            self.staged: Json = getattr(self, "staged", {})
            self.staged.update(super().stage(records))
            return self.staged


def test_what_was_staged_stays_what_it_was() -> None:
    lake = Lake()
    sink = Reusing(lake)
    with sink.writer(attempt(1), open_range(sink)) as writer:
        writer.write(records([b"a", b"b"]), limit())
        writer.write(records([b"c"], 2), limit())
        writer.flush(limit())
    assert lake.rows() == [b"a", b"b", b"c"]


class Lazy(MemoryBox):
    def write(self, *given: Any) -> Any:
        yield super().write(*given)


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
        monkeypatch.setattr(type(transaction), name, vars(Lazy)["write"])
        with pytest.raises(ContractBroken, match=r"_Transaction\.write must return None"):
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


class Log(MemorySourceLog):
    """Of ten records, with one answer that is given."""

    def __init__(self, **answers: Any) -> None:
        server = LogServer()
        server.append([b"%d" % number for number in range(10)])
        super().__init__(server)
        self.answers = answers

    def ends(self, log: str) -> Any:
        return self.answers["ends"] if "ends" in self.answers else super().ends(log)

    def fetch(self, log: str, begin: int, end: int) -> Any:
        return self.answers["fetch"] if "fetch" in self.answers else super().fetch(log, begin, end)


def is_broken(source: Log, words: str) -> None:
    """No plan and no range goes on with the answer; the other logs go on."""
    planned = range_of(ALL, Bounds(0, 2, 0, 8))
    [(_, followed)] = source.follow([planned], limit(), idle_timeout_s=0)
    for failure in (source.available_offsets({ALL: None})[ALL].failure, followed):
        assert isinstance(failure, Failure)
        assert failure.family == "ContractBroken"
        assert words in failure.what
    with pytest.raises(ContractBroken, match=words):
        list(source.read(planned, limit()))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((0, 10), "The answer of Log.ends must be an Ends, and is a tuple"),
        (Ends("0", 10), "The begin of Log.ends must be an int, and is a str"),  # type: ignore[arg-type]
        (Ends(0, None), "The end of Log.ends must be an int, and is None"),  # type: ignore[arg-type]
        (Ends(0, 10, 7), "The name of Log.ends must be a str, and is an int"),  # type: ignore[arg-type]
        (Ends(11, 10), "The begin of Log.ends must not be behind the end, and they are 11 and 10"),
    ],
)
def test_a_log_says_where_it_begins_and_ends(answer: Any, words: str) -> None:
    is_broken(Log(ends=answer), words)
    source = Log(ends=answer)
    with pytest.raises(ContractBroken, match=words):
        source.partitions([])


A = Record(b"a")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "The answer of Log.fetch must be a Fetched, and is None"),
        (([(2, A)], 3), "The answer of Log.fetch must be a Fetched, and is a tuple"),
        (Fetched(iter([(2, A)]), 3), "What has the records of Log.fetch must be a Sequence"),  # type: ignore[arg-type]
        (Fetched([], None), "The next offset of Log.fetch must be an int, and is None"),  # type: ignore[arg-type]
        (Fetched([A], 3), "Each record of Log.fetch must be a tuple of its offset"),  # type: ignore[list-item]
        (Fetched([("2", A)], 3), "Each record of Log.fetch must be a tuple of its offset"),  # type: ignore[list-item]
        (Fetched([(2, b"a")], 3), "Each record of Log.fetch must be a tuple of its offset"),  # type: ignore[list-item]
        (Fetched([(3, A), (2, A)], 4), "The offsets of Log.fetch must ascend"),
        (Fetched([(2, A), (2, A)], 4), "The offsets of Log.fetch must ascend"),
        (Fetched([(-1, A)], 3), "The offsets of Log.fetch must be from "),
        (Fetched([(10, A)], 11), "The offsets of Log.fetch must be from "),
        (Fetched([], -1), "The next offset of Log.fetch must be at least "),
    ],
)
def test_a_fetch_brings_what_was_asked_for_in_order(answer: Any, words: str) -> None:
    is_broken(Log(fetch=answer), words)


def test_a_fetch_continues_behind_its_records() -> None:
    words = "The next offset of Log.fetch must be at least 3, behind its records, and is 2"
    planned = range_of(ALL, Bounds(0, 2, 0, 8))
    with pytest.raises(ContractBroken, match=words):
        list(Log(fetch=Fetched([(2, A)], 2)).read(planned, limit()))


def test_a_log_that_has_nothing_yet_and_a_fetch_that_goes_behind_its_end_are_well() -> None:
    """A server may know more of its log than was asked for."""
    assert Log(ends=Ends(10, 10)).available_offsets({ALL: None})[ALL].failure is None
    assert Log(ends=None).available_offsets({ALL: None})[ALL].failure is None
    [batch] = Log(fetch=Fetched([(at, A) for at in range(2, 8)], 9)).read(range_of(ALL, Bounds(0, 2, 0, 8)), limit())
    assert batch.next_offset == 8
