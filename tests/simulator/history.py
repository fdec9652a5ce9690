"""One history: a connector is run until all its records have arrived, whatever goes wrong on the way.

Who starts runs (Airflow, a person), the drivers and the operators are actors; the workers come from the engine. When
everything is settled and everybody has ended, `invariants` says whether the rules held.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from connect_core import clock
from connect_core.config.resolving import Resolved
from connect_core.errors import Fenced, LeaseHeld, OffsetGone, Retriable, TooManyRejects, WaybillError
from connect_core.observe import Step
from connect_core.planning import Assignment
from connect_core.replication.driver.context import RunContext, RunListener
from connect_core.replication.driver.leases import end_older_versions
from connect_core.replication.driver.ledger_batches import RANGES
from connect_core.replication.driver.ledger_restore import seen_files
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Scan
from tests.simulator import scenario as deeds
from tests.simulator.broker import Broker, Holder, SimulatedSink
from tests.simulator.engine import Place, SimulatedEngine
from tests.simulator.faults import Faults
from tests.simulator.floors import above_unsettled
from tests.simulator.hosts import drawn_hosts
from tests.simulator.ledger import NAME, UID, Database, SimulatedLedger, name_connector
from tests.simulator.offsets import TIMES, set_offset, undo_offset
from tests.simulator.scenario import (
    Deed,
    Scenario,
    by_key,
    drawn,
    entry,
    on_hosts,
    resolved,
    revised,
    to_topics_that_records_name,
)
from tests.simulator.scheduler import Actor, Scheduler
from tests.simulator.source import Log, SimulatedSource
from tests.simulator.stage import Stage
from tests.simulator.starting import spawn_driver, until_over

FIND_SLICE_S = 0.5
MAX_ATTEMPTS = 60


class SimulatedRun(TaskRun):
    """The product's run; its steps are told, and are places where it can die."""

    step: Callable[[str], None]

    def reached(self, step: Step) -> None:
        self.step(f"reached {step}")


@dataclass
class History(Stage):
    """Everything there is in one history. `alone` is the ledger without faults, for whoever looks on."""

    seed: int
    home: Path
    database: Database
    tracing: bool = False
    scenario: Scenario | None = None
    counts: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for seen in seen_files(self.home):  # of a history before in this process, of the same ledger
            seen.unlink()
        chance = random.Random(self.seed)
        self.hosts = drawn_hosts(self.seed)
        plan = self.scenario or on_hosts(_of_its_kind(self.seed, drawn(chance)), self.seed, self.hosts)
        self.plan = self.scenario = plan
        self.scheduler = Scheduler(chance, tracing=self.tracing)
        self.faults = Faults(self.scheduler, plan.faults)
        self.broker = Broker(self.scheduler, self.faults, self.step)
        self.logs = {Partition(key): Log(list(entries)) for key, entries in plan.logs.items()}
        self.unfinished_deeds = len(plan.deeds)
        self.holders = 0

    # ------------------------------------------------------------------------------------------------ the whole of it

    def run(self) -> None:
        """Fills `problems` with what happened that must not happen; the rest is for `invariants`."""
        _empty(self.home / "locks")
        with clock.replaced_by(self.scheduler):
            self.alone = self.database.begin_anew()
            self.alone.apply(NAME, self.plan.document, who="simulator")
            name_connector(self.database.connection, UID)
            self.ledger = SimulatedLedger(
                self.database.engine, self.step, self.faults, self._look_at_floors, self.scheduler.tell
            )
            for task in range(2):
                self.scheduler.spawn(f"starter {task}", Starter(self, task).run)
            for number, deed in enumerate(self.plan.deeds):
                self.scheduler.spawn(f"operator {number}", Operator(self, deed).run, deed.at_s)
            self.scheduler.run()
            hung = self.scheduler.end()
        self.problems += [f"{name} hangs" for name in hung]
        self.problems += [f"{name} crashed: {crash!r}" for name, crash in self.scheduler.crashes]
        self.problems += self.broker.faulty
        if self.scheduler.exhausted:
            self.problems.append("it goes round in circles")

    # -------------------------------------------------------------------------------------------------- what is known

    def over(self) -> bool:
        """Nothing is left to do, and nobody will change anything; a run that is stopped may still."""
        idle = all(actor.ended for actor in self.scheduler.actors if actor.name.startswith("driver"))
        return idle and not self.unfinished_deeds and not self.unfinished()

    def unfinished(self) -> set[str]:
        """The ids of the partitions that have an open range or are not committed to their end."""
        committed = self.database.committed()
        behind = {part.id for part, log in self.logs.items() if committed.get(part.id, log.oldest) != log.end}
        return behind | self.database.open_ranges()

    def newest(self) -> Resolved:
        return resolved(self.alone.connector(NAME).document)

    def place(self) -> Place:
        return Place(
            scheduler=self.scheduler,
            faults=self.faults,
            source=lambda side: self.source(),
            sink=lambda side, holder: SimulatedSink(self.broker, **side.options, holder=holder),
            step=self.step,
            looks=self._looks,
            pace=self.plan.pace,
            hosts=self.hosts,
            breaks=self.problems.append,
        )

    def _looks(self, scan: Scan) -> None:
        self.broker.looked_ahead |= {
            item.range.partition.id for item in scan.ranges if any(floor.ahead for floor in item.floors)
        }

    def source(self) -> SimulatedSource:
        return SimulatedSource(self.logs, self.plan.source_batch, self.step, self.faults)

    def holder(self) -> str:
        self.holders += 1
        return f"holder {self.holders}"

    def revise(self, document: dict[str, object]) -> None:
        self.alone.apply(NAME, document, who="operator")

    def _look_at_floors(self) -> None:
        self.problems += above_unsettled(self.broker, self.database)


