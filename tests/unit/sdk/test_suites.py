"""The contract suites notice a system that is wrong in one thing: each is a system in memory with one fault."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from connect_core.errors import ContractBroken, Unreachable, WaybillError
from connect_core.sdk.kits.keyed import AGAIN, STORED, Answer
from connect_core.sdk.kits.log_connection import LogEntry, LogSlice, StoredAt
from connect_core.sdk.kits.log_source import Fetched
from connect_core.sdk.kits.polled import Polled
from connect_core.sdk.records import Record
from connect_core.sdk.testing.content import records_of
from connect_core.sdk.testing.failing import Failing
from connect_core.sdk.testing.keyed_sinks import KeyedContract
from connect_core.sdk.testing.kits import ChangedCase, SimpleContract, TransactionContract
from connect_core.sdk.testing.log_sinks import LogSinkContract
from connect_core.sdk.testing.log_sources import LogSourceContract
from connect_core.sdk.testing.memory import MemoryIndex, MemoryPages
from connect_core.sdk.testing.memory_log import Journal
from connect_core.sdk.testing.memory_sources import MemoryInbox, MemorySourceLog
from connect_core.sdk.testing.received import ReceivedContract
from connect_core.sdk.testing.sources import SourceContract
from connect_core.sdk.testing.steps import CodeStep, Death, Steps, spread
from connect_core.sdk.values import OPEN_END, Json, Range
from tests.contract.systems.test_kits import Box, Pages, Records, Shelf, Table
from tests.contract.systems.test_source_kits import Inbox, SparseLog

RED = (AssertionError, WaybillError, pytest.fail.Exception)


def notices(suite: type, test: str, case: Any, *given: Any) -> None:
    """And says so by itself: the timeout of a test is a failure, too."""
    with pytest.raises(RED) as noticed:
        getattr(suite(), test)(case, *given)
    assert "Timeout" not in str(noticed.value)


def changed(case: Any, fault: Callable[[Any], Any]) -> Any:
    """The case, with a connection that has this fault."""
    return ChangedCase(case, fault)


class Faulty:
    """A connection that does what `connection` does, but for what is overridden."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


@pytest.mark.parametrize(
    ("suite", "case"),
    [(TransactionContract, Table), (SimpleContract, Box), (LogSinkContract, lambda: Records(Journal()))],
)
def test_what_makes_them_faulty_is_no_fault_by_itself(suite: Any, case: Callable[[], Any]) -> None:
    suite().test_a_process_that_dies_between_any_two_steps_loses_nothing(changed(case(), Faulty))
    suite().test_an_error_of_any_call_is_not_taken_for_success(changed(case(), Faulty), True)
    suite().test_thousands_of_rows_are_written_and_found_at_once(changed(case(), Faulty))
    same = changed(Table(), altering(lambda record: record))
    TransactionContract().test_keys_and_headers_are_kept_where_the_case_shows_them(same, "repeated header")


def test_attributes_of_a_connection_that_are_no_methods_are_passed_through() -> None:
    connection = Faulty(None)
    failing = Failing(9, Unreachable("lost"), after=False).connection(connection)
    assert failing.connection is Steps(None, Death).connection(connection).connection is None


def test_a_target_that_refuses_nothing_is_no_failure() -> None:
    class Takes(Table):
        refused = None

    with pytest.raises(pytest.skip.Exception):
        TransactionContract().test_a_refused_row_is_reported_and_the_others_are_there_once(Takes())


# ------------------------------------------------------------------------------------------------------- transactions


class RowsThenMarker(Faulty):
    def commit(self, name: str, marker: str) -> None:
        database = self.connection._database
        database.rows.extend(self.connection._rows)
        database.markers.update({name: marker})
        self.connection.rollback()


class MarkerThenRows(Faulty):
    def commit(self, name: str, marker: str) -> None:
        database = self.connection._database
        database.markers.update({name: marker})
        database.rows.extend(self.connection._rows)
        self.connection.rollback()


