"""What a sink that is made with a kit promises beyond the contract of every sink: inherit the suite of your kit.

A sink is killed by making its connection fail, before or after any of its calls has done its work, and between any two
steps of its own code (`steps`). That is an exception, which is quick, and lets the author's `finally` run. At some of
the steps a process is killed that was made for it (`deaths`).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from connect_core.errors import Fenced, TargetChanged, Unreachable, WaybillError
from connect_core.sdk.kits.transactions import Listing
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Remembering, RowsKept, Scan, Sink, Writer
from connect_core.sdk.testing.deaths import left_by_a_dead_process
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.testing.failing import Failing
from connect_core.sdk.testing.refused_rows import RefusedRowsContract
from connect_core.sdk.testing.sink_content import ContentCase, ContentContract, deliver
from connect_core.sdk.testing.sinks import PARTITION, SettledState, SinkCase, SinkContract, in_order, numbers
from connect_core.sdk.testing.steps import CodeStep, Death, Steps, leaving_files_open, spread
from connect_core.sdk.values import LIVE, Bounds, Floor, OpenRange, Position

ROWS = 40
_STANDSTILL_S = 0.3
"""Of an attempt that is taken over: long enough for its successor to get as far as it can."""
ALIKE = Partition("partition 70450"), Partition("partition 1210386")
"""Their ids begin with the same ten digits."""


def _same(sink: Sink) -> Sink:
    return sink


class ChangedCase:
    """A case whose sinks get other connections than it has: `changed` is called with each; `built` with each sink."""

    def __init__(self, case: SinkCase, changed: Callable[[Any], Any], built: Callable[[Sink], Sink] = _same) -> None:
        self._case, self._changed, self._built = case, changed, built
        self.repeats = case.repeats

    def __getattr__(self, name: str) -> Any:
        return getattr(self._case, name)

    def sink(self) -> Sink:
        sink: Any = self._built(self._case.sink())
        connect = sink.connect

        @contextmanager
        def connecting() -> Iterator[Any]:
            with connect() as connection:
                yield self._changed(connection)

        sink.connect = connecting
        return sink  # type: ignore[no-any-return]


@contextmanager
def saying(what: str) -> Iterator[None]:
    """Whatever fails within says what was done to the sink before."""
    try:
        yield
    except BaseException as error:
        error.add_note(what)
        raise


def dying(calls: int, *, after: bool) -> Callable[[Any], Any]:
    """For a `ChangedCase`: each connection is lost at one of its calls."""
    lost = Unreachable("The connection was lost")
    return lambda connection: Failing(calls, lost, after=after).connection(connection)


class KitContract(SinkContract, ContentContract):
    """What the suites of all kits have in common."""

    calls = 8
    """So many calls of a connection are made to fail, one after the other."""
    steps = 200
    """At the most so many steps of the author's code are interrupted, one after the other. Each costs three attempts:
    fewer will do where an attempt takes long."""
    deaths = 50
    """At the most at so many places of the author's code a process is killed. Each costs a process and an attempt."""

    @pytest.mark.parametrize("after", [False, True])
    def test_an_attempt_that_dies_at_any_call_loses_nothing(self, target: ContentCase, after: bool) -> None:
        for calls in range(self.calls):
            before, ledger = target.count(), SettledState(target)
            ledger.attempt(5, settle_at=5)
            ledger.system = ChangedCase(target, dying(calls, after=after))
            with suppress(Unreachable):
                ledger.attempt(ROWS, settle_at=None)
            ledger.system = target
            ledger.attempt(ROWS, settle_at=ROWS)
            assert in_order(self.there(target, before)) == numbers(ROWS)

    @leaving_files_open
    def test_a_process_that_dies_between_any_two_steps_loses_nothing(self, target: ContentCase) -> None:
        """Also within a method: after the rows are durable and before the marker is, or the other way round."""
        for at in spread(self._dies(target), self.steps):
            self._dies(target, at)

    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # the threads of the parent hold nothing of ours
    @leaving_files_open
    def test_a_process_that_is_killed_loses_nothing(self, target: ContentCase) -> None:
        """Its `finally` does not run, and what it has not flushed is lost; its locks are free, and its files closed."""
        if target.in_memory:
            pytest.skip("the target is in the memory of this process: no other one can leave anything there")
        for at in spread(self._places(target), self.deaths):
            self._is_killed(target, at)

    @leaving_files_open
    @pytest.mark.parametrize("written", [False, True])
    def test_an_error_of_any_call_is_not_taken_for_success(self, target: ContentCase, written: bool) -> None:
        """A commit that failed is none, and a look that failed has seen nothing."""
        for at in spread(self._fails(target, written), self.steps):
            self._fails(target, written, at)

    def _dies(self, target: ContentCase, at: CodeStep | None = None) -> list[CodeStep]:
        """Two attempts that die at this step, each, and one that does not; the steps of the two."""
        before, ledger, passed = target.count(), SettledState(target), list[CodeStep]()
        with saying(f"killed at {at or 'no step'}"):
            for _ in range(2):
                steps = Steps(at, Death)
                with suppress(Death):
                    self._attempt(target, ledger, steps)
                passed += steps.passed
            self._ends(target, ledger, before)
        return passed

    def _places(self, target: ContentCase) -> list[CodeStep]:
        """Those of an attempt that writes, each as it is passed last: by then there are rows that can be lost."""
        steps = Steps(None, Death)
        self._attempt(target, SettledState(target), steps)
        return [*{step._replace(time=0): step for step in steps.passed}.values()]

    def _is_killed(self, target: ContentCase, at: CodeStep) -> None:
        """An attempt is killed with its process, and one is not."""
        before, ledger = target.count(), SettledState(target)

        def life(dies: Callable[[], NoReturn]) -> None:
            self._attempt(target, ledger, Steps(at, dies))

        with saying(f"killed with its process at {at}"):
            ledger.take(left_by_a_dead_process(life, ledger.kept))
            self._ends(target, ledger, before)

    def _attempt(self, target: ContentCase, ledger: SettledState, steps: Steps) -> None:
        ledger.system = ChangedCase(target, steps.connection, steps.sink)
        with steps.watched():
            ledger.attempt(5, settle_at=None)

    def _ends(self, target: ContentCase, ledger: SettledState, before: int) -> None:
        ledger.system = target
        ledger.attempt(5, settle_at=5)
        assert in_order(self.there(target, before)) == numbers(5)

    def _fails(self, target: ContentCase, written: bool, at: CodeStep | None = None) -> list[CodeStep]:
        """An attempt in which this call fails; it settles if it does not notice. The calls that it made."""
        before, ledger = target.count(), SettledState(target)
        if written:
            ledger.attempt(5, settle_at=None)
        steps = Steps(at, ConnectionResetError, calls=True)
        ledger.system = ChangedCase(target, steps.connection, steps.sink)
        with suppress(Exception), steps.watched():
            ledger.attempt(5, settle_at=5)
        ledger.system = target
        with saying(f"failed: {at}"):
            if not ledger.settled:
                ledger.attempt(5, settle_at=5)
            assert in_order(self.there(target, before)) == numbers(5)
        return steps.passed


