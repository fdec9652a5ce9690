"""Random histories of one connector: everything is done to a real ledger and to the plain model, then compared.

Attempts plan, look, settle, let go and die, at any statement of a transaction or at its COMMIT. New attempts take over
and go on with what is open, while the ones before them (zombies) try to go on too. People change document,
assignment and offsets. After each step everything that the ledger tells must be what the model remembers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import event

from connect_core.errors import ConfigError, DataError, Fenced, LeaseHeld
from connect_core.ledger import Lease, LeaseState, Ledger, Wanted, task_lease_id
from connect_core.ledger.tables import RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import LIVE, Floor, FloorMove, Gap, Position, Range, Reject
from connect_core.work import Outcome, Receipt
from tests.contract.ledger.model import FloorPlace, Holding, Model, Opened, Place, Step, document, encoded, pair
from tests.contract.ledger.samples import PINS, Q0, Q1, planned, receipt

STREAMS, PARTITIONS, TARGETS = (LIVE, "backfill-1"), (Q0, Q1), ("copy:0", "copy:1")
PLACES: tuple[Place, ...] = tuple(itertools.product(STREAMS, PARTITIONS))
_MANY = 10_000
_holders = itertools.count(1)
T = TypeVar("T")


class Died(BaseException):
    """Stands for SIGKILL: nothing of ours runs after it."""


@dataclass(frozen=True)
class Attempt:
    """A run of one stream: its lease and its number. `seen` is the lease as it was before this attempt took it."""

    stream: str
    lease: Lease
    version: int
    run_id: str
    seen: LeaseState | None


streams = st.sampled_from(STREAMS)
places = st.sampled_from(PLACES)
several = st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=2, unique=True)
lengths = st.integers(0, 12)
deaths = st.sampled_from([None] * 8 + list(range(8)))
"""Before which statement of a transaction its process dies; mostly it does not. One more than it has: at COMMIT."""
floors = st.lists(
    st.builds(
        Floor, st.sampled_from([Q0.id, Q1.id, ""]), st.sampled_from(TARGETS), lengths, st.booleans(), st.just({"n": 1})
    ),
    max_size=2,
    unique_by=lambda floor: (floor.partition_id, floor.target),  # a plan gives each floor once
)


def counters(ledger: Ledger, uid: str) -> dict[object, float]:
    """What the metrics of a connector count."""
    [one] = [each for each in ledger.figures() if each.uid == uid]
    sums = {(stream, name): value for stream, all_of in one.settled.items() for name, value in all_of.sums.items()}
    return {**sums, **one.letters, "gaps": one.gaps, "done": one.runs.get("done", 0)}


class LedgerMachine(RuleBasedStateMachine):
    """Made by `histories_of` for one ledger; each history has a connector of its own in it."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.attempts: dict[str, Attempt] = {}
        self.dead: set[str] = set()
        self.zombies: list[Attempt] = []
        self.statements_left: int | None = None
        self.unchecked = False
        self.counted: dict[object, float] = {}
        engine = self.ledger._engine
        self.hooks = [("before_cursor_execute", self._statement), ("commit", self._statement)]
        for name, hook in self.hooks:
            event.listen(engine, name, hook)

    @initialize()
    def a_connector_is_made(self) -> None:
        name = f"orders-{next(_holders)}"
        self.name, self.uid = name, self.ledger.apply(name, document(1), who="ann").connector.uid
        self.ledger.assign(self.uid, PARTITIONS, 1)

    # ----------------------------------------------------------------------------------------------- attempts and death

    @rule(stream=streams)
    def a_new_attempt_takes_over(self, stream: str) -> None:
        """From one that works, that died, or that let go; with all that is open, and with the newest assignment."""
        self._end_older_versions(stream)
        lease_id = task_lease_id(self.uid, stream, self.model.version, 0)
        seen = self.ledger.lease(lease_id)
        lease = self._take(lease_id, seen, stream, self.model.version)
        self.model.take(lease, self.model.version)
        if stream in self.attempts:
            self.zombies.append(self.attempts[stream])
        run = self.ledger.begin_run(self.uid, stream, task=0, engine="inline")
        self.attempts[stream] = Attempt(stream, lease, self.model.version, run, seen)
        self.dead.discard(stream)
        inherited = self.model.adopt(stream, lease, run)
        if inherited:
            self.ledger.adopt([lease], run, inherited)

    def _end_older_versions(self, stream: str) -> None:
        """Nobody starts with the new assignment while somebody holds a lease of an older one (delivery rule 11)."""
        wanted = task_lease_id(self.uid, stream, self.model.version, 0)
        for state in self.ledger.live_leases(self.uid, stream):
            assert state.version is not None
            if state.version < self.model.version:
                with pytest.raises(LeaseHeld):
                    self._take(wanted, self.ledger.lease(wanted), stream, self.model.version)
                ended = self._take(state.id, state, stream, state.version)
                self.model.take(ended, state.version)
                self.ledger.release(ended)
                self.model.touch(ended, released=True)

    @rule(stream=streams)
    def a_challenger_that_looked_too_early_gets_nothing(self, stream: str) -> None:
        attempt = self._attempt(stream)
        before_a_sign_of_life = self.ledger.lease(attempt.lease.id)
        self._renew(attempt)
        for seen in (attempt.seen, before_a_sign_of_life):
            with pytest.raises(LeaseHeld):
                self._take(attempt.lease.id, seen, stream, attempt.version)

    def _take(self, lease_id: str, seen: LeaseState | None, stream: str, version: int) -> Lease:
        holder = f"h{next(_holders)}"
        return self.ledger.take(lease_id, seen, holder, uid=self.uid, stream=stream, version=version)

    @rule(stream=streams, how=st.sampled_from(["dies", "lets go", "goes on"]))
    def an_attempt_dies_or_lets_go_or_says_that_it_lives(self, stream: str, how: str) -> None:
        attempt = self._attempt(stream)
        if how == "dies":
            self.dead.add(stream)
        elif how == "lets go":
            self.ledger.release(attempt.lease)
            self.model.touch(attempt.lease, released=True)
            self.zombies.append(self.attempts.pop(stream))
        else:
            self._renew(attempt)

    def _renew(self, attempt: Attempt) -> None:
        self.ledger.renew(attempt.lease, boot_id="boot", deadline_ns=7, ttl_s=1)
        self.model.touch(attempt.lease)

    def _attempt(self, stream: str) -> Attempt:
        """Who works on the stream: the one that did, or a new one when that is dead or gone."""
        if stream in self.dead or stream not in self.attempts:
            self.a_new_attempt_takes_over(stream)
        return self.attempts[stream]

    def _done(self, stream: str, dies: int | None, action: Callable[[], T]) -> T | None:
        """What `action` gives; None when its process died in the middle of it, so that nothing of it may stand."""
        self.statements_left = dies
        try:
            return action()
        except Died:
            self.dead.add(stream)
            return None
        finally:
            self.statements_left = None

    def _statement(self, *_event: object) -> None:
        if self.statements_left is None:
            return
        if self.statements_left == 0:
            raise Died
        self.statements_left -= 1

    # -------------------------------------------------------------------------------------------------- what a run does

    @rule(stream=streams, partitions=several, length=lengths, gap=st.integers(0, 3), given=floors, dies=deaths)
    def plan(
        self, stream: str, partitions: list[Partition], length: int, gap: int, given: list[Floor], dies: int | None
    ) -> None:
        attempt = self._attempt(stream)
        ranges = [self._next(stream, one, length, gap) for one in partitions if (stream, one) not in self.model.open]
        if not ranges:
            return
        given = [self._as_it_stands(stream, floor) if not floor.partition_id else floor for floor in given]
        opened = self._done(
            stream,
            dies,
            lambda: self.ledger.plan([attempt.lease], attempt.run_id, self.uid, 0, ranges, given),
        )
        if opened is not None:
            self.model.plan([one.id for one in opened], ranges, given, attempt.lease, attempt.run_id)
            assert [one.range for one in opened] == ranges

    def _as_it_stands(self, stream: str, floor: Floor) -> Floor:
        """A plan gives a floor that all partitions share as it stands."""
        return self.model.floors.get((stream, floor.partition_id, floor.target), floor)

    def _opened(self, place: Place) -> Opened:
        """The open range of a place; one is planned where there is none."""
        if place not in self.model.open:
            self.plan(place[0], [place[1]], 8, 0, [Floor(place[1].id, TARGETS[0], 5)], None)
        return self.model.open[place]

    def _next(self, stream: str, partition: Partition, length: int, gap: int = 0) -> Range:
        """Where planning goes on: at the committed offset, or behind a gap of known or unknown end, or anew."""
        position = self.model.positions.get((stream, partition), Position(0, 3))
        incarnation, begin, gaps = position.incarnation, position.offset, tuple[Gap, ...]()
        if gap and (stream, partition) in self.model.positions:
            begin, end = (1, None) if gap == 3 else (begin + 2, begin + 2 if gap == 1 else None)
            incarnation += gap == 3
            gaps = (Gap(position.incarnation, position.offset, end, "expired"),)
        pins = replace(PINS, revision=self.model.revision)
        return planned(partition, begin, begin + length, stream=stream, incarnation=incarnation, gaps=gaps, pins=pins)

    @rule(place=places, length=lengths, hole=st.booleans())
    def a_plan_that_leaves_a_hole_or_is_the_second_is_refused_with_all_beside_it(
        self, place: Place, length: int, hole: bool
    ) -> None:
        stream, partition = place
        attempt = self._attempt(stream)
        other = Q0 if partition == Q1 else Q1
        beside = [] if (stream, other) in self.model.open else [self._next(stream, other, length)]
        if hole and place not in self.model.open:
            if place not in self.model.positions:
                return
            wrong = self._next(stream, partition, length)
            self._refused_plan(attempt, [*beside, replace(wrong, begin=wrong.begin + 1, end=wrong.end + 1)])
        else:
            self._opened(place)
            self._refused_plan(self._attempt(stream), [*beside, self._next(stream, partition, length)])

    def _refused_plan(self, attempt: Attempt, ranges: Sequence[Range]) -> None:
        with pytest.raises(DataError):
            self.ledger.plan([attempt.lease], attempt.run_id, self.uid, 0, ranges, [Floor(Q0.id, TARGETS[0], 99)])

    @rule(place=places, position=lengths, complete=st.booleans())
    def look(self, place: Place, position: int, complete: bool) -> None:
        attempt, opened = self._attempt(place[0]), self._opened(place)
        found = (opened.found or ScanResult()).merged([(position, 0, TARGETS[0], 9)], {TARGETS[0]: position}, complete)
        self.ledger.record_found([attempt.lease], {opened.id: found})
        self.model.find(place, found, attempt.lease)

    @rule(
        stream=streams,
        partitions=several,
        reached=lengths,
        rejected=st.booleans(),
        missed=st.booleans(),
        given=floors,
        dies=deaths,
        again=st.booleans(),
    )
    def settle(
        self,
        stream: str,
        partitions: list[Partition],
        reached: int,
        rejected: bool,
        missed: bool,
        given: list[Floor],
        dies: int | None,
        again: bool,
    ) -> None:
        """Anywhere up to the planned end, with what was rejected and what was missing on the way."""
        attempt, receipts = self._attempt(stream), dict[Place, Receipt]()
        for partition in partitions:
            self._opened((stream, partition))
        at = dict(self.model.floors)
        for partition in partitions:
            moves = self._moves((stream, partition), at, given)
            receipts[stream, partition] = self._receipt((stream, partition), reached, rejected, missed, moves)
        outcomes = [Outcome(self.model.open[place].id, made) for place, made in receipts.items()]
        if self._done(stream, dies, lambda: self._settled(attempt, outcomes)):
            self.model.settle(receipts, attempt.lease, attempt.run_id)
            self.unchecked = True
            if again:
                self._settle_again(attempt, outcomes)

    def _moves(self, place: Place, at: dict[FloorPlace, Floor], given: Sequence[Floor]) -> tuple[FloorMove, ...]:
        """What one range moves of the floors that it has, from where the range before it in the lane left them."""
        moves = []
        for floor in {floor.target: floor for floor in given if floor.partition_id in ("", place[1].id)}.values():
            key = (place[0], floor.partition_id, floor.target)
            if key in at:
                after = floor._replace(position=at[key].position + floor.position)
                moves.append(FloorMove(at[key].position, after))
                at[key] = after
        return tuple(moves)

    def _settle_again(self, attempt: Attempt, outcomes: list[Outcome]) -> None:
        """The same changes nothing; another receipt for the same range is refused."""
        self._settled(attempt, outcomes)
        self.model.touch(attempt.lease)
        assert outcomes[0].receipt is not None
        with pytest.raises(DataError, match="another receipt"):
            self._settled(attempt, [replace(outcomes[0], receipt=replace(outcomes[0].receipt, digest_read="other"))])

    def _settled(self, attempt: Attempt, outcomes: Sequence[Outcome]) -> bool:
        self.ledger.settle([attempt.lease], attempt.run_id, self.uid, outcomes)
        return True

    def _receipt(
        self,
        place: Place,
        reached: int,
        rejected: bool = False,
        missed: bool = False,
        given: tuple[FloorMove, ...] = (),
    ) -> Receipt:
        wanted = self.model.open[place].range
        end = min(wanted.begin + reached, wanted.end)
        bad = tuple(
            Reject(n, 0, "decode", "Bad", f"{n}", b"\0") for n in range(wanted.begin, end) if rejected and n % 3
        )
        good = end - wanted.begin - len(bad)
        gaps = (Gap(wanted.incarnation, wanted.begin, wanted.begin + 1, "compacted"),) if missed else ()
        counts = {"rejected": len(bad), "passed": good, "emitted": good, "delivered": good}
        return receipt(wanted.begin, end, floors=given, rejects=bad, gaps=gaps, **counts)

    @rule(place=places, fault=st.sampled_from(["begin", "end", "sum", "floor", "unknown"]))
    def a_receipt_that_does_not_fit_is_refused_with_all_beside_it(self, place: Place, fault: str) -> None:
        attempt, opened = self._attempt(place[0]), self._opened(place)
        good = self._receipt(place, 3)
        bad = {
            "begin": replace(good, begin=good.begin + 1, end=max(good.end, good.begin + 1)),
            "end": replace(good, end=opened.range.end + 1),
            "sum": replace(good, read=good.read + 1),
            "floor": replace(good, floors=self._moved_from_elsewhere(place)),
            "unknown": good,
        }[fault]
        beside = [
            Outcome(one.id, self._receipt(other, 3)) for other, one in self.model.open.items() if other[0] == place[0]
        ]
        number = opened.id + _MANY if fault == "unknown" else opened.id
        with pytest.raises(DataError):
            self._settled(attempt, [*(one for one in beside if one.range_id != number), Outcome(number, bad)])

    def _moved_from_elsewhere(self, place: Place) -> tuple[FloorMove, ...]:
        """From a place that somebody else has moved it away from, or of a target that nobody planned."""
        target = Floor(place[1].id, TARGETS[0], 0)
        stands = self.model.floors.get((place[0], *target[:2]), target._replace(position=-1)).position
        return (FloorMove(stands + 1, target._replace(position=stands + 1)),)

    # ---------------------------------------------------------------------------------------------------------- zombies

    @precondition(lambda self: self.zombies)
    @rule(
        pick=st.integers(0, 50),
        place=places,
        act=st.sampled_from(
            ["plan", "settle", "find", "adopt", "abandon", "renew", "release", "set", "undo", "import"]
        ),
        hides=st.booleans(),
    )
    def a_zombie_changes_nothing(self, pick: int, place: Place, act: str, hides: bool) -> None:
        """Not even behind a lease that somebody holds: all that are given must be."""
        self._attempt(place[0])
        opened = self._opened(place)
        zombie = self.zombies[pick % len(self.zombies)]
        held = [one.lease for one in self.attempts.values() if one.lease.id != zombie.lease.id]
        leases = [*held, zombie.lease] if hides else [zombie.lease]
        with pytest.raises(Fenced):
            self._act(act, leases, zombie, place, opened.id)

    def _act(self, act: str, leases: list[Lease], zombie: Attempt, place: Place, number: int) -> None:
        """Each would be right if the lease were held."""
        ledger, uid, run, (stream, partition) = self.ledger, self.uid, zombie.run_id, place
        told: dict[str, Any] = {"who": "zoe", "why": ""}
        deeds: dict[str, Callable[[], object]] = {
            "plan": lambda: ledger.plan(leases, run, uid, 0, [self._next(stream, partition, 4)], []),
            "settle": lambda: ledger.settle(leases, run, uid, [Outcome(number, self._receipt(place, 4))]),
            "find": lambda: ledger.record_found(leases, {number: ScanResult()}),
            "adopt": lambda: ledger.adopt(leases, run, [number]),
            "abandon": lambda: ledger.abandon(leases, number, **told),
            "renew": lambda: ledger.renew(zombie.lease, boot_id="b", deadline_ns=1, ttl_s=1),
            "release": lambda: ledger.release(zombie.lease),
            "set": lambda: ledger.set_offset(leases, uid, stream, partition, Position(0, 1), abandon=True, **told),
            "undo": lambda: ledger.undo_offset(leases, uid, stream, partition, who="zoe"),
            "import": lambda: ledger.move_offsets(leases, uid, stream, {partition: Position(0, 1)}, **told),
        }
        deeds[act]()

    # ----------------------------------------------------------------------------------------------------------- people

    @rule(place=places, offset=lengths, abandon=st.booleans(), anew=st.booleans(), dies=deaths)
    def a_person_sets_an_offset(self, place: Place, offset: int, abandon: bool, anew: bool, dies: int | None) -> None:
        (stream, partition), attempt = place, self._attempt(place[0])
        position = self.model.positions.get(place, Position(0, 0))
        after = Position(position.incarnation + anew, offset)

        def put() -> Position:
            options: dict[str, Any] = {"who": "ann", "why": "because", "abandon": abandon}
            self.ledger.set_offset([attempt.lease], self.uid, stream, partition, after, **options)
            return after

        if place in self.model.open and not abandon:
            with pytest.raises(DataError, match="--abandon"):
                put()
        elif (done := self._done(stream, dies, put)) is not None:
            assert done == after
            if place in self.model.open:
                self.model.abandon(place)
            self.model.touch(attempt.lease)
            self.model.move("set", place, after)

    @rule(place=places, dies=deaths)
    def a_person_takes_the_last_change_back(self, place: Place, dies: int | None) -> None:
        (stream, partition), attempt = place, self._attempt(place[0])

        def undo() -> tuple[Position | None]:
            return (self.ledger.undo_offset([attempt.lease], self.uid, stream, partition, who="bob"),)

        if place in self.model.open or place not in self.model.befores:
            with pytest.raises(DataError if place in self.model.open else ConfigError):
                undo()
            return
        before = self.model.befores[place][-1]
        if done := self._done(stream, dies, undo):
            assert done == (before,)
            self.model.touch(attempt.lease)
            self.model.move("undo", place, before)

    @rule(stream=streams, offset=lengths, dies=deaths)
    def positions_are_taken_over_from_elsewhere(self, stream: str, offset: int, dies: int | None) -> None:
        """All of them or none."""
        attempt = self._attempt(stream)
        wanted = {one: Position(2, offset + number, {"from": "afar"}) for number, one in enumerate(PARTITIONS)}

        def take_over() -> bool:
            self.ledger.move_offsets([attempt.lease], self.uid, stream, wanted, who="ann", why="moved")
            return True

        if any((stream, one) in self.model.open for one in PARTITIONS):
            with pytest.raises(DataError):
                take_over()
        elif self._done(stream, dies, take_over):
            self.model.touch(attempt.lease)
            for partition, position in wanted.items():
                self.model.move("import", (stream, partition), position)

    @rule(place=places, dies=deaths)
    def a_person_gives_a_range_up(self, place: Place, dies: int | None) -> None:
        attempt, number = self._attempt(place[0]), self._opened(place).id

        def give_up() -> bool:
            self.ledger.abandon([attempt.lease], number, who="ann", why="lost")
            return True

        if self._done(place[0], dies, give_up):
            self.model.touch(attempt.lease)
            self.model.abandon(place)

    @rule(changed=st.booleans())
    def the_document_is_applied(self, changed: bool) -> None:
        """What is open keeps what it pins; what is planned from now on pins the new revision."""
        self.model.revision += changed
        self.ledger.apply(self.name, document(self.model.revision), who="ann")
        self.model.deeds += ["apply"] if changed else []

    @rule(tasks=st.integers(1, 3))
    def partitions_are_assigned(self, tasks: int) -> None:
        self.model.version += tasks != self.model.tasks
        self.model.tasks = tasks
        self.ledger.assign(self.uid, PARTITIONS, tasks)

    @precondition(lambda self: self.model.dead_letters)
    @rule()
    def dead_letters_are_discarded(self) -> None:
        oldest = self.ledger.dead_letters(self.uid, limit=_MANY)[-1]
        assert self.ledger.discard_dead_letters(self.uid, Wanted(ids=(oldest.id,)), who="ann", asked={}) == 1
        place = (oldest.stream, oldest.partition)
        del self.model.dead_letters[place, oldest.incarnation, oldest.offset, oldest.ordinal, oldest.stage]
        self.model.deeds.append("discard dead letters")

    # --------------------------------------------------------------------------------------------------- what must hold

    @invariant()
    def ledger_and_model_agree(self) -> None:
        """On what decides what is done next; the rest is only ever added to, and compared at the end."""
        self._compare(self._standing())
        self._at_most_one_range_of_a_partition_is_open()
        if self.unchecked:
            self.unchecked = False
            self._receipts_join()

    @invariant()
    def no_counter_goes_down(self) -> None:
        """Whoever scrapes metrics takes a fall for a new beginning, and counts everything once more."""
        now = counters(self.ledger, self.uid)
        assert all(now[key] >= value for key, value in self.counted.items()), (self.counted, now)
        self.counted = now

    def teardown(self) -> None:
        for name, hook in self.hooks:
            event.remove(self.ledger._engine, name, hook)
        self._compare(self._standing() | self._lasting())

    def _compare(self, seen: dict[str, Any]) -> None:
        remembered = self.model.view()
        for what, told in seen.items():
            assert told == remembered[what], what

    def _at_most_one_range_of_a_partition_is_open(self) -> None:
        """Asked of the rows themselves."""
        key = (RANGES.c.uid, RANGES.c.stream, RANGES.c.partition_id)
        query = sa.select(*key).where(RANGES.c.state == "open").group_by(*key).having(sa.func.count() > 1)
        with self.ledger._read() as connection:
            assert connection.execute(query).all() == []

    def _receipts_join(self) -> None:
        """The newest move of each position begins where the one before it ended, or where a gap that is told ends."""
        newest: dict[Place, list[Step]] = {}
        for step in self._history():
            newest[step.place] = [*newest.get(step.place, []), step][-2:]
        gaps = self._gaps()
        for place, (old, new) in ((place, steps) for place, steps in newest.items() if len(steps) == 2):
            after = pair(old.after)
            if after is None or new.before == after:
                continue
            assert new.before is not None
            gap, _ = gaps[(place, *after)]
            assert new.before[0] > gap.incarnation or gap.end in (None, new.before[1]), f"{old} and {new} do not join"

    def _history(self) -> list[Step]:
        return [
            Step(
                step.kind,
                (step.stream, step.partition),
                pair(step.before),
                step.after,
            )
            for step in self.ledger.offset_history(self.uid, limit=_MANY)
        ]

    def _standing(self) -> dict[str, Any]:
        ledger, uid = self.ledger, self.uid
        return {
            "offsets": {(one.stream, one.partition): one.position for one in ledger.offsets(uid)},
            "floors": {
                (stream, floor.partition_id, floor.target): floor
                for stream in STREAMS
                for floor in ledger.floors(uid, stream)
            },
            "open": {
                (stream, one.range.partition): (one.id, one.range, one.floors, encoded(one.found))
                for stream in STREAMS
                for one in ledger.open_ranges(uid, stream)
            },
            "leases": {
                one.id: Holding(one.epoch, one.seq, one.holder, one.version or 0)
                for stream in STREAMS
                for one in ledger.live_leases(uid, stream)
            },
        }

    def _lasting(self) -> dict[str, Any]:
        ledger, uid = self.ledger, self.uid
        connector, assignment = ledger.connector(self.name), ledger.assignment(uid)
        return {
            "receipts": [
                (
                    one.id,
                    (one.stream, one.partition),
                    one.planned_end,
                    one.pins,
                    one.run_id,
                    one.epoch,
                    one.attempts,
                    one.receipt,
                )
                for one in reversed(ledger.receipts(uid, limit=None))
            ],
            "history": self._history(),
            "gaps": self._gaps(),
            "dead letters": {
                ((one.stream, one.partition), one.incarnation, one.offset, one.ordinal, one.stage): (
                    Reject(one.offset, one.ordinal, one.stage, one.kind, one.message, one.original, one.topic),
                    one.run_id,
                )
                for one in ledger.dead_letters(uid, limit=_MANY)
            },
            "deeds": [deed.action for deed in reversed(ledger.audit(uid, limit=_MANY))],
            "document": (connector.revision, connector.document),
            "assignment": (assignment.version, assignment.tasks),
        }

    def _gaps(self) -> dict[tuple[Place, int, int], tuple[Gap, str]]:
        return {
            ((one.stream, one.partition), one.gap.incarnation, one.gap.begin): (one.gap, one.run_id)
            for one in self.ledger.gaps(self.uid)
        }


def histories_of(ledger: Ledger) -> type[LedgerMachine]:
    return type("Histories", (LedgerMachine,), {"ledger": ledger})
