"""One task's run: lease, inherit, plan, execute, settle, confirm, until nothing that was there is left.

The driver's side of delivery.md. Every effect happens in this order: `planned` is committed, the sink writes, durable,
the receipt returns, `settle` commits receipt and offset together, the source is told. Whatever stops in between, the
next attempt takes the same begin with the same pins, looks for what is there, and delivers the rest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from connect_core import clock
from connect_core.config import with_policies
from connect_core.errors import ConfigError, Failure, LeaseHeld, Missing, OffsetGone, Retriable, WaybillError
from connect_core.ledger import target_lease_id, task_lease_id
from connect_core.observe import Step
from connect_core.planning import Assignment, followed, split_lanes
from connect_core.replication.driver import plan, recovery
from connect_core.replication.driver.attempts import noted
from connect_core.replication.driver.context import RunContext, shares_of
from connect_core.replication.driver.empty_receipt import empty_receipt
from connect_core.replication.driver.errors import no_lasting_offsets
from connect_core.replication.driver.leases import HeldLeases, LeaseRequest, acquire
from connect_core.replication.driver.ledger_restore import Watch, require_over
from connect_core.replication.driver.letters import keys_of, letters_of
from connect_core.replication.driver.other_hosts import require_reachable
from connect_core.replication.driver.presence import ASKED_FOR, present
from connect_core.replication.driver.rate import Budget
from connect_core.replication.driver.run_workers import RunWorkers
from connect_core.replication.driver.summary import TaskSummary
from connect_core.replication.driver.task_context import TaskContext
from connect_core.replication.driver.window import EMPTIED_S, Window, nothing_moved
from connect_core.replication.host import boot_id
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import ByOffset, Sink
from connect_core.sdk.source import PushSource, Source
from connect_core.sdk.values import LIVE, Json, OpenRange, Position, Range
from connect_core.version import code_version
from connect_core.work import Lane, Outcome, Pace, ReadLately


class TaskRun(TaskContext):
    """One attempt of one task. `run` is called once. `named` are the partitions that the document names now; None
    stands for all of the assignment."""

    def __init__(
        self,
        context: RunContext,
        assignment: Assignment,
        task: int,
        source: Source,
        sink: Sink,
        named: Collection[Partition] | None = None,
    ) -> None:
        super().__init__(context, assignment, task, source, sink, named)
        self.quantum_s, self.first_record_timeout_s = context.times.quantum_s, math.inf
        self.idle_timeout_s = context.times.idle_timeout_s
        self.budget = Budget(
            context.resolved.records_per_second, len({share.task for share in assignment.shares.values()})
        )
        self.workers = RunWorkers(context.engine, self._is_to_end)
        self._followers: dict[Partition, int] = {}
        """Which worker follows each partition of a window."""
        self._reached: dict[int, int] = {}
        self.came_nearer = False
        self._began = clock.monotonic()
        self._halted_by = ""

    def run(self) -> TaskSummary:
        """Raises what stopped it, or what put partitions aside, after everything that was durable has been settled and
        the leases are let go."""
        context, engine = self.context, self.context.engine.described
        watch = Watch(self.ledger, context.home, context.holder, self.where())
        with watch.telling():
            run_id = watch.run_id = self.ledger.begin_run(
                self.uid, self.stream, task=self.task, engine=engine, attempt_of=context.attempt_of
            )
        self.summary = TaskSummary(self.task, run_id)
        self.context = replace(context, listener=context.listener.of(run=run_id))
        try:
            with watch.telling():
                self._move_with_leases()
        except BaseException as error:
            with suppress(ConfigError):  # a ledger that was restored may not know this run: what stopped it is the news
                self.ledger.end_run(run_id, state="failed", failure=Failure.of(error), summary=self._totals())
            noted(error)
            raise
        with watch.telling():
            self.ledger.end_run(run_id, state="done", failure=None, summary=self._totals())
        return self.summary

    def _totals(self) -> Json:
        if self.stream == LIVE:
            self.summary.lag = self.end_offsets.lag(self.settled)
        return self.summary.totals()

    # ------------------------------------------------------------------------------------------------ the order of it

    def _move_with_leases(self) -> None:
        if isinstance(self.source, PushSource) and isinstance(self.sink, ByOffset):
            raise no_lasting_offsets(self.where())
        with self.summary.timed("lease"):
            self.held = self._acquire()
        self.summary.taken_over = [one.told() for one in self.held.taken_over]
        try:
            require_over(self.ledger, self.context.times.ttl_s, self.where())
            self.reached(Step.LEASED)
            with self.workers, present(self, lambda: self._halted_by):
                self._move()
        finally:
            with self.summary.timed("release"):
                self.held.release()

    def _move(self) -> None:
        self.lifecycle.begin()
        self._move_all()
        self.lifecycle.conclude()

    def _move_all(self) -> None:
        pending = recovery.inherited(self)
        while pending := pending or recovery.rests(self) or plan.next_ranges(self):
            pending = self.moved(pending)
            if self.ends_here():
                return
        if self.targets is None:
            self._look_idly()
        if self.context.window_s:
            Window(self, self, self._began + self.context.window_s).stay()
        elif isinstance(self.source, PushSource):
            Window(self, self, self._began + EMPTIED_S).empty_inbox()

    def _look_idly(self) -> None:
        """Who has nothing to move can do without a target that does not answer."""
        try:
            self.look_for_losses()
        except Missing:
            raise
        except Retriable as error:
            self.context.listener.log(f"whether the target has what was settled is not known: {error}")

    def moved(self, pending: Sequence[OpenRange]) -> list[OpenRange]:
        """One quantum: these ranges, as far as it gets. Returns those that are to be gone on with. Raises what stopped
        it, after everything that was durable has been settled; a failure that concerns one partition puts it aside."""
        left = self._close_empty(pending)
        if not left:
            return []
        outcomes = self._execute(left)
        self.came_nearer = self._come_nearer(outcomes)
        self.settle(left, outcomes)
        apart = {one.range_id: one.failure for one in outcomes if one.failure and one.apart}
        self.lifecycle.put_aside({item.range.partition: apart[item.id] for item in left if item.id in apart})
        failures = [one.failure.as_error() for one in outcomes if one.failure and not one.apart]
        self._take_back_unwritten(left, outcomes)
        if failures:
            raise failures[0]
        self.evolution.noted(left, outcomes)
        closed = {outcome.range_id for outcome in outcomes if outcome.receipt} | self._without_target(left, outcomes)
        going_on = self.lifecycle.going_on(left)
        if not closed and len(going_on) == len(left) and not any(item.range.live for item in left):
            self._require_not_in_vain()
        return [item for item in going_on if item.id not in closed]

    def _come_nearer(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether a lane that has moved nothing is nearer to its range than before (`sdk.source.Seeking`)."""
        nearer = {one.range_id: one.reached for one in outcomes if one.reached > self._reached.get(one.range_id, 0)}
        self._reached |= nearer
        return bool(nearer)

    def _require_not_in_vain(self) -> None:
        """Lanes that are told to stop may not have begun yet."""
        if not self.came_nearer and not self._halted():
            raise nothing_moved(self.where())

    def _take_back_unwritten(self, items: Sequence[OpenRange], outcomes: Sequence[Outcome]) -> None:
        """Takes back ranges of which this run has written nothing, so that a document that is corrected counts for
        them: of partitions that stopped by themselves, and of all where the run ends with an error that another attempt
        does not mend."""
        told = {one.range_id: one for one in outcomes}
        errors = [one.failure.as_error() for one in outcomes if one.failure and not one.apart]
        ends = any(not isinstance(one, (Retriable, LeaseHeld)) for one in errors)
        own = [item for item in items if not (item.inherited or item.found)]
        unwritten = [item for item in own if _is_unwritten(item, told.get(item.id), ends=ends)]
        if unwritten:
            self._keep_seen([item.range for item in unwritten])
            self.take_back([item.id for item in unwritten])
        self._close_outdated([item for item in items if _is_unwritten(item, told.get(item.id), ends=bool(errors))])

    def _close_outdated(self, unwritten: Sequence[OpenRange]) -> None:
        """The same, whatever the error is, for ranges that an earlier attempt has planned, by another revision than
        that of now, where the target says that it has written nothing either. That there was such a range stays in a
        receipt."""
        if self.stream != LIVE or isinstance(self.source, PushSource):
            return
        outdated = [
            item
            for item in unwritten
            if item.range.pins.revision != self.revision and item.found is not None and item.found.has_nothing
        ]
        self.settle(outdated, [Outcome(item.id, empty_receipt(item)) for item in outdated])
        for item in outdated:
            self.context.listener.log(
                f"{item.range.partition.key}: an earlier revision of the document has planned this range, and nothing"
                " of it is in the target: the next run plans it by the revision of now"
            )

    def _without_target(self, items: Sequence[OpenRange], outcomes: Sequence[Outcome]) -> set[int]:
        """Those of which nothing is written before their targets are planned: they are taken back for that. One that an
        earlier attempt has planned is closed at its begin."""
        unwritten = self.more_targets.noted(items, outcomes)
        own = [item for item in unwritten if not item.inherited]
        self._keep_seen([item.range for item in own if not item.range.live])
        self.take_back([item.id for item in own])
        adopted = [item for item in unwritten if item.inherited]
        self.settle(adopted, [Outcome(item.id, empty_receipt(item)) for item in adopted])
        return {item.id for item in unwritten}

    def _keep_seen(self, ranges: Sequence[Range]) -> None:
        """What was planned and is taken back may be replaced before it is planned again: then it is missed."""
        seen = {one.partition: Position(one.incarnation, one.begin, one.evidence) for one in ranges if not one.gaps}
        if seen and self.stream == LIVE:
            self.ledger.keep_seen(self.held.leases, self.uid, self.stream, seen)

    def ends_here(self) -> bool:
        """Whether this run ends at this range boundary though there may be more to move; says why."""
        why = self._halted_by = self._halted()
        if why:
            self.context.listener.log(f"{why}: ends at a range boundary")
            self.summary.ended_by = why if why in ASKED_FOR else ""
        return bool(why)

    def _is_to_end(self) -> bool:
        """Asked while lanes are at work. Where the ledger does not answer they go on: to settle them will tell."""
        with suppress(WaybillError):
            return bool(self._halted())
        return False

    def _halted(self) -> str:
        """Why, or nothing. A backfill keeps to the revision that it began with."""
        standing = self.ledger.standing(self.uid)
        if standing.deleted:
            return "deleted"
        if self.stream == LIVE and standing.revision != self.revision:
            if self.evolution.is_all_that_changed(standing.revision):
                return "its fields have changed, and this run goes on with those of now"
            return "its document has changed, and the next run moves the rest as it says now"
        if standing.version > self.assignment.version:
            return "its partitions were rebalanced"
        if standing.target_state == "stopped" or (not self.context.is_backfill and standing.target_state != "running"):
            return standing.target_state
        return self.context.halted()

    def _acquire(self) -> HeldLeases:
        version = self.assignment.version
        wanted = [
            LeaseRequest(task_lease_id(self.uid, self.stream, version, self.task), self.uid, self.stream, version)
        ]
        inherited = self.ledger.open_ranges(self.uid, self.stream, list(self.slots))
        targets = {*self.sink.target_leases(self.task), *self.pinned_target_leases(inherited)}
        self.require_no_secret("sink", "a target", targets)
        wanted += [LeaseRequest(target_lease_id(key)) for key in sorted(targets)]
        return acquire(
            self.ledger,
            wanted,
            holder=self.context.holder,
            home=self.context.home,
            times=self.context.times,
            say=self.context.listener.log,
        )

    def _close_empty(self, pending: Sequence[OpenRange]) -> list[OpenRange]:
        """Settles the ranges that only tell of gaps; returns the others."""
        empty = [item for item in pending if item.range.begin == item.range.end]
        self.settle(empty, [Outcome(item.id, empty_receipt(item)) for item in empty])
        self.lifecycle.told_end(empty)
        self._tell_what_was_noticed(empty)
        return [item for item in pending if item.range.begin != item.range.end]

    def _tell_what_was_noticed(self, items: Sequence[OpenRange]) -> None:
        for item in items:
            for gap in (one for one in item.range.gaps if not one.loses):
                read = f"it was read to its last known end, {gap.begin:,}"
                ended = f"is gone; {read}; whether more came later cannot be known"
                self.context.listener.log(
                    f"{item.range.partition.key} {f'at {gap.begin:,}: {gap.reason}' if gap.warns else ended}"
                )

    def _execute(self, pending: Sequence[OpenRange]) -> list[Outcome]:
        # What targets of another revision demand is not known: one lane is right for all of them.
        pins = pending[0].range.pins
        of_another = pins.revision != self.revision or not self.goes_where_now(pins)
        single = of_another or (self.targets is not None and self.targets.single_lane)
        self._keep_to_the_rate()
        lanes = 1 if single else self.budget.lanes(self.context.lanes)
        shares = split_lanes(pending, lanes, self._followers)
        self._followers |= followed(shares)
        pace = self.budget.pace(len(shares))
        with self.summary.timed("execute"):
            engine = self.workers.ready(len(shares))
            if self.workers.elsewhere:
                self._reach_other_hosts(shares)
            deadline = self.held.renew()
            with self.held.lanes_at_work(deadline):
                outcomes = engine.execute([self._lane(items, deadline, pace) for items in shares])
        self.budget.spend([outcome.receipt for outcome in outcomes if outcome.receipt])
        self.reached(Step.EXECUTED)
        return outcomes

    def _reach_other_hosts(self, shares: Sequence[tuple[OpenRange, ...]]) -> None:
        for items in shares:
            planned = self.resolved_for(items[0].range.pins)
            require_reachable(planned.source, planned.sink, self.where())
        self.held.reach_other_hosts()

    def _keep_to_the_rate(self) -> None:
        """Waits until what was moved is within what may be moved in a second."""
        while (wait_s := self.budget.ahead_s()) > 0:
            self.held.renew()
            clock.sleep(min(wait_s, self.context.times.ttl_s / 4))

    def follow_new_partitions(self) -> None:
        """Partitions that have appeared since this run began, and are this task's, are its own from now on."""
        context, known = self.context, self.assignment.shares
        there = self.source.partitions(self.lifecycle.known())
        self.require_no_secret("source", "a partition", there)
        self.lifecycle.names(there)
        if all(partition in known for partition in there):
            return
        resolved = context.resolved
        now = self.ledger.assign_beside(self.uid, there, resolved.tasks, resolved.assignment, known)
        now = now or self.ledger.assignment(self.uid)  # the next look knows what others have found
        if now.version == self.assignment.version:
            self.assignment = now
            self.slots = {part: share.slot for part, share in shares_of(context, now, self.task).items()}

    def _lane(self, items: tuple[OpenRange, ...], deadline_ns: int, pace: Pace) -> Lane:
        """What records become and where they go is pinned. What is tolerated is not: a range that stopped at a record,
        or at a target that was replaced, goes on when the document is changed to tolerate it. Nor is the key of dead
        letters: whoever asks for one, or for another one, means all that are made from now on."""
        resolved = self.resolved_for(items[0].range.pins)
        letters = letters_of(self.context, items) if self.context.replays_letters else None
        return Lane(
            connector=self.context.connector.name,
            uid=self.uid,
            task=self.task,
            epoch=self.held.leases[0].epoch,
            source=resolved.source,
            sink=with_policies("sink", resolved.sink, self.context.resolved.sink),
            pipeline=resolved.pipeline,
            tolerance=self.context.resolved.tolerance,
            ranges=self._with_current_floors(items),
            quantum_s=self.quantum_s,
            boot_id=boot_id(),
            deadline_ns=deadline_ns,
            lock_paths=tuple(str(lock.path) for lock in self.held.locks),
            code=code_version(),
            idle_timeout_s=self.idle_timeout_s,
            first_record_timeout_s=self.first_record_timeout_s,
            pace=pace,
            rejected={item.range.partition.id: self._rejected[item.range.partition.id] for item in items},
            holder=self.held.leases[0].holder,
            reject_limit=self.context.resolved.reject_limit,
            lately=self._lately(items),
            letters=letters,
            encrypt=self.context.resolved.encrypt,
            evolving=self.evolution.of_lanes(),
            decrypt=keys_of(self.context, letters),
        )

    def _lately(self, items: tuple[OpenRange, ...]) -> dict[str, ReadLately]:
        """What was read and rejected within the time for which the document has a budget."""
        limit = self.context.resolved.reject_limit
        if limit is None:
            return {}
        return self.ledger.read_lately(self.uid, self.stream, [item.range.partition for item in items], limit.window_s)

    def _with_current_floors(self, items: tuple[OpenRange, ...]) -> tuple[OpenRange, ...]:
        """A range that waited for its lane was planned before the ones settled since: their floors moved."""
        known = {(floor.partition_id, floor.target): floor for floor in self.ledger.floors(self.uid, self.stream)}
        return tuple(
            replace(item, floors=tuple(known.get((floor.partition_id, floor.target), floor) for floor in item.floors))
            for item in items
        )


def _is_unwritten(item: OpenRange, outcome: Outcome | None, *, ends: bool) -> bool:
    """Whether nothing of a range was written by the run that has planned it. One that no lane has begun has no outcome.
    One that the source has lost stays: by that alone the next run sees how much was there; and so does one behind a
    loss that was accepted, for the run that ends here alone."""
    may_end = ends and not any(gap.loses for gap in item.range.gaps)
    if outcome is None:
        return may_end
    if outcome.receipt or outcome.failure is None or outcome.failure.family == OffsetGone.__name__:
        return False
    return outcome.clean and (outcome.apart or may_end)