@pytest.mark.parametrize("fault", [RowsThenMarker, MarkerThenRows])
def test_rows_and_marker_in_two_transactions(fault: type[Faulty]) -> None:
    notices(
        TransactionContract,
        "test_a_process_that_dies_between_any_two_steps_loses_nothing",
        changed(Table(), fault),
    )


class SwallowsErrors(Faulty):
    def commit(self, name: str, marker: str) -> None:
        try:
            len(name)  # as a call into a library
            self.connection.commit(name, marker)
        except Exception:
            self.connection.rollback()


def test_a_commit_that_failed_and_says_nothing() -> None:
    notices(
        TransactionContract,
        "test_an_error_of_any_call_is_not_taken_for_success",
        changed(Table(), SwallowsErrors),
        False,
    )


class LocksLate(Faulty):
    """Reads the marker, and waits for the lock then."""

    def begin(self, name: str) -> str | None:
        marker: str | None = self.connection._database.markers.get(name)
        self.connection.begin(name)
        return marker


class LocksNothing(Faulty):
    def begin(self, name: str) -> str | None:
        marker: str | None = self.connection._database.markers.get(name)
        return marker


@pytest.mark.parametrize("fault", [LocksLate, LocksNothing])
def test_a_begin_that_keeps_nobody_out(fault: type[Faulty]) -> None:
    notices(TransactionContract, "test_two_attempts_at_once_write_each_row_once", changed(Table(), fault))


class LocksWhatIsThere(Faulty):
    """As `SELECT ... FOR UPDATE` does: where there is no marker yet, nobody is kept out."""

    def begin(self, name: str) -> str | None:
        marker: str | None = self.connection.begin(name) if name in self.connection._database.markers else None
        return marker


def test_a_first_begin_that_keeps_nobody_out() -> None:
    notices(TransactionContract, "test_two_attempts_at_once_begin_once", changed(Table(), LocksWhatIsThere))


class CutsNames(Faulty):
    def begin(self, name: str) -> str | None:
        marker: str | None = self.connection.begin(name[:16])
        return marker

    def commit(self, name: str, marker: str) -> None:
        self.connection.commit(name[:16], marker)


def test_names_of_markers_that_are_cut_short() -> None:
    notices(
        TransactionContract,
        "test_connectors_and_partitions_with_names_alike_do_not_meet",
        changed(Table(), CutsNames),
    )


class WritesHundreds(Faulty):
    def write(self, records: pa.RecordBatch) -> None:
        self.connection.write(records.slice(0, 500))


def test_a_write_that_stores_the_first_hundreds() -> None:
    notices(
        TransactionContract, "test_thousands_of_rows_are_written_and_found_at_once", changed(Table(), WritesHundreds)
    )
    notices(SimpleContract, "test_thousands_of_rows_are_written_and_found_at_once", changed(Box(), WritesHundreds))


def altering(alter: Callable[[Record], Record]) -> Callable[[Any], Any]:
    """Rows of a table are stored as `alter` makes them."""

    class Altering(Faulty):
        def write(self, records: pa.RecordBatch) -> None:
            self.connection.write(records.slice(0, 0))
            self.connection._rows += map(alter, records_of(records))

    return Altering


@pytest.mark.parametrize(
    ("name", "alter"),
    [
        ("null", lambda value: value or b""),
        ("empty", lambda value: value or None),
        ("large", lambda value: value[:255]),
        ("every byte", lambda value: value.decode(errors="replace").encode()),
        ("not text", lambda value: value.decode(errors="ignore").encode()),
        ("blanks", bytes.strip),
        ("line feed", lambda value: value.replace(b"\n", b"")),
        ("carriage return", lambda value: value.replace(b"\r\n", b"\n")),
        ("NUL", lambda value: value.split(b"\0")[0]),
    ],
)
def test_a_value_that_is_altered(name: str, alter: Callable[[bytes | None], bytes | None]) -> None:
    case = changed(Table(), altering(lambda record: record._replace(value=alter(record.value))))
    notices(TransactionContract, "test_a_value_is_kept_as_it_came", case, name)


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("no key", lambda record: record._replace(key=record.key or "")),
        ("empty key", lambda record: record._replace(key=record.key or None)),
        ("key", lambda record: record._replace(key=record.key[:255])),
        ("headers", lambda record: record._replace(headers=())),
        ("repeated header", lambda record: record._replace(headers=tuple(dict(record.headers).items()))),
    ],
)
def test_keys_and_headers_that_are_altered(name: str, without: Callable[[Record], Record]) -> None:
    case = changed(Table(), altering(without))
    notices(TransactionContract, "test_keys_and_headers_are_kept_where_the_case_shows_them", case, name)


