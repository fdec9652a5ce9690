"""What a task's run works with: its ledger, leases, both ends, and what is known of its partitions so far.

`lifecycle` and `recovery` work on it, and `task.TaskRun` goes through its order of effects. Receipts are settled here,
in one place for whatever was written now, found in the target, or is only a gap.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from connect_core import clock, packages, systems
from connect_core.config import Resolved, revealed, with_policies
from connect_core.errors import Retriable
from connect_core.observe import Passed, Step, reached
from connect_core.pipeline.digest import pipeline_digest
from connect_core.planning import Assignment
from connect_core.replication.driver import found_before, lost_rows
from connect_core.replication.driver.beginnings import Beginnings
from connect_core.replication.driver.context import Progress, RunContext, shares_of
from connect_core.replication.driver.end_offsets import EndOffsets
from connect_core.replication.driver.errors import closed_in_vain
from connect_core.replication.driver.evolving import DocumentEvolution
from connect_core.replication.driver.leases import HeldLeases
from connect_core.replication.driver.ledger_batches import in_batches, to_settle
from connect_core.replication.driver.ledger_restore import restored_at_work
from connect_core.replication.driver.lifecycle import Lifecycle
from connect_core.replication.driver.more_targets import MoreTargets
from connect_core.replication.driver.no_secrets import require_no_secret
from connect_core.replication.driver.scan_cache import ScanCache
from connect_core.replication.driver.set_aside import left, left_sentence, sentence, set_aside
from connect_core.replication.driver.summary import TaskSummary
from connect_core.sdk.plugin import Role
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Growing, Holding, Remembering, Sink, Targets
from connect_core.sdk.source import Source
from connect_core.sdk.values import LIVE, Floor, Json, OpenRange, Pins, Position, Range
from connect_core.version import code_version, running
from connect_core.work import Outcome, Receipt

EMPTY_IN_A_ROW = 3
"""An earlier attempt may have left one range of a partition, and another is planned only to look what is there."""


class TaskContext:
    """Of one attempt of one task. `named` are the partitions that the document names now; None stands for all of the
    assignment."""

    held: HeldLeases
    """From when it has them."""
    summary: TaskSummary
    """From when the run has its row in the ledger."""

    def __init__(
        self,
        context: RunContext,
        assignment: Assignment,
        task: int,
        source: Source,
        sink: Sink,
        named: Collection[Partition] | None = None,
    ) -> None:
        self.context, self.assignment, self.task, self.stream = context, assignment, task, context.stream
        self.ledger, self.uid = context.ledger, context.connector.uid
        self.revision = context.connector.revision
        self.source, self.sink = source, sink
        self.slots = {part: share.slot for part, share in shares_of(context, assignment, task).items()}
        self.end_offsets = EndOffsets()
        self.lifecycle = Lifecycle(self, named)
        self.beginnings = Beginnings(self)
        self.targets: Targets | None = None
        self.more_targets = MoreTargets(self)
        self.evolution = DocumentEvolution(self)
        self._homes: dict[str, Json] = {}
        """By id of the partition where it was found to stand (`Homing`): floors say so once something is settled."""
        self._seen_topics: dict[str, int] = {}
        self.settled: dict[Partition, tuple[int, int]] = {}
        self._rejected: Counter[str] = Counter()
        self._closed_empty: Counter[Partition] = Counter()
        """How many receipts in a row moved nothing and told of nothing."""
        self.scan_cache = ScanCache()
        self._former: dict[str, Resolved] = {}
        self.steps: dict[Step, Passed] = {}
        self._restored: bool | None = None
        """Whether the ledger was restored, asked once a run: one that is restored under a run takes its leases.

        No `cached_property`: in Python 3.11 all objects of a class would wait for one that asks its ledger."""

    # -------------------------------------------------------------------------------------------- what was done is kept

    def settle(self, pending: Sequence[OpenRange], outcomes: Sequence[Outcome]) -> None:
        """Commits the receipts among `outcomes`, which are of these ranges, and their offsets; tells the source."""
        receipts = [outcome for outcome in outcomes if outcome.receipt]
        if not receipts:
            return
        items = {item.id: item for item in pending}
        receipts = [self._telling_what_it_found(items.get(one.range_id), one) for one in receipts]
        stored = [outcome.receipt for outcome in receipts if outcome.receipt]
        self.require_no_secret("sink", "a target", ((one.where, one.floors) for one in stored))
        self.require_no_secret("source", "a position", (one.evidence for one in stored))
        for some in to_settle(receipts, self.context.batch_ranges):
            with self.summary.timed("settle"):
                self._settle_once_more_if_unknown(some)
            self.reached(Step.SETTLED)
            self._keep_in_mind(items, some)
        self.lifecycle.settled(items[one.range_id].range.partition for one in receipts if not one.failure)
        for told in (*map(sentence, set_aside(stored)), *map(left_sentence, left(stored))):
            self.context.listener.log(told)
        if count := found_before.found_before(stored):
            self.context.listener.log(found_before.sentence(count))
        self._tell_progress()
        if self.stream == LIVE:
            settled = [items[outcome.range_id].range for outcome in receipts]
            self._confirm({one.partition for one in settled if self._read_where_now(one.pins)})

    def _telling_what_it_found(self, item: OpenRange | None, outcome: Outcome) -> Outcome:
        if item is None or item.found is None or not item.found.there() or outcome.receipt is None:
            return outcome
        wanted = item.range
        given_up = self.ledger.given_up(self.uid, wanted.stream, wanted.partition.id, wanted.begin, outcome.receipt.end)
        restored = self.was_restored()
        return replace(outcome, receipt=found_before.telling(outcome.receipt, item, given_up, restored=restored))

    def _settle_once_more_if_unknown(self, receipts: Sequence[Outcome]) -> None:
        """An unknown answer to COMMIT is read back: settle is keyed by receipt, so asking again repeats nothing."""
        try:
            self._settle(receipts)
        except Retriable:
            self._settle(receipts)

    def _settle(self, receipts: Sequence[Outcome]) -> None:
        to_sink = self.context.resolved.errors_sink is not None
        self.ledger.settle(self.held.leases, self.summary.run_id, self.uid, receipts, to_sink=to_sink)

    def _keep_in_mind(self, items: Mapping[int, OpenRange], settled: Sequence[Outcome]) -> None:
        for outcome in settled:
            if outcome.receipt:
                self.summary.receipts.append(outcome.receipt)
                self.scan_cache.settled(items[outcome.range_id], outcome.receipt)
                wanted = items[outcome.range_id].range
                self.settled[wanted.partition] = (wanted.incarnation, outcome.receipt.end)
                self._rejected[wanted.partition.id] += outcome.receipt.rejected or 0
                self._require_news(wanted.partition, outcome.receipt)

    def _require_news(self, partition: Partition, receipt: Receipt) -> None:
        """A run that closes range after range at its begin would look busy, and move nothing until its time is over."""
        if receipt.end > receipt.begin:
            del self._closed_empty[partition]
        elif not receipt.gaps:
            self._closed_empty[partition] += 1
        if self._closed_empty[partition] > EMPTY_IN_A_ROW:
            raise closed_in_vain(f"{self.where()}, partition {partition.key}")

    def _confirm(self, partitions: set[Partition]) -> None:
        """What the source is told is for its own tools; the ledger is what counts, so a failure is only said."""
        positions = self.ledger.positions(self.uid, self.stream, sorted(partitions))
        try:
            self.source.commit_offsets({part: position for part, position in positions.items() if position})
        except Retriable as error:
            self.context.listener.log(f"offsets were not committed at the source (the next run tries again): {error}")
        self.reached(Step.CONFIRMED)

    def _tell_progress(self) -> None:
        done, planned = self._progress()
        records = sum(receipt.read or 0 for receipt in self.summary.receipts)
        self.context.listener.progress(Progress(self.task, max(done, 0), planned, records))

    def _progress(self) -> tuple[int, int]:
        if plan := self.context.backfill_plan:
            return plan.done(self.positions()), plan.length(self.slots)
        return self.end_offsets.progress(self.ledger.positions(self.uid, self.stream, self.end_offsets.partitions()))

    # --------------------------------------------------------------------------------------------- ranges and positions

    def opened(self, ranges: Sequence[Range], floors: Mapping[Partition, Sequence[Floor]]) -> list[OpenRange]:
        """Commits the ranges as planned, with the floors that are given for their partitions, batch by batch."""
        if mixed := packages.mixed(self.context.loaded):
            raise packages.mixed_error(mixed, self.where())
        self.require_no_secret("sink", "a target", [*floors.values(), *(one.pins.target for one in ranges)])
        self.require_no_secret("source", "a position", (one.evidence for one in ranges))
        self.held.renew()
        opened: list[OpenRange] = []
        for some in in_batches(ranges, self.context.batch_ranges):
            given = [floor for one in some for floor in floors.get(one.partition, ())]
            leases, beside = self.held.leases, self.beginnings.beside(some)
            planned = self.ledger.plan(leases, self.summary.run_id, self.uid, self.task, some, given, beside)
            if not planned:
                self.beginnings.overtaken = True
                self.end_offsets.forget(one.partition for one in some)
            opened += planned
            self.reached(Step.PLANNED)
        return opened

    def take_back(self, range_ids: Sequence[int]) -> None:
        """Open ranges of which nothing is in a target."""
        for some in in_batches(range_ids, self.context.batch_ranges):
            self.ledger.withdraw(self.held.leases, some)

    def pins(self, like: Pins) -> Pins:
        """What a range keeps to, whoever finishes it, when it is planned now as `like` was."""
        return replace(like, pipeline=pipeline_digest(self.resolved_for(like).pipeline), code=self.code_of(like))

    def code_of(self, pins: Pins) -> str:
        """What plans a range as `pins` are, or finishes it: this code, and the packages that it needs."""
        resolved = self.resolved_for(pins)
        used = running((resolved.source.system, resolved.sink.system), resolved.pipeline)
        return ", ".join([code_version(), *(f"{name}: {release}" for name, release in sorted(used.items()))])

    def positions(self) -> dict[Partition, Position | None]:
        """Raises Retriable when one of them is before what this run itself has settled: the ledger of now is older."""
        positions = self.ledger.positions(self.uid, self.stream, list(self.slots))
        for partition, settled in self.settled.items():
            at = positions.get(partition)
            if at is None or (at.incarnation, at.offset) < settled:
                where = f"{self.where()}, partition {partition.key}"
                raise restored_at_work(self.ledger, self.context.home, self.context.holder, where)
        return positions

    def asked(self) -> dict[Partition, Position | None]:
        """Where the partitions stand that the document names; behind them those others by whose evidence the source
        recognises what was read already, whatever it is called now."""
        positions = self.positions()
        read = {one: at for one, at in positions.items() if self.lifecycle.reads(one)}
        return read | {one: at for one, at in positions.items() if one not in read and at and at.evidence}

    def gaps_accepted(self) -> bool:
        """Whether this run goes on behind records that are lost."""
        return self.context.accept_gaps or self.context.resolved.on_data_loss == "skip"

    def was_restored(self) -> bool:
        """Whether the ledger was brought back from a backup: it may have forgotten what this connector has moved."""
        if self._restored is None:
            self._restored = self.ledger.restored_since(self.uid)
        return self._restored

    # ------------------------------------------------------------------------------------------------------ its targets

    def targets_now(self) -> Targets:
        """As they were looked at last, while its topics are the same."""
        growing = self.growing()
        if self.targets is None or self._topics() != self._seen_topics or (growing and growing.outgrown()):
            self.targets = self.look_at_targets()
        return self.targets

    def growing(self) -> Growing | None:
        """The sink, where records name some of its targets."""
        return self.sink if isinstance(self.sink, Growing) and self.sink.grows else None

    def stand_at(self, homes: Mapping[str, Json]) -> None:
        """From now on its targets have these partitions, by id, where they were found to stand (`Homing`)."""
        self._homes |= homes
        self.targets = self.look_at_targets()

    def look_at_targets(self) -> Targets:
        """Where this task's records go, as it is now."""
        with self.summary.timed("targets"):
            self._seen_topics = self._topics()
            floors = self.ledger.floors(self.uid, self.stream)
            targets = self.sink.targets(self.task, floors, self._seen_topics)
            if isinstance(self.sink, Remembering):
                floors += lost_rows.remember(self, self.sink, floors)
                self.lifecycle.lacking(lost_rows.lacking(self, self.sink, floors))
            return replace(targets, by_partition={**targets.by_partition, **self._homes})

    def look_for_losses(self) -> None:
        """Where nothing is to be moved, and so no target was looked at. Raises Missing where one answers, and is not
        there; else Retriable where it does not answer."""
        with self.summary.timed("targets"):
            floors = self.ledger.floors(self.uid, self.stream)
            if isinstance(self.sink, Holding):
                self.sink.check_held(self.task, floors)
            if not isinstance(self.sink, Remembering):
                return
            self.lifecycle.lacking(lost_rows.lacking(self, self.sink, floors))
        if lost_rows.unremembered(self, floors):
            self.look_at_targets()

    def _topics(self) -> dict[str, int]:
        """The topics of this task's partitions, each with the number of the connector's partitions that carry it."""
        named = [partition for partition in self.assignment.shares if self.lifecycle.reads(partition)]
        counted = Counter(self.source.topic(partition) for partition in named)
        mine = {self.source.topic(partition) for partition in self.slots if self.lifecycle.reads(partition)}
        return {topic: counted[topic] for topic in sorted(mine)}

    def is_ahead(self, pins: Pins, floors: Iterable[Floor]) -> bool:
        """Whether records may stand ahead in a target that a range with these pins reaches: it is looked for. Floors
        of other targets stay marked, until a document leads there again."""
        return any(floor.ahead and self._sink_of(pins).reaches(pins.target, floor.target) for floor in floors)

    def pinned_target_leases(self, items: Sequence[OpenRange]) -> set[str]:
        """The targets with one writer that these ranges have pinned. Where tasks have been shared out anew, several of
        them may have ranges to finish in one file: one after the other."""
        names: set[str] = set()
        for item in items:
            names |= {*self._sink_of(item.range.pins).pinned_target_leases(item.range.pins.target)}
        return names

    def _sink_of(self, pins: Pins) -> Sink:
        side = self.resolved_for(pins).sink
        return self.sink if side.system == self.context.resolved.sink.system else systems.sink(revealed(side))

    # ------------------------------------------------------------------------------------------------ as it was planned

    def resolved_for(self, pins: Pins) -> Resolved:
        """The connector as it was when a range was planned: the document of that revision, with its connections; with
        the policies of the source as the present one has them."""
        now, revision, said = self.context.resolved, pins.revision, pins.connections
        if revision == self.revision and (not said or said == now.connections):
            return now
        key = f"{revision} {json.dumps(said, sort_keys=True)}"
        if key not in self._former:
            resolve = self.context.resolve
            former = resolve(revision, said) if said else resolve(revision)
            self._former[key] = replace(former, source=with_policies("source", former.source, now.source))
        return self._former[key]

    def goes_where_now(self, pins: Pins) -> bool:
        """Whether what was planned with these goes where this run's own ranges go."""
        return self.resolved_for(pins).sink == self.context.resolved.sink

    def source_of(self, pins: Pins) -> Source:
        """Where a range is read that was planned with these: a connection may say another place since."""
        if self.context.replays_letters or self._read_where_now(pins):
            return self.source
        return systems.source(revealed(self.resolved_for(pins).source))

    def _read_where_now(self, pins: Pins) -> bool:
        return self.resolved_for(pins).source == self.context.resolved.source

    # --------------------------------------------------------------------------------------------- for errors and steps

    def require_no_secret(self, end: Role, what: str, given: Iterable[object]) -> None:
        """Of what the source or the sink has given: see `no_secrets`."""
        resolved = self.context.resolved
        side = resolved.source if end == "source" else resolved.sink
        require_no_secret(self.where(), f"{end} {side.system}", what, given)

    def where(self) -> str:
        """For errors."""
        return f"connector {self.context.connector.name}, task {self.task}"

    def command(self) -> str:
        """What a person types to try this again."""
        name = self.context.connector.name
        return (
            f"waybill run {name}" if not self.context.is_backfill else f"waybill backfills resume {name} {self.stream}"
        )

    def reached(self, step: Step) -> None:
        """Every run passes these places; faults are put there."""
        before = self.steps[step].times if step in self.steps else 0
        self.steps[step] = Passed(before + 1, clock.utc())
        reached(step, home=self.context.home, where=self.where())