@dataclass
class Starter:
    """Who starts the runs of one task, one after the other, and sometimes a second one beside a living one."""

    history: History
    task: int

    def run(self) -> None:
        history, scheduler = self.history, self.history.scheduler
        attempts = 0
        while not history.over() and not history.problems:
            if not self._is_wanted():
                scheduler.wait(0.3)
                continue
            attempts += 1
            if attempts > MAX_ATTEMPTS:
                history.problems.append(f"task {self.task} is not done after {MAX_ATTEMPTS} runs")
                return
            done = self._one_run()
            scheduler.wait(0.05 if done else scheduler.chance.choice((0.01, 0.2, 0.5, 1)))

    def _is_wanted(self) -> bool:
        """There is something to do for the task; sometimes it runs for nothing."""
        database = self.history.database
        if self.task >= database.tasks() or database.paused():
            return False
        shares = database.shares()
        mine = any(shares.get(partition, self.task) == self.task for partition in self.history.unfinished())
        return mine or self.history.scheduler.chance.random() < 0.1

    def _one_run(self) -> bool:
        """True when it did all there was."""
        drivers: list[Driver] = []

        def spawn(after_s: float) -> Actor:
            drivers.append(Driver(self.history, self.task))
            return drivers[-1].spawn(after_s)

        until_over(self.history, spawn)
        return drivers[0].done


@dataclass
class Driver:
    """One run of one task, as a process."""

    history: History
    task: int
    done: bool = False

    def spawn(self, after_s: float) -> Actor:
        self.actor = spawn_driver(self.history, self._run, after_s)
        return self.actor

    def _run(self) -> None:
        history = self.history
        try:
            history.step("starts")
            self._attempt()
            history.scheduler.tell("is done")
            self.done = True
        except Retriable as error:
            history.counts["runs that may be tried again"] += 1
            history.scheduler.tell(f"fails: {error}")
        except LeaseHeld as error:
            history.counts["runs fenced" if isinstance(error, Fenced) else "runs refused"] += 1
            history.scheduler.tell(f"is refused: {error}")
        except (OffsetGone, TooManyRejects) as error:
            history.scheduler.tell(f"needs a person: {error}")
            Rescue(history).after(error)

    def _attempt(self) -> None:
        history, ledger = self.history, self.history.ledger
        connector = ledger.connector(NAME)
        if connector.target_state != "running":
            history.scheduler.tell("is paused")
            return
        document = resolved(connector.document)
        assignment = ledger.assign(UID, sorted(history.logs), document.tasks)
        if self.task >= assignment.tasks:
            return
        place = history.place()
        engine = SimulatedEngine(place, self.actor, lambda: run.held.leases[0].counter)
        context = RunContext(
            ledger=ledger,
            connector=connector,
            resolved=document,
            resolve=lambda revision, pinned=None: resolved(ledger.document(UID, revision)),
            engine=engine,
            home=history.home,
            times=TIMES,
            lanes=history.plan.lanes,
            find_slice_s=FIND_SLICE_S,
            holder=history.holder(),
            listener=RunListener(self._says, lambda progress: None),
            window_s=history.plan.window_s,
            batch_ranges=1 if history.seed % 4 == 2 else RANGES,
        )
        end_older_versions(
            ledger,
            UID,
            assignment.version,
            holder=context.holder,
            home=history.home,
            times=TIMES,
            say=self._says,
        )
        run = SimulatedRun(context, assignment, self.task, history.source(), place.sink(document.sink, Holder()))
        run.step = history.step
        run.run()

    def _says(self, text: str) -> None:
        self.history.scheduler.tell(f"says: {text}")
        for words, name in _COUNTED.items():
            self.history.counts[name] += words in text


