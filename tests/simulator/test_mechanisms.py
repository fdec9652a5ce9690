"""The simulator can fail: with a mechanism of the product taken out it finds a history in which a rule is broken.

Each mechanism is taken out by hand here and nowhere else; the seeds are those after which it is found at the latest.
`make test` takes one of them, `make faults` all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pytest

from connect_core.engine import host_clocks
from connect_core.ledger import leases, settling
from connect_core.replication.driver import leases as driver_leases
from connect_core.replication.driver import recovery, task
from connect_core.replication.worker import counts
from connect_core.sdk.values import FloorMove, Limit
from connect_core.systems.rocketmq import finding
from connect_core.systems.rocketmq.writing import QueueWriter
from tests.simulator import engine
from tests.simulator.broker import SimulatedClient, SimulatedSink
from tests.simulator.faults import (
    COMMIT_LOST,
    ENGINE_LOST,
    KILLED_DRIVER,
    KILLED_WORKER,
    LANE_STRAYS,
    SECOND_RUN,
    SEND_LOST,
    SEND_ORPHANED,
    SEND_UNANSWERED,
    ZOMBIE_DRIVER,
    ZOMBIE_WORKER,
    FaultPlan,
)
from tests.simulator.hosts import WITH_HOSTS
from tests.simulator.running import simulated
from tests.simulator.scenario import REVISE, Deed, Scenario, drawn

FIRST_SEED, MOST = 1_000_000, 300
SEEDS = range(FIRST_SEED, FIRST_SEED + MOST)


def no_find(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "search", lambda run, ranges: list(ranges))


def floors_at_the_end_of_the_target(patch: pytest.MonkeyPatch) -> None:
    """Delivery rule 6 as it is easily got wrong: the next attempt looks behind what stands there now."""
    kept = counts.next_floors

    def fresh(item: Any, delivered: Any, end: int, *rest: int, **limits: bool) -> tuple[FloorMove, ...]:
        found = item.found.scanned if item.found else {}
        moves = []
        for begin, floor in kept(item, delivered, end, *rest, **limits):
            behind = max(floor.position, found.get(floor.target, 0))
            moves.append(FloorMove(begin, floor._replace(position=behind, ahead=False)))
        return tuple(moves)

    patch.setattr(counts, "next_floors", fresh)


def no_floors_kept(patch: pytest.MonkeyPatch) -> None:
    kept = SimulatedSink.floors
    patch.setattr(SimulatedSink, "floors", lambda self, wanted, known, *, restored: kept(self, wanted, ()))


def deadline_ignored(patch: pytest.MonkeyPatch) -> None:
    """No kernel timer, and nobody looks at the clock."""
    patch.setattr(Limit, "left_s", lambda self: 1e6)
    patch.setattr(Limit, "quantum_left_s", lambda self: 1e6)
    patch.setattr(engine, "KERNEL_TIMER", False)


def taken_over_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(driver_leases, "_wait_until_over", lambda ledger, seen, *rest: (seen, "silence"))


def proof_without_locks(patch: pytest.MonkeyPatch) -> None:
    """Lanes share no lock: a driver's death is taken for that of its workers."""
    patch.setattr(engine, "shared", lambda paths: nullcontext())


def epoch_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leases, "_touch", lambda connection, lease, **values: None)


def settle_not_keyed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling, "_is_stored", lambda row, epoch, receipt: False)


def no_barrier(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedClient, "barrier", lambda self, broker, *, deadline: None)
    patch.setattr(finding, "SEND_QUEUE_S", 0.0)


def send_queue_not_waited_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(finding, "SEND_QUEUE_S", 0.0)


def revisions_not_pinned(patch: pytest.MonkeyPatch) -> None:
    """Open ranges are finished with the newest document."""
    patch.setattr(task.TaskRun, "resolved_for", lambda self, revision: self.context.resolved)


def unclean_is_receipted(patch: pytest.MonkeyPatch) -> None:
    """A flush that fails is taken for one that returned."""
    flush = QueueWriter.flush

    def hopeful(self: QueueWriter, limit: Limit) -> Any:
        try:
            return flush(self, limit)
        except Exception:
            self.appender._sender._over, self.appender._sender._outstanding = False, None
            return flush(self, limit)

    patch.setattr(QueueWriter, "flush", hopeful)


