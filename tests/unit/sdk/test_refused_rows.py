"""What a target refuses of a range is kept in its marker: whatever attempt dies wherever, and whichever ledger comes
back, each record is in the table once or is a dead letter once, and counts say so."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import TooManyRejects
from connect_core.sdk.floors import next_floors
from connect_core.sdk.kits import marker as markers
from connect_core.sdk.kits import transactions
from connect_core.sdk.kits.marker import Marker
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.kits.refused_runs import MAX_RUNS, Runs, mask, with_refused, within, without
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import Prefix
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.testing.memory import Database, MemoryTable
from connect_core.sdk.testing.sinks import SettledState, SimpleCase
from connect_core.sdk.values import Bounds, Floor, OpenRange

RECORDS = 180
"""More than all attempts of a history come to."""
End = Literal["settled", "before receipt", "within"]


class Upsert(MemoryTable):
    takes_late = False


class Case(SimpleCase):
    in_memory = True

    def __init__(self, *, takes_late: bool) -> None:
        self.database, self._sink = Database(), MemoryTable if takes_late else Upsert

    def sink(self) -> MemoryTable:
        return self._sink(self.database)

    def content(self, behind: int = 0) -> list[bytes | None]:
        return self.database.values()[behind:]


@dataclass
class Ledger:
    """Settles what a worker would, record by record; `letters` by number."""

    case: Case
    state: SettledState = field(init=False)
    letters: Counter[int] = field(default_factory=Counter)
    delivered: int = 0
    already: int = 0
    rejected: int = 0

    def __post_init__(self) -> None:
        self.state = SettledState(self.case)

    def attempt(self, end: int, batch: int, ends: End, close: int) -> None:
        """Of a range up to record `end`: it closes behind so many records, or dies before it has a receipt, or within
        its last batch."""
        state, sink = self.state, self.case.sink()
        state.epoch += 1
        item = state.adopted(sink) if state.open else state.planned(sink, end)
        last = min(state.settled + close, item.range.end) if ends == "settled" else item.range.end
        refused: list[int] = []
        with sink.writer(attempt(state.epoch, state.uid), item) as writer:
            writer.on_refused = lambda row, kind, message: refused.append(row.column("offset")[0].as_py())
            reached = already = state.settled
            already = 0
            while reached < last:
                upto = min(reached + batch, last)
                rows = _numbered(reached, upto)
                present = item.known.present(rows.column("offset").to_numpy())
                fresh = rows.filter(pa.array(~present))
                taken = writer.write(fresh, limit())
                stop = upto if taken == len(fresh) else int(fresh.column("offset")[taken].as_py())
                already += int(present[: stop - reached].sum())
                reached = stop
                if taken < len(fresh):
                    break
            if ends == "within":
                return
            delivered = writer.flush(limit())
        if ends == "before receipt":
            return
        assert reached - state.settled == delivered.records + already + len(refused)
        for begin, floor in next_floors(item, delivered, reached, already):
            assert begin == state.floors[floor.target].position
            state.floors[floor.target] = floor
        state.possible_duplicates += item.known.possible_duplicates
        self.letters.update(refused)
        self.delivered, self.already = self.delivered + delivered.records, self.already + already
        self.rejected += len(refused)
        state.settled, state.open = reached, None

    def kept(self) -> tuple[object, ...]:
        return deepcopy((self.state.settled, self.state.floors, self.state.open, self.letters)), (
            self.delivered,
            self.already,
            self.rejected,
        )

    def restored(self, kept: tuple[object, ...]) -> None:
        (settled, floors, open_, letters), counts = deepcopy(kept)
        state = self.state
        state.settled, state.open, self.letters = settled, open_, letters
        floors = floors or {"memory": Floor(state.partition.id, "memory", 0)}
        state.floors = {name: floor._replace(ahead=True) for name, floor in floors.items()}
        self.delivered, self.already, self.rejected = counts


def _numbered(begin: int, end: int) -> pa.RecordBatch:
    return records([b"%d" % number for number in range(begin, end)], begin, key=["k"] * (end - begin))


STEPS = st.one_of(
    st.tuples(
        st.just("attempt"),
        st.integers(1, 12),
        st.integers(1, 9),
        st.sampled_from(["settled", "settled", "before receipt", "within"]),
        st.integers(1, 12),
    ),
    st.tuples(st.just("hate"), st.sets(st.integers(0, 60), max_size=25)),
    st.tuples(st.just("restore"), st.integers(1, 3)),
)


@pytest.mark.parametrize("takes_late", [True, False])
@given(st.lists(STEPS, max_size=14))
def test_each_record_is_in_the_table_or_a_dead_letter_once(takes_late: bool, steps: list[tuple]) -> None:
    ledger, case = _played(steps, takes_late)
    numbers = Counter(int(value) for value in case.content())
    assert numbers + ledger.letters == Counter(range(ledger.state.settled))
    assert ledger.state.possible_duplicates == 0
    assert (ledger.delivered + ledger.already, ledger.rejected) == (len(case.content()), sum(ledger.letters.values()))
    if not takes_late:
        assert [*numbers] == sorted(numbers), "no row is written behind a later one"


@given(st.lists(STEPS.filter(lambda step: step[0] != "restore"), max_size=14))
def test_what_was_settled_is_forgotten_where_there_is_no_room_and_nothing_else(steps: list[tuple]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markers, "MAX_RUNS", 2)
        patch.setattr(transactions, "MAX_RUNS", 2)
        ledger, case = _played(steps, True)
    assert Counter(int(value) for value in case.content()) + ledger.letters == Counter(range(ledger.state.settled))


def _played(steps: list[tuple], takes_late: bool) -> tuple[Ledger, Case]:
    case = Case(takes_late=takes_late)
    ledger = Ledger(case)
    case.database.hated = {b"3", b"4", b"9"}
    backups = [ledger.kept()]
    for name, *given_ in steps:
        if name == "attempt":
            more, batch, ends, close = given_
            ledger.attempt(ledger.state.settled + more, batch, ends, close)
            backups.append(ledger.kept())
        elif name == "hate":
            case.database.hated = {b"%d" % number for number in given_[0]}
        else:
            backups = backups[: -given_[0]] or backups[:1]
            ledger.restored(backups[-1])
    while ledger.state.settled < RECORDS:
        ledger.attempt(RECORDS, 40, "settled", RECORDS)
    [text] = case.database.markers.values() or [None]
    if text:
        assert Marker.decode(text, "").count == len(case.content())
    return ledger, case


REFUSED = b"hated"


def _opened(database: Database, begin: int = 0, *, settled: int = 0, takes_late: bool = True) -> tuple:
    sink = MemoryTable(database) if takes_late else Upsert(database)
    planned = range_of(Partition("all"), Bounds(0, begin, 0, 1_000_000))
    return sink, OpenRange(1, planned, (Floor("all", "memory", settled),))


def _marker(database: Database) -> Marker:
    [text] = database.markers.values()
    return Marker.decode(text, "")


def test_a_range_goes_on_behind_a_refused_row_and_the_marker_says_that_it_is_missing() -> None:
    database, letters = Database(), []
    sink, item = _opened(database)
    with sink.writer(attempt(), item) as writer:
        writer.on_refused = lambda row, kind, message: letters.append((kind, row.column("offset").to_pylist()))
        assert writer.write(records([b"0", REFUSED, b"2", REFUSED], 0), limit()) == 4
        assert _marker(database).refused == ((1, 2),), "the last one comes with the next rows"
        assert writer.write(records([REFUSED, REFUSED], 10), limit()) == 2
        assert writer.flush(limit()).records == 2
    assert (database.values(), letters) == ([b"0", b"2"], [("Hated", [one]) for one in (1, 3, 10, 11)])
    marker = _marker(database)
    assert (marker.refused, marker.position, marker.count) == (((1, 2), (3, 12)), 3, 2)
    assert markers.found(marker, item.range, 0, "memory").prefix == Prefix(3, 2, refused=((1, 2),))


def test_a_record_of_which_one_output_is_refused_is_missing_with_all_of_them() -> None:
    database, letters = Database(), []
    rows = records([b"a", b"b", b"c", REFUSED, b"e"], 0, ordinal=[0, 1, 0, 1, 0], outputs=[2, 2, 2, 2, 1])
    offsets = pa.array([0, 0, 1, 1, 2], pa.int64())
    rows = rows.set_column(rows.schema.get_field_index("offset"), rows.schema.field("offset"), offsets)
    sink, item = _opened(database)
    with sink.writer(attempt(), item) as writer:
        writer.on_refused = lambda row, kind, message: letters.append(row.column("value").to_pylist())
        assert writer.write(rows, limit()) == 5
        writer.flush(limit())
    assert (database.values(), letters) == ([b"a", b"b", b"e"], [[b"c"], [REFUSED]])
    found = markers.found(_marker(database), item.range, 0, "memory")
    ordinals = np.array([0, 1, 0, 1, 0])
    assert found.present(offsets.to_numpy(), ordinals).tolist() == [True, True, False, False, True]


def test_a_row_that_could_replace_a_newer_one_is_refused_again() -> None:
    database, letters = Database(), []
    sink, item = _opened(database, takes_late=False)
    with sink.writer(attempt(1), item) as writer:
        writer.on_refused = lambda *_: None
        writer.write(records([b"0", REFUSED, b"2", REFUSED], 0), limit())
        writer.flush(limit())
    database.hated.clear()
    item = replace(item, inherited=True)
    [found] = sink.scan(Scan(attempt(2), (item,), 10.0)).values()
    with sink.writer(attempt(2), replace(item, found=found)) as writer:
        writer.on_refused = lambda row, kind, message: letters.append((kind, row.column("offset").to_pylist()))
        assert writer.write(records([REFUSED], 1), limit()) == 1
        assert writer.write(records([REFUSED], 3), limit()) == 1
        assert writer.flush(limit()).records == 1, "no row stands behind the last one"
    assert (database.values(), letters) == ([b"0", b"2", REFUSED], [("RefusedBefore", [1])])


def test_a_range_without_room_for_what_was_refused_of_it_ends_behind_such_a_row() -> None:
    database = Database()
    values = [value for number in range(MAX_RUNS + 5) for value in (b"%d" % number, REFUSED)]
    sink, item = _opened(database)
    with sink.writer(attempt(1), item) as writer:
        writer.on_refused = lambda *_: None
        assert writer.write(records(values, 0), limit()) == 2 * MAX_RUNS
        assert writer.write(records(values[-10:], 2 * MAX_RUNS), limit()) == 0
        writer.flush(limit())
    assert (len(_marker(database).refused), _marker(database).refused_since) == (MAX_RUNS, 0)
    sink, item = _opened(database, 2 * MAX_RUNS, settled=MAX_RUNS)
    with sink.writer(attempt(2), item) as writer:
        writer.on_refused = lambda *_: None
        assert writer.write(records(values[-10:], 2 * MAX_RUNS), limit()) == 10
        writer.flush(limit())
    marker = _marker(database)
    assert (marker.refused[0], len(marker.refused)) == ((11, 12), MAX_RUNS)
    assert marker.refused_since == 10, "the oldest are forgotten, and it says so"


def test_a_range_ends_before_a_refused_row_that_is_not_tolerated() -> None:
    """So that the dead letters before it are settled. With nothing before it there is no receipt."""
    database, told = Database(), list[int]()

    def one_alone(row: pa.RecordBatch, kind: str, message: str) -> None:
        if told:
            raise TooManyRejects("One is tolerated")
        told.append(row.column("offset")[0].as_py())

    sink, item = _opened(database)
    with sink.writer(attempt(1), item) as writer:
        writer.on_refused = one_alone
        assert writer.write(records([b"0", REFUSED, b"2", REFUSED, b"4"], 0), limit()) == 3
        assert writer.write(records([b"4"], 4), limit()) == 0
        assert writer.flush(limit()).records == 2
    sink, item = _opened(database, 3, settled=2)
    with sink.writer(attempt(2), item) as writer:
        writer.on_refused = one_alone
        with pytest.raises(TooManyRejects):
            writer.write(records([REFUSED, b"4"], 3), limit())
    assert (database.values(), told) == ([b"0", b"2"], [1])


def test_a_table_that_says_it_refuses_some_and_then_takes_each_has_all_of_them() -> None:
    class Moody(Database):
        moods = 1

    database = Moody()
    sink, item = _opened(database)
    with sink.writer(attempt(1), item) as writer:
        connection = vars(writer)["_connection"]
        put = connection.write

        def moody(rows: pa.RecordBatch) -> None:
            database.moods -= 1
            if database.moods == 0:
                raise RowsRefused("Busy", "Not now")
            put(rows)

        connection.write = moody
        writer.write(records([b"0", b"1", b"2"], 0), limit())
        assert writer.flush(limit()).records == 3


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=30))
def test_stretches_have_what_was_refused_and_nothing_that_is_there(steps: list[tuple[int, bool]]) -> None:
    """In the order in which a range goes, with offsets that do not adjoin."""
    runs: Runs = ()
    position, refused, there = 0, set[int](), set[int]()
    for offset, taken in sorted({offset * 7: taken for offset, taken in steps}.items()):
        if taken:
            runs, position = without(runs, offset, offset + 1), offset + 1
            there.add(offset)
        else:
            runs = with_refused(runs, offset, position)
            refused.add(offset)
    assert {*runs} == {*sorted(runs)}
    offsets = np.array(sorted(refused | there), dtype=np.int64)
    assert [int(one) for one in offsets[mask(runs, offsets)]] == sorted(refused)
    assert within(runs, 0, 10**6) == runs