_COUNTED = {
    "an earlier attempt left": "runs that inherit open ranges",
    "its lock is free": "taken over by proof",
    "gave no sign of life": "taken over after a time to live",
}


@dataclass
class Operator:
    """Somebody does something at a moment; what is refused is refused."""

    history: History
    deed: Deed

    def run(self) -> None:
        history = self.history
        history.counts[self.deed.kind] += 1
        history.scheduler.tell(self.deed.kind)
        try:
            _DEEDS[self.deed.kind](self)
        except WaybillError as refused:
            history.counts[f"{self.deed.kind}, refused"] += 1
            history.scheduler.tell(f"is refused: {refused}")
        finally:
            history.unfinished_deeds -= 1

    def grow(self) -> None:
        partition, log = self._log()
        count = self._chance().randint(1, 20)
        log.entries += [entry(self._chance(), partition.key, log.end + n, self.history.plan.odd) for n in range(count)]

    def others_write(self) -> None:
        queues = sorted(self.history.broker.queues)
        for _ in range(self._chance().randint(1, 5)):
            if queues:
                self.history.broker.store_foreign(self._chance().choice(queues), self._chance().randint(1, 20))
            self.history.scheduler.wait(self._chance().uniform(0, 0.05))

    def expire(self) -> None:
        _, log = self._log()
        log.oldest = max(log.oldest, self._chance().randint(0, log.end))

    def revise(self) -> None:
        document = self.history.alone.connector(NAME).document
        changed = revised(self._chance(), document)
        if changed["topic"] == document["topic"]:
            self.history.broker.create(document["topic"], changed["queues"])
        self.history.revise(changed)

    def pause(self) -> None:
        self.history.alone.set_target_state(UID, "paused", who="operator")
        self.history.scheduler.wait(self._chance().uniform(0.1, 2))
        self.history.alone.set_target_state(UID, "running", who="operator")

    def set_offset(self) -> None:
        self._change(abandon=False)

    def abandon(self) -> None:
        self._change(abandon=True)

    def undo(self) -> None:
        """A change, and after a while the change of the change."""
        partition = self._change(abandon=False)
        self.history.scheduler.wait(self._chance().uniform(0.01, 1))
        undo_offset(self.history, self._assignment(), partition)

    def _change(self, abandon: bool) -> Partition:
        partition, log = self._log()
        offset = self._chance().randint(0, log.end)
        set_offset(self.history, self.history.source(), self._assignment(), partition, offset, abandon=abandon)
        return partition

    def _assignment(self) -> Assignment:
        """Made when no run has made one yet."""
        ledger = self.history.ledger
        assignment = ledger.assignment(UID)
        if assignment.version:
            return assignment
        return ledger.assign(UID, sorted(self.history.logs), self.history.newest().tasks)

    def _chance(self) -> random.Random:
        return self.history.scheduler.chance

    def _log(self) -> tuple[Partition, Log]:
        partition = self._chance().choice(sorted(self.history.logs))
        return partition, self.history.logs[partition]


_DEEDS: dict[str, Callable[[Operator], None]] = {
    deeds.GROW: Operator.grow,
    deeds.FOREIGN: Operator.others_write,
    deeds.EXPIRE: Operator.expire,
    deeds.REVISE: Operator.revise,
    deeds.PAUSE: Operator.pause,
    deeds.SET: Operator.set_offset,
    deeds.ABANDON: Operator.abandon,
    deeds.UNDO: Operator.undo,
}


@dataclass
class Rescue:
    """What a person does when a run says that one is needed; always, so that every history comes to an end."""

    history: History

    def after(self, error: OffsetGone | TooManyRejects) -> None:
        history = self.history
        document = history.alone.connector(NAME).document
        if isinstance(error, TooManyRejects):
            history.revise({**document, "tolerance": -1})
        elif document["on_data_loss"] == "fail":
            history.revise({**document, "on_data_loss": "skip"})


def _of_its_kind(seed: int, scenario: Scenario) -> Scenario:
    """A third by key; of five one with topics that records name, also by key."""
    some = by_key(scenario) if seed % 3 == 0 else scenario
    return to_topics_that_records_name(some) if seed % 5 == 1 else some


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
