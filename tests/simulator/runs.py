"""Who starts the runs of a journey, and the runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connect_core.errors import (
    ConfigError,
    Fenced,
    LeaseHeld,
    OffsetGone,
    Retriable,
    TargetChanged,
    TooManyRejects,
    WaybillError,
)
from connect_core.replication.driver import run as running
from connect_core.replication.driver.context import RunContext, RunListener
from connect_core.replication.driver.ledger_batches import RANGES
from tests.simulator.engine import SimulatedEngine
from tests.simulator.history import FIND_SLICE_S
from tests.simulator.ledger import NAME, UID
from tests.simulator.offsets import TIMES
from tests.simulator.people import Person
from tests.simulator.scheduler import Actor
from tests.simulator.starting import spawn_driver, until_over

if TYPE_CHECKING:
    from tests.simulator.journey import Journey

MAX_ATTEMPTS = 80
_BETWEEN_S = 0.6
"""Between two runs of a calm world: longer than a renamed file must have been left alone."""


@dataclass
class Starter:
    """Who starts the runs of one task, one after the other, and sometimes a second one beside a living one."""

    journey: Journey
    task: int

    def run(self) -> None:
        journey, scheduler = self.journey, self.journey.scheduler
        attempts = 0
        while not journey.over():
            if self.task >= journey.document["tasks"] or journey.database.paused():
                scheduler.wait(0.5)
                continue
            attempts += 1
            if attempts > MAX_ATTEMPTS:
                journey.problems.append(f"task {self.task} is not done after {MAX_ATTEMPTS} runs")
                return
            if self._one_run():
                journey.ended_well(self.task)
            scheduler.wait(_BETWEEN_S if journey.calm else scheduler.chance.choice((0.05, 0.3, 0.8)))

    def _one_run(self) -> bool:
        """True when it did all there was."""
        drivers: list[Driver] = []

        def spawn(after_s: float) -> Actor:
            drivers.append(Driver(self.journey, self.task))
            return drivers[-1].spawn(after_s)

        until_over(self.journey, spawn)
        return drivers[0].done


@dataclass
class Driver:
    """One run of one task, as a process."""

    journey: Journey
    task: int
    done: bool = False

    def spawn(self, after_s: float) -> Actor:
        self.actor = spawn_driver(self.journey, self._run, after_s)
        return self.actor

    def _run(self) -> None:
        journey = self.journey
        say, began_ns = journey.scheduler.tell, journey.scheduler.now_ns
        try:
            journey.step("starts")
            self._attempt()
            say("is done")
            self.done = True
        except Retriable as error:
            journey.counts["runs that may be tried again"] += 1
            say(f"fails: {error}")
        except LeaseHeld as error:
            journey.counts["runs fenced" if isinstance(error, Fenced) else "runs refused"] += 1
            say(f"is refused: {error}")
        except (OffsetGone, TooManyRejects, TargetChanged) as error:
            say(f"needs a person: {error}")
            self.done = Person(journey, began_ns).answers(error)
        except WaybillError as error:
            if self._is_explained(error):
                say(f"ends: {error}")
                return
            journey.problems.append(f"a run fails for good: {type(error).__name__}: {error}")

    def _is_explained(self, error: WaybillError) -> bool:
        """It is paused."""
        return isinstance(error, ConfigError) and "is paused" in error.what

    def _attempt(self) -> None:
        journey, ledger = self.journey, self.journey.ledger
        connector = ledger.connector(NAME)
        engine = SimulatedEngine(journey.place(), self.actor, lambda: engine.run.held.leases[0].counter)
        context = RunContext(
            ledger=ledger,
            connector=connector,
            resolved=journey.resolved(connector.document),
            resolve=lambda revision, pinned=None: journey.resolved(ledger.document(UID, revision)),
            engine=engine,
            home=journey.home,
            times=TIMES,
            lanes=journey.is_planned.lanes,
            find_slice_s=FIND_SLICE_S,
            holder=journey.holder(),
            listener=RunListener(self._says, lambda progress: None),
            accept_gaps=journey.accepts_gaps,
            window_s=0 if journey.calm else journey.is_planned.window_s,
            batch_ranges=1 if journey.seed % 4 == 1 else RANGES,
        )
        running.run_task(context, self.task)

    def _says(self, text: str) -> None:
        self.journey.scheduler.tell(f"says: {text}")