def test_what_a_case_declares_is_not_compared_and_has_to_exist() -> None:
    class Strips(Table):
        unkept = frozenset({"blanks"})

    suite = TransactionContract()
    case = changed(Strips(), altering(lambda record: record._replace(value=(record.value or b"").strip())))
    suite.test_a_value_is_kept_as_it_came(case, "blanks")
    Strips.unkept = frozenset({"spaces"})
    notices(TransactionContract, "test_a_value_is_kept_as_it_came", Strips(), "blanks")


# --------------------------------------------------------------------------------------------------------------- keyed


class FaultyShelf(Shelf):
    """Of a faulty index."""

    def __init__(self, index: type[MemoryIndex], *, by_key: bool = False) -> None:
        super().__init__(by_key=by_key)
        self._faulty = index

    def sink(self) -> MemoryIndex:
        return self._faulty(self.index, by_key=self._by_key)


class NoVersions(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        self._index.rows[id_] = (version, value)
        return STORED


class FirstStays(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        self._index.rows.setdefault(id_, (version, value))
        return STORED


class SmallVersions(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        return super()._put(id_, version & 0x7FFFFFFF, value)


class Deletes(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        answer = super()._put(id_, version, value)
        if self._index.rows[id_][1] is None:
            del self._index.rows[id_]
        return answer


class StaleIsBusy(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        return AGAIN if version < self._index.rows.get(id_, (-1, b""))[0] else super()._put(id_, version, value)


class OnlyNewer(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        return STORED if version == self._index.rows.get(id_, (-1, b""))[0] else super()._put(id_, version, value)


class LowerIds(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        return super()._put(id_.lower().strip(), version, value)


class ShortIds(MemoryIndex):
    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        return super()._put(id_[:64], version, value)


@pytest.mark.parametrize(
    ("index", "test", "given"),
    [
        (NoVersions, "test_an_older_version_is_not_stored_over_a_newer_one", (0, 1)),
        (FirstStays, "test_an_older_version_is_not_stored_over_a_newer_one", (0, 1)),
        (SmallVersions, "test_an_older_version_is_not_stored_over_a_newer_one", ((1 << 40) + 9, 3 << 40)),
        (StaleIsBusy, "test_an_older_version_is_not_stored_over_a_newer_one", (0, 1)),
        (OnlyNewer, "test_the_same_version_may_be_stored_again", ()),
        (NoVersions, "test_versions_within_one_put_are_compared", ()),
        (Deletes, "test_an_older_version_is_not_stored_over_a_deletion", ()),
        (LowerIds, "test_ids_that_are_alike_are_others", ()),
        (ShortIds, "test_ids_that_are_alike_are_others", ()),
        (ShortIds, "test_long_names_and_large_numbers_are_kept", ()),
    ],
)
def test_an_index_that_mistakes_versions_or_ids(index: type[MemoryIndex], test: str, given: tuple[int, ...]) -> None:
    notices(KeyedContract, test, FaultyShelf(index), *given)


@pytest.mark.parametrize("index", [NoVersions, FirstStays, SmallVersions])
def test_an_index_by_key_that_mistakes_versions(index: type[MemoryIndex]) -> None:
    case = FaultyShelf(index, by_key=True)
    notices(KeyedContract, "test_a_later_record_of_a_key_takes_the_place_of_an_earlier_one", case)


# ---------------------------------------------------------------------------------------------------------------- logs


class AppendsHundreds(Faulty):
    def append(self, log: str, marks: Sequence[str], records: pa.RecordBatch) -> StoredAt:
        stored: StoredAt = self.connection.append(log, marks[:500], records.slice(0, 500))
        return stored._replace(behind=stored.first + len(records))


class ReadsAThousand(Faulty):
    def read(self, log: str, begin: int, end: int) -> LogSlice:
        here = self.connection._journal.logs[log].records
        return LogSlice([LogEntry(one.position, one.mark) for one in here if begin <= one.position < end][:1000], end)


class CutsMarks(Faulty):
    def append(self, log: str, marks: Sequence[str], records: pa.RecordBatch) -> StoredAt:
        stored: StoredAt = self.connection.append(log, [mark[:40] for mark in marks], records)
        return stored


class ReadsBackwards(Faulty):
    def read(self, log: str, begin: int, end: int) -> LogSlice:
        entries, behind = self.connection.read(log, begin, end)
        return LogSlice(entries[::-1], behind)


class ReadsNothingOnErrors(Faulty):
    def read(self, log: str, begin: int, end: int) -> LogSlice:
        try:
            len(log)  # as a call into a library
            read: LogSlice = self.connection.read(log, begin, end)
        except Exception:
            return LogSlice([], end)
        return read


READING = "test_what_is_read_is_each_record_once_in_order_with_its_mark"


@pytest.mark.parametrize(
    ("fault", "test", "given"),
    [
        (AppendsHundreds, "test_thousands_of_rows_are_written_and_found_at_once", ()),
        (ReadsAThousand, "test_thousands_of_rows_are_written_and_found_at_once", ()),
        (ReadsAThousand, READING, ()),
        (CutsMarks, "test_long_names_and_large_numbers_are_kept", ()),
        (CutsMarks, READING, ()),
        (ReadsBackwards, READING, ()),
        (ReadsNothingOnErrors, "test_an_error_of_any_call_is_not_taken_for_success", (True,)),
    ],
)
def test_a_log_that_loses_or_mistakes_records(fault: type[Faulty], test: str, given: tuple[bool, ...]) -> None:
    notices(LogSinkContract, test, changed(Records(Journal()), fault), *given)


# ------------------------------------------------------------------------------------------------------------- sources


class FaultyLog(SparseLog):
    """`fault` makes the source."""

    def __init__(self, fault: type[MemorySourceLog]) -> None:
        super().__init__(page=500)
        self._fault = fault

    def source(self) -> MemorySourceLog:
        return self._fault(self.server, sparse=self.sparse)


class DropsTheLastOfAPage(MemorySourceLog):
    def fetch(self, log: str, begin: int, end: int) -> Fetched:
        found, behind = super().fetch(log, begin, end)
        return Fetched(found[:-1] if len(found) == 500 else found, behind)


class ForgetsLogs(MemorySourceLog):
    def logs(self, known: Sequence[str]) -> Sequence[str]:
        return ["log"] if self._server.values else []


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        (DropsTheLastOfAPage, "test_thousands_are_read_once_and_in_order"),
        (ForgetsLogs, "test_a_known_log_is_there_also_when_it_is_not"),
    ],
)
def test_a_source_that_loses_records_or_logs(fault: type[MemorySourceLog], test: str) -> None:
    notices(LogSourceContract, test, FaultyLog(fault))


class PagesThatFail(Pages):
    """The source says that there is nothing when it cannot look."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False

    def break_(self) -> None:
        self.away = True

    def source(self) -> MemoryPages:
        return NothingOnErrors(self)


class NothingOnErrors(MemoryPages):
    def __init__(self, case: PagesThatFail) -> None:
        super().__init__(case.values)
        self._case = case

    def poll(self, name: str, checkpoint: Json) -> Polled:
        try:
            len(name)  # as a call into a library
        except Exception:
            return Polled([], checkpoint)
        return Polled([], checkpoint) if self._case.away else super().poll(name, checkpoint)


def planned(case: Any) -> Any:
    return SourceContract.wanted.__wrapped__(SourceContract(), case)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "test", ["test_a_source_that_does_not_answer_is_an_error", "test_a_look_that_failed_is_not_taken_for_the_end"]
)
def test_a_source_that_says_nothing_instead_of_an_error(test: str) -> None:
    case = PagesThatFail()
    notices(SourceContract, test, case, planned(case))


class EndsForGood(MemoryPages):
    """It asks no more once nothing came."""

    ended = False

    def poll(self, name: str, checkpoint: Json) -> Polled:
        polled = Polled([], checkpoint) if self.ended else super().poll(name, checkpoint)
        self.ended = not polled.records
        return polled


def test_a_source_that_is_of_no_use_for_a_second_range() -> None:
    class Case(Pages):
        def source(self) -> MemoryPages:
            return EndsForGood(self.values)

    case, test = Case(), "test_what_follows_a_live_range_goes_on_behind_any_place"
    live = replace(planned(case), end=OPEN_END)
    notices(SourceContract, test, case, live, True)


def test_a_checkpoint_that_is_one_too_low_is_told_by_its_name() -> None:
    class TooLow(MemoryPages):
        def poll(self, name: str, checkpoint: Json) -> Polled:
            records = super().poll(name, checkpoint).records
            return Polled(records, {"next": checkpoint.get("next", 0) + max(len(records) - 1, 0)})

    class Case(Pages):
        def source(self) -> MemoryPages:
            return TooLow(self.values)

    with pytest.raises(ContractBroken, match="checkpoint of TooLow"):
        planned(Case())


def test_a_source_that_sees_nothing_is_told_at_once() -> None:
    class Case(Pages):
        def source(self) -> MemoryPages:
            return MemoryPages([])

    with pytest.raises(AssertionError, match="sees none of them"):
        planned(Case())


@pytest.mark.parametrize("test", ["expire", "recreate", "commit_as_others"])
def test_what_a_case_cannot_do_is_skipped_with_the_name_of_its_method(test: str) -> None:
    method = getattr(Box(), test)
    with pytest.raises(pytest.skip.Exception, match=test):
        method(*([3] if test == "expire" else []))


def test_a_checkpoint_that_is_not_kept_as_it_is() -> None:
    class Tuples(MemoryPages):
        def poll(self, name: str, checkpoint: Json) -> Polled:
            polled = super().poll(name, {"next": checkpoint.get("next", [0])[0]})
            return polled._replace(checkpoint={"next": (polled.checkpoint["next"],)})

    class Case(Pages):
        def source(self) -> MemoryPages:
            return Tuples(self.values)

    case = Case()
    notices(SourceContract, "test_evidence_can_be_stored", case, planned(case))


class ContentForKeys(MemoryInbox):
    """It says that no two messages have the same key."""

    def connect(self, name: str) -> Any:
        return MemoryInbox(self._server, unique=False).connect(name)


@pytest.mark.parametrize("tells", [True, False])
def test_equal_messages_that_are_taken_for_one(tells: bool) -> None:
    class Case(Inbox):
        def source(self) -> MemoryInbox:
            return ContentForKeys(self.server)

    notices(ReceivedContract, "test_equal_messages_are_messages_of_their_own", Case(), tells)


class EvidenceOfAll(MemoryInbox):
    """It says of what came that it is written, whatever was taken of it."""

    def evidence(self, wanted: Range, end: int) -> Json:
        return super().evidence(wanted, OPEN_END)


def test_the_rest_of_a_batch_that_is_taken_for_written() -> None:
    class Case(Inbox):
        def source(self) -> MemoryInbox:
            return EvidenceOfAll(self.server)

    notices(ReceivedContract, "test_a_range_that_ends_before_what_came_is_gone_on_from_there", Case(), False, True)


# --------------------------------------------------------------------------------------------------------------- steps


def test_steps_are_those_of_the_author_and_a_former_profiler_comes_back() -> None:
    seen: list[str] = []

    def profiler(frame: Any, event: str, argument: Any) -> None:
        seen.append(event)

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        steps = Steps(None, Death)
        with steps.watched():
            len("nobody's")
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert steps.passed == []


def test_steps_are_spread_evenly() -> None:
    code = notices.__code__
    steps = [CodeStep("call", code, at, None, 0, 1) for at in range(1_000)]
    assert spread(steps[:3] * 2, 10) == steps[:3]
    assert [step.at for step in spread(steps, 4)] == [0, 250, 500, 750]
    assert spread([], 4) == []
