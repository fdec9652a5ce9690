"""What a connector does now, since when and why: one answer for every edge that shows it.

`status_of` is pure; `facts` asks the ledger for what it judges by. The live stream only: backfills tell of
themselves. Whether a driver of another host is alive cannot be seen from here, so what it holds counts as held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from connect_core import clock
from connect_core.config import Settings
from connect_core.errors import Failure
from connect_core.ledger import Connector, LeaseState, Ledger, Run, Standing
from connect_core.replication.host import of_this_home
from connect_core.sdk.values import LIVE

State = Literal["running", "waiting", "failed", "blocked", "paused", "stopped", "idle", "new"]
Switch = Literal["on", "paused", "stopped", "unknown"]

_GRAVITY: Mapping[State, int] = {"blocked": 3, "failed": 2, "waiting": 1, "idle": 0, "new": 0}
_RUNS = 50
"""So many of the newest runs of each task are looked at: what failed more often than that counts as begun there."""
_LOST = Failure("Lost", "its process ended without reporting", next_step="The next run continues where it stopped")


class Schedules(NamedTuple):
    """Who runs the connectors. `switches` says by name whether a scheduler has one switched on; None: there is no
    scheduler, so that only the ledger says what a connector shall do. `retries` is how often it tries a run again."""

    switches: Mapping[str, Switch] | None = None
    retries: int = 0


@dataclass(frozen=True)
class PutAside:
    """A partition that failed while the others went on; each run tries it again."""

    partition: str
    since: datetime | None
    reason: str
    exit_code: int | None = None


@dataclass(frozen=True)
class Status:
    """`state` in a word: running (a task holds its lease, or begins); waiting (the last attempt failed, and it is tried
    again by itself); failed (likewise, but nothing tries it again); blocked (a person has to mend something first);
    paused, stopped (a person's wish; `why` still tells of the last attempt); idle (all that was there is moved); new.

    `since` is when that began: for what fails its first attempt. `attempts` counts those that failed one after the
    other; `run` is the newest of them, or that at work, and `exit_code` what its command ended with. `switch` is
    whether it shall run at all. `quarantined` are the partitions that were put aside.
    """

    connector: str
    state: State
    switch: Switch
    since: datetime | None = None
    why: str = ""
    next_step: str = ""
    attempts: int = 0
    run: str | None = None
    exit_code: int | None = None
    quarantined: tuple[PutAside, ...] = ()


@dataclass(frozen=True)
class StatusFacts:
    """What is judged by: `runs` of the live stream, newest first; `held`: whether a lease of a task is held by somebody
    alive; `switched_at`: when the switch was last turned, where that is known; `again`: whether a schedule begins runs.
    """

    connector: str
    tasks: int
    switch: Switch
    runs: Sequence[Run]
    held: bool
    now: datetime
    starting_s: float
    again: bool = False
    retries: int = 0
    switched_at: datetime | None = None
    quarantined: tuple[PutAside, ...] = ()


def status_of(facts: StatusFacts) -> Status:
    """Pure."""
    return replace(_judged(facts), quarantined=facts.quarantined)


def _judged(facts: StatusFacts) -> Status:
    worst = max(_by_task(facts), key=lambda one: _GRAVITY[one.state], default=_never(facts))
    at_work = [run for run in facts.runs if run.state == "running"]
    if facts.held or _starts(facts, at_work):
        began = min((run.started_at for run in at_work[: facts.tasks]), default=None)
        run = at_work[0].id if at_work else None
        return replace(worst, state="running", since=began, run=run, exit_code=None)
    if facts.switch == "paused" or facts.switch == "stopped":
        return replace(worst, state=facts.switch, since=facts.switched_at)
    return worst


def _never(facts: StatusFacts) -> Status:
    return Status(facts.connector, "new", facts.switch, facts.switched_at)


def _by_task(facts: StatusFacts) -> Iterator[Status]:
    """How it stands with each task, by its runs that are over."""
    for task in range(facts.tasks):
        over = [run for run in facts.runs if run.task == task and not _is_under_way(facts, run)]
        over.sort(key=_ended, reverse=True)
        if over:
            yield _after(facts, over)


def _after(facts: StatusFacts, over: Sequence[Run]) -> Status:
    last = over[0]
    if last.state == "done":
        return Status(facts.connector, "idle", facts.switch, last.ended_at, run=last.id)
    failing = list(_until_done(over))
    failure = last.failure or _LOST
    code = failure.as_error().exit_code
    state: State = "waiting" if _tried_again(facts, failing) else "failed"
    if code in (2, 5, 6):
        state = "blocked"
    where = f" [{failure.where}]" if failure.where else ""
    return Status(
        connector=facts.connector,
        state=state,
        switch=facts.switch,
        since=failing[-1].started_at,
        why=f"{failure.kind}: {failure.what}{where}",
        next_step=failure.next_step,
        attempts=len(failing),
        run=last.id,
        exit_code=code,
    )


def _until_done(over: Sequence[Run]) -> Iterator[Run]:
    for run in over:
        if run.state == "done":
            return
        yield run


def _tried_again(facts: StatusFacts, failing: Sequence[Run]) -> bool:
    """By a schedule, or by a scheduler that has not tried its run often enough yet."""
    if facts.switch in ("paused", "stopped"):
        return False
    of = failing[0].attempt_of
    return facts.again or (of is not None and sum(run.attempt_of == of for run in failing) <= facts.retries)


def _is_under_way(facts: StatusFacts, run: Run) -> bool:
    return run.state == "running" and (facts.held or _starts(facts, [run]))


def _starts(facts: StatusFacts, at_work: Sequence[Run]) -> bool:
    """A run that began a moment ago may not have its lease yet."""
    return any((facts.now - run.started_at).total_seconds() < facts.starting_s for run in at_work)


def _ended(run: Run) -> datetime:
    return run.ended_at or run.started_at


# --------------------------------------------------------------------------------------------------------- the ledger


def facts(
    ledger: Ledger, settings: Settings, home: Path | None, schedules: Schedules, connectors: Sequence[Connector]
) -> dict[str, StatusFacts]:
    """Of these connectors, by name: of one alone, or of many, for which the ledger is asked for all."""
    alive = _alive_here(settings, home)
    asked = any(_ledger_knows_since_when(one, schedules) for one in connectors)
    standings = ledger.standings(connectors[0].uid if len(connectors) == 1 else None, switched=asked)
    found: dict[str, StatusFacts] = {}
    for one in connectors:
        known = _facts(standings.get(one.uid, Standing()), one, settings, schedules, alive)
        found[one.name] = _with_attempts(ledger, one.uid, known)
    return found


def _facts(
    standing: Standing,
    connector: Connector,
    settings: Settings,
    schedules: Schedules,
    alive: Callable[[LeaseState], bool],
) -> StatusFacts:
    tasks, scheduled = _shape(connector)
    switch = _switch(connector, schedules)
    return StatusFacts(
        connector=connector.name,
        tasks=tasks,
        switch=switch,
        runs=standing.runs,
        held=any(map(alive, standing.leases)),
        now=clock.utc(),
        starting_s=settings.lease_ttl_s,
        again=schedules.switches is not None and scheduled,
        retries=schedules.retries,
        switched_at=(standing.switched_at or connector.created_at)
        if _ledger_knows_since_when(connector, schedules)
        else None,
        quarantined=tuple(
            PutAside(partition.key, state.since, state.reason, state.exit_code)
            for partition, state in standing.quarantined.items()
        ),
    )


def _with_attempts(ledger: Ledger, uid: str, facts: StatusFacts) -> StatusFacts:
    """Where the last attempt failed, with the runs before it: how often, and since when."""
    if all(_ended_well(facts, task) for task in range(facts.tasks)):
        return facts
    return replace(facts, runs=ledger.runs(uid, limit=_RUNS * facts.tasks, stream=LIVE))


def _ended_well(facts: StatusFacts, task: int) -> bool:
    over = [run for run in facts.runs if run.task == task and not _is_under_way(facts, run)]
    return not over or max(over, key=_ended).state == "done"


def _shape(connector: Connector) -> tuple[int, bool]:
    """How many tasks it has, and whether a schedule begins its runs; also of a document that cannot be read."""
    tasks, schedule = connector.document.get("tasks"), connector.document.get("schedule")
    count = tasks if isinstance(tasks, int) and tasks > 0 else 1
    return count, isinstance(schedule, dict) and not schedule.get("manual")


def _ledger_knows_since_when(connector: Connector, schedules: Schedules) -> bool:
    """Else Airflow turned the switch."""
    return schedules.switches is None or connector.target_state == "stopped"


def _switch(connector: Connector, schedules: Schedules) -> Switch:
    if connector.target_state == "stopped":
        return "stopped"
    if schedules.switches is None:
        return "paused" if connector.target_state == "paused" else "on"
    return schedules.switches.get(connector.name, "unknown")


def _alive_here(settings: Settings, home: Path | None) -> Callable[[LeaseState], bool]:
    """A holder in this home renews within a time to live; of another one nothing is known."""
    known = home if home and (home / "locks").is_dir() else None
    silent_ns = int((settings.lease_ttl_s + settings.lease_margin_s) * 1e9)

    def alive(lease: LeaseState) -> bool:
        return known is None or not of_this_home(lease.boot_id, known) or clock.now_ns() < lease.deadline_ns + silent_ns

    return alive