class RefusingContract(KitContract):
    """Of a target that may refuse a row for good, and that tells connectors and partitions apart."""

    def test_a_refused_row_is_reported_and_the_others_are_there_once(self, target: ContentCase) -> None:
        if target.refused is None:
            pytest.skip("the target refuses nothing")
        values = [*numbers(6), target.refused, *[b"%d" % number for number in range(7, 12)]]
        ledger = SettledState(target)
        assert deliver(ledger, ledger.rows_of(values)) == [6]
        assert in_order(target.content()) == [value for value in values if value != target.refused]

    def test_connectors_and_partitions_with_names_alike_do_not_meet(self, target: ContentCase) -> None:
        uid = uuid.uuid4().hex[:11]
        alike = [
            SettledState(target, uid=uid + last, partition=partition, stream=stream)
            for last in "ab"
            for partition in ALIKE
            for stream in (LIVE, "a-backfill-of-monday", "a-backfill-of-tuesday")
        ]
        for end in (10, 20):
            for ledger in alike:
                ledger.attempt(end, settle_at=None)
            for ledger in alike:
                ledger.attempt(end, settle_at=end)
        assert in_order(target.content()) == in_order(numbers(20) * len(alike))


class SimpleContract(KitContract):
    def test_what_may_be_there_twice_is_counted(self, target: ContentCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=None)
        item = ledger.adopted(target.sink())
        with target.sink().writer(attempt(2, ledger.uid), item) as writer:
            writer.write(ledger.rows(0, 10), limit())
            assert writer.flush(limit()).possible_duplicates == 10

    def test_what_a_range_that_closed_short_has_left_is_counted(self, target: ContentCase) -> None:
        """An attempt wrote 10 and died. Of the 7 behind what the next one settles nobody can say that they are new."""
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=None)
        ledger.attempt(10, settle_at=3)
        ledger.attempt(10, settle_at=10)
        assert ledger.possible_duplicates == 10
        ledger.attempt(20, settle_at=20)
        assert ledger.possible_duplicates == 10, "what comes behind that range is new"

    def test_what_a_source_pushes_again_is_counted(self, target: ContentCase) -> None:
        """The range of the attempt that died is closed, and what it wrote comes again in the next one."""
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=None)
        ledger.open = None
        item = replace(ledger.planned(target.sink(), 10), comes_again=True)
        with target.sink().writer(attempt(2, ledger.uid), item) as writer:
            writer.write(ledger.rows(0, 10), limit())
            assert writer.flush(limit()).possible_duplicates == 10