def deadline_of_another_host_ignored(patch: pytest.MonkeyPatch) -> None:
    """The driver's deadline is taken for one of the clock there."""
    patch.setattr(engine, "lane_there", lambda lane, sample: replace(lane, boot_id=sample.reading.boot_id))


def drift_ignored(patch: pytest.MonkeyPatch) -> None:
    """Clocks are taken to count alike."""
    patch.setattr(host_clocks, "COUNTS_PERCENT", 100)


def lane_on_an_unsampled_host_let_through(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine._Job, "_strays", lambda self: False)


def locks_speak_for_other_hosts(patch: pytest.MonkeyPatch) -> None:
    """Whoever takes over believes the locks of a run that has lanes elsewhere."""
    patch.setattr(driver_leases.HeldLeases, "reach_other_hosts", lambda self: None)


def let_go_while_lanes_on_other_hosts_work(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(driver_leases.HeldLeases, "lanes_at_work", lambda self, deadline_ns: nullcontext())


@dataclass(frozen=True)
class Trial:
    """A mechanism to take out, and what must go wrong so that its absence shows. Some need `hosts` beside that of the
    drivers."""

    take_out: Callable[[pytest.MonkeyPatch], None]
    kinds: tuple[str, ...]
    deeds: tuple[str, ...] = ()
    pace: float = 30
    hosts: bool = False


TRIALS = (
    Trial(no_find, (KILLED_WORKER,)),
    Trial(floors_at_the_end_of_the_target, (KILLED_WORKER,), pace=60),
    Trial(no_floors_kept, (KILLED_WORKER,), pace=60),
    Trial(deadline_ignored, (ZOMBIE_WORKER, KILLED_DRIVER)),
    Trial(taken_over_at_once, (ZOMBIE_DRIVER, SECOND_RUN)),
    Trial(proof_without_locks, (KILLED_DRIVER,), pace=60),
    Trial(epoch_not_checked, (ZOMBIE_DRIVER,)),
    Trial(settle_not_keyed, (COMMIT_LOST,)),
    Trial(no_barrier, (KILLED_WORKER, SEND_UNANSWERED)),
    Trial(send_queue_not_waited_out, (SEND_ORPHANED,)),
    Trial(revisions_not_pinned, (KILLED_WORKER,), (REVISE, REVISE)),
    Trial(unclean_is_receipted, (SEND_UNANSWERED, SEND_LOST)),
    Trial(deadline_of_another_host_ignored, (ZOMBIE_WORKER, KILLED_DRIVER), hosts=True),
    Trial(drift_ignored, (ZOMBIE_WORKER, KILLED_DRIVER), hosts=True),
    Trial(lane_on_an_unsampled_host_let_through, (LANE_STRAYS, ZOMBIE_WORKER), hosts=True),
    Trial(locks_speak_for_other_hosts, (KILLED_DRIVER,), pace=60, hosts=True),
    Trial(let_go_while_lanes_on_other_hosts_work, (ENGINE_LOST, KILLED_WORKER), pace=60, hosts=True),
)


def focused(seed: int, trial: Trial) -> Scenario:
    """The scenario of a seed with these faults only, often."""
    chance = random.Random(seed)
    deeds = tuple(Deed(chance.uniform(0.01, 0.5), kind) for kind in trial.deeds)
    plan = FaultPlan(frozenset(trial.kinds), budget=4, rate=0.1, until_s=30)
    return replace(drawn(chance), faults=plan, deeds=deeds, pace=trial.pace)


def found_at(trial: Trial) -> int | None:
    """How many seeds it takes."""
    seeds = range(FIRST_SEED + 1, FIRST_SEED + WITH_HOSTS * MOST, WITH_HOSTS) if trial.hosts else SEEDS
    return next((n for n, seed in enumerate(seeds, 1) if broken_rules(seed, trial)), None)


def broken_rules(seed: int, trial: Trial) -> tuple[str, ...]:
    """A mechanism that was taken out wrongly breaks no rule: it breaks down."""
    problems = simulated(seed, focused(seed, trial)).problems
    broke_down = [problem for problem in problems if "TypeError" in problem or "AttributeError" in problem]
    assert not broke_down
    return problems


@pytest.mark.fault
@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.take_out.__name__)
def test_a_mechanism_that_is_missing_is_noticed(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    trial.take_out(monkeypatch)
    assert found_at(trial) is not None
