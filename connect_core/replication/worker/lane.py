"""What a worker does: source -> pipeline -> sink for each range of a lane, one receipt a range.

Called by the engines inside the worker process, with the kernel timer armed and the lane's locks shared. Knows
neither ledger nor engine. Nothing is written that a receipt does not tell of, unless the outcome says so (`clean`).
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from threading import Event
from typing import TYPE_CHECKING

from connect_core import clock, packages, systems
from connect_core.config import revealed
from connect_core.observe import Step, reached
from connect_core.replication.worker.end_times import EndTimes
from connect_core.replication.worker.letters import letters_source, opened_letters
from connect_core.replication.worker.live import LiveLane
from connect_core.replication.worker.pacer import Pacer
from connect_core.replication.worker.plugin_code import of_one_version
from connect_core.replication.worker.range import WorkerRange, home_of
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Limit
from connect_core.work import Lane, Outcome, ScanTask, Side

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

_TIME_TO_END = 4
"""One part in so many of a lane's time is for its end."""


class KeptSource:
    """The source of a worker that stays, with its connections, from one lane to the next that reads the same one; and
    how long these took to end. The sink is not kept: what a lane writes has to end within its time (delivery rule 2).
    """

    def __init__(self) -> None:
        self.end_times = EndTimes()
        self._side: Side | None = None
        self._resources = ExitStack()
        self._source: Source

    def of(self, lane: Lane) -> Source:
        side = revealed(lane.source)
        if side != self._side:
            self.close()
            self._source = systems.source(side, self._resources)
            self._side = side
        if lane.letters is None:
            return self._source
        return letters_source(self._source, opened_letters(lane.letters, lane.decrypt))

    def close(self) -> None:
        """Nothing that it may raise concerns what was moved."""
        self._side, resources, self._resources = None, self._resources, ExitStack()
        with suppress(Exception):
            resources.close()


def work(lane: Lane, kept: KeptSource, stopped: Event | None = None) -> list[Outcome]:
    """Works through a lane between the systems that it names. `stopped` ends its quantum early. After a failure the
    source is not used again."""
    loaded = packages.modules()
    with ExitStack() as unless_all_is_well:
        unless_all_is_well.callback(kept.close)
        with ExitStack() as resources:
            sink = systems.sink(revealed(lane.sink), resources)
            outcomes = move(lane, kept.of(lane), sink, stopped, kept.end_times)
        outcomes = of_one_version(lane, outcomes, loaded)
        if not any(outcome.failure for outcome in outcomes):
            unless_all_is_well.pop_all()
        return outcomes


def move(
    lane: Lane, source: Source, sink: Sink, stopped: Event | None = None, end_times: EndTimes | None = None
) -> list[Outcome]:
    """Works through the ranges in order until the quantum is over, then follows the live ones, all at once. Ranges that
    were not begun have no outcome.

    A failure of the target ends the lane: order within it is kept, and the ranges behind it stay open. One that
    concerns a partition alone does not (delivery rule 26); nothing more of that partition is written.
    """
    limit = _limit(lane)._replace(stopped=stopped)
    reached(Step.LANE_STARTED, home=home_of(lane), where=lane.connector)
    pacer = Pacer(lane.pace, limit)
    live = [item for item in lane.ranges if item.range.live]
    outcomes: list[Outcome] = []
    for item in lane.ranges:
        if item.range.live:
            continue
        if limit.quantum_left_s() <= 0:
            break
        outcome = WorkerRange(lane, item, source, sink, limit, pacer).run()
        outcomes.append(outcome)
        if outcome.failure and not outcome.apart:
            return outcomes
    if live and limit.quantum_left_s() > 0:
        outcomes += LiveLane(lane, live, source, sink, limit, pacer, end_times or EndTimes()).run()
    return outcomes


def take_what_is_installed() -> None:
    """Packages that were replaced since this process loaded them are loaded again when they are named. Between two runs
    alone: a process of Spark's works for one after the other."""
    if packages.replaced():
        systems.SYSTEMS.reload()


def scan(task: ScanTask) -> dict[int, ScanResult]:
    """One slice of looking for records of ours in the target: read-only."""
    with ExitStack() as resources:
        return systems.sink(revealed(task.sink), resources).scan(task.scan)


def _limit(lane: Lane) -> Limit:
    """The quantum of a lane that starts late, on a busy machine, is shorter: a fourth of the time that is left is for
    making durable and telling what was moved. A lane that is killed at its deadline has moved nothing."""
    now = clock.now_ns()
    latest = lane.deadline_ns - max(lane.deadline_ns - now, 0) // _TIME_TO_END
    return Limit(min(now + int(lane.quantum_s * 1e9), latest), lane.deadline_ns, lane.first_record_timeout_s)