class MarkerContract(RefusingContract):
    places = ("write", "commit")
    """Before each of these calls an attempt is made to stand still while another one takes over."""

    def test_two_attempts_at_once_write_each_row_once(self, target: ContentCase) -> None:
        """A successor begins while an attempt stands still within a transaction. It may wait for that, or fail."""
        for place in self.places:
            before, ledger = target.count(), SettledState(target)
            self._overtaken(target, ledger, place)
            ledger.attempt(5, settle_at=5)
            assert in_order(self.there(target, before)) == numbers(5), f"another attempt came before `{place}`"

    def test_two_attempts_at_once_begin_once(self, target: ContentCase) -> None:
        """Also where there is no marker yet: none that could be locked, and none that the later one could miss."""
        ledger = SettledState(target)
        self._overtaken(target, ledger, "commit", armed=True)
        ledger.attempt(5, settle_at=5)
        assert in_order(self.there(target)) == numbers(5)

    def test_an_attempt_that_was_taken_over_writes_nothing_more(self, target: ContentCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(5, settle_at=5)
        ledger.epoch += 1
        item = ledger.planned(target.sink(), ROWS)
        with target.sink().writer(attempt(ledger.epoch, ledger.uid), item) as late:
            self._write(late, 5, 9)
            ledger.attempt(ROWS, settle_at=ROWS)
            with pytest.raises(Fenced):
                self._write(late, 9, ROWS)
        assert in_order(target.content()) == numbers(ROWS)

    def test_an_attempt_that_was_taken_over_before_it_wrote_writes_nothing(self, target: ContentCase) -> None:
        """The look takes over by itself: from then on what it saw is final."""
        ledger = SettledState(target)
        ledger.epoch += 1
        item = ledger.planned(target.sink(), ROWS)
        with target.sink().writer(attempt(ledger.epoch, ledger.uid), item) as late:
            found = self._scan(target, item, ledger, later=1)
            assert found.there() == 0
            with pytest.raises(Fenced):
                self._write(late, 0, ROWS)
        assert target.count() == 0

    def test_what_an_earlier_attempt_writes_after_a_look_is_not_written_again(self, target: ContentCase) -> None:
        """It was planned before, and begins after: what its successor has seen is true no more."""
        ledger = SettledState(target, epoch=1)
        item = ledger.planned(target.sink(), ROWS)
        ledger.epoch += 1
        looked = ledger.adopted(target.sink())
        with target.sink().writer(attempt(1, ledger.uid), item) as late:
            self._write(late, 0, 5)
        with pytest.raises(Fenced), target.sink().writer(attempt(2, ledger.uid), looked) as writer:
            self._write(writer, 0, ROWS)
        ledger.attempt(ROWS, settle_at=ROWS)
        assert in_order(target.content()) == numbers(ROWS)

    def test_rows_that_the_target_has_lost_stop_the_partition(self, target: ContentCase) -> None:
        """As when it was restored from a backup of before."""
        ledger = SettledState(target)
        ledger.attempt(5, settle_at=5)
        (name, floor) = next(iter(ledger.floors.items()))
        ledger.floors[name] = floor._replace(position=9)
        ledger.epoch += 1
        item = ledger.planned(target.sink(), ROWS)
        assert self._scan(target, item, ledger).failure
        with pytest.raises(TargetChanged), target.sink().writer(attempt(ledger.epoch, ledger.uid), item):
            pass

    def test_rows_that_the_ledger_has_forgotten_are_looked_for(self, target: ContentCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(30, settle_at=30)
        ledger.epoch += 1
        sink = target.sink()
        wanted = range_of(PARTITION, Bounds(0, 0, 0, ROWS), pins=sink.targets(0, (), {}).pins)
        unknown = OpenRange(1, wanted, sink.floors(wanted, ()))
        with pytest.raises(TargetChanged), sink.writer(attempt(ledger.epoch, ledger.uid), unknown):
            pass
        floors = sink.floors(wanted, (), restored=True)
        assert [floor.ahead for floor in floors] == [True]
        assert self._scan(target, OpenRange(1, wanted, floors), ledger).there() == 30

    def test_rows_that_come_again_are_counted_once_whichever_attempt_settles(self, target: ContentCase) -> None:
        """The ledger was restored and knows the file that it reads by another name: what it has forgotten is written
        again. Attempts that have seen that die, and the range is settled in two parts."""
        forgotten = SettledState(target, origin="then")
        for end in (10, 30):
            forgotten.attempt(end, settle_at=end)
        (name, floor) = next(iter(forgotten.floors.items()))
        known = {name: floor._replace(position=10, ahead=True)}
        ledger = replace(forgotten, settled=10, floors=known, origin="now")
        for flushed in (False, True):
            ledger.attempt(25, settle_at=None, flushed=flushed)
        for end in (15, 25, 35):
            ledger.attempt(max(end, 25), settle_at=end)
        assert in_order(target.content()) == in_order([*numbers(30), *numbers(35)[10:]])
        assert ledger.possible_duplicates == 20

    def _overtaken(self, target: ContentCase, ledger: SettledState, place: str, *, armed: bool = False) -> None:
        """An attempt writes five rows and stands still before `place`, where it is `armed` also before it has begun;
        the next one begins, and may get through."""
        ledger.epoch += 1
        item = ledger.planned(target.sink(), 5)
        overtaking = _Overtaking(lambda: ledger.attempt(5, settle_at=None), place)
        overtaking.armed = armed
        sink = ChangedCase(target, overtaking.connection).sink()
        with suppress(WaybillError), sink.writer(attempt(ledger.epoch, ledger.uid), item) as writer:
            overtaking.armed |= not armed
            writer.write(ledger.rows(0, 5), limit())
            writer.flush(limit())
        overtaking.join()

    def _write(self, writer: Writer, begin: int, end: int) -> None:
        values: Sequence[bytes | None] = [b"%d" % number for number in range(begin, end)]
        assert writer.write(records(list(values), begin), limit()) == end - begin
        writer.flush(limit())

    def _scan(self, target: ContentCase, item: OpenRange, ledger: SettledState, later: int = 0) -> ScanResult:
        return target.sink().scan(Scan(attempt(ledger.epoch + later, ledger.uid), (item,), 10.0))[item.id]


class TransactionContract(MarkerContract, RefusedRowsContract):
    def test_what_the_target_has_lost_is_told_also_where_nothing_more_comes(self, target: ContentCase) -> None:
        """Of a connection that lists its markers (`Listing`)."""
        ledger = SettledState(target)
        ledger.attempt(ROWS, settle_at=ROWS)
        sink = target.sink()
        with sink.connect() as connection:  # type: ignore[attr-defined]
            if not isinstance(connection, Listing):
                pytest.skip("its connection lists no markers")
        assert isinstance(sink, Remembering)
        [floor] = ledger.floors.values()
        others = [Floor(f"other-{number}", floor.target, number % 2) for number in range(2_500)]
        assert sink.lacking(ledger.uid, LIVE, [floor]) == {}
        lacking = sink.lacking(ledger.uid, LIVE, [*others, floor._replace(position=floor.position + 1)])
        assert lacking.keys() == {floor.partition_id, *(one.partition_id for one in others if one.position)}
        said = str(lacking[floor.partition_id].failure.as_error())
        assert f"tells of {ROWS:,} rows of this partition, up to offset {ROWS}, and {ROWS + 1:,} were settled" in said

    def test_of_a_partition_without_rows_a_marker_says_that_the_target_is_not_one_of_before(
        self, target: ContentCase
    ) -> None:
        """Whoever is ended before its ledger knows of the marker leaves it again."""
        sink, ledger = target.sink(), SettledState(target)
        assert isinstance(sink, Remembering)
        name, epoch = "placed", ledger.epoch
        sink.targets(0, (), {})
        for _ in range(2):
            [floor] = sink.remember(attempt(epoch, ledger.uid), LIVE, {name: Position(0, 70)})
            assert (floor.partition_id, floor.position, floor.ahead) == (name, 0, False)
        with sink.connect() as connection:  # type: ignore[attr-defined]
            if not isinstance(connection, Listing):
                pytest.skip("its connection lists no markers")
        assert sink.kept(ledger.uid, LIVE, [name, "other"]) == {name: RowsKept(0, 0, 70)}
        assert sink.lacking(ledger.uid, LIVE, [floor]) == {}
        said = sink.lacking(ledger.uid, LIVE, [floor._replace(partition_id="other")])
        assert [(one, lacking.kept, lacking.failure.family) for one, lacking in said.items()] == [
            ("other", None, "RowsLost")
        ]

    def test_rows_that_a_ledger_has_forgotten_are_looked_for_where_it_was_placed(self, target: ContentCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(ROWS, settle_at=ROWS)
        sink, [floor] = target.sink(), ledger.floors.values()
        assert isinstance(sink, Remembering)
        at = {floor.partition_id: Position(0, 0)}
        [again] = sink.remember(attempt(ledger.epoch, ledger.uid), LIVE, at)
        assert (again.position, again.ahead) == (0, True)


class _Overtaking:
    """Lets `other` run in a thread of its own when a connection is about to do `place`, and the connection go on when
    that has ended, or waits for the connection itself."""

    def __init__(self, other: Callable[[], None], place: str) -> None:
        self._other, self._place = other, place
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._errors: list[BaseException] = []
        self.armed = False

    def connection(self, connection: Any) -> Any:
        method = getattr(connection, self._place)

        def later(*values: object) -> object:
            if self.armed:
                self.armed = False
                self._thread.start()
                self._thread.join(_STANDSTILL_S)
            return method(*values)

        setattr(connection, self._place, later)
        return connection

    def join(self) -> None:
        self._thread.join(60)
        for error in self._errors:
            raise error

    def _run(self) -> None:
        try:
            self._other()
        except WaybillError:
            return
        except BaseException as error:
            self._errors.append(error)
