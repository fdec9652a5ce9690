"""What the tasks of one run share: the connector as it is resolved, its engine, its times, and whom it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from connect_core import packages
from connect_core.config import Resolved
from connect_core.ledger import Connector, Ledger
from connect_core.log_lines import telling_of
from connect_core.masking import mask_secrets
from connect_core.planning import Assignment, Share
from connect_core.planning.backfill_plan import BackfillPlan
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.replication.driver.ledger_batches import RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.values import ERRORS_SINK, LIVE, Json
from connect_core.work import Engine


@dataclass(frozen=True)
class Progress:
    """Where a task stands: `done` and `planned` in units of positions (records or bytes, by source)."""

    task: int
    done: int
    planned: int
    records: int


@dataclass(frozen=True)
class RunListener:
    """Whom a run tells what it does: sentences, without what references stand for, and numbers for a progress bar."""

    log: Callable[[str], None]
    progress: Callable[[Progress], None]

    def __post_init__(self) -> None:
        write = self.log
        object.__setattr__(self, "log", lambda text: write(mask_secrets(text)))

    def of(self, **of: object) -> RunListener:
        """The same, of this connector, run or task, whichever thread tells it."""

        def log(text: str) -> None:
            with telling_of(**of):
                self.log(text)

        def progress(now: Progress) -> None:
            with telling_of(**of):
                self.progress(now)

        return RunListener(log, progress)


class Resolve(Protocol):
    """The connector as a revision of its document has it, with connections as they were `pinned`."""

    def __call__(self, revision: int, pinned: Json | None = None) -> Resolved: ...


class CheckEvolved(Protocol):
    """A document that a run has evolved, from what a revision of the connector says to what can be stored. With
    `register` a registry gives a new schema its number. Raises ConfigError where something does not take the fields."""

    def __call__(self, old: Connector, document: Json, *, register: bool) -> Json: ...


def _as_it_is(old: Connector, document: Json, *, register: bool) -> Json:
    return document


@dataclass(frozen=True)
class RunContext:
    """All that the tasks of one run share. `resolve` gives the connector as it was when a range was planned."""

    ledger: Ledger
    connector: Connector
    resolved: Resolved
    resolve: Resolve
    engine: Engine
    home: Path
    times: LeaseTimes
    lanes: int
    find_slice_s: float
    holder: str
    listener: RunListener
    stream: str = LIVE
    backfill_plan: BackfillPlan | None = None
    """What a backfill or a replay moves, and nothing else; None: what there is."""
    replays_letters: bool = False
    """Whether its records are dead letters, which the ledger has, and not those of the source."""
    window_s: float = 0.0
    """How long a run stays and follows its source, from its start; 0: it ends when what was there is moved."""
    attempt_of: str | None = None
    """What this run is a part or an attempt of elsewhere: the run of a scheduler."""
    halted: Callable[[], str] = lambda: ""
    """Why the run shall end at the next range boundary though the ledger does not say so; empty: it goes on."""
    batch_ranges: int = RANGES
    """How many ranges one transaction of the ledger plans or settles."""
    check_evolved: CheckEvolved = _as_it_is
    accept_gaps: bool = False
    """A person has said for this run that records are gone: it goes on behind them, whatever the document says."""
    loaded: Mapping[str, int] = field(default_factory=packages.modules)
    """What of packages was loaded when the run began (`packages.mixed`)."""

    @property
    def is_backfill(self) -> bool:
        """Whether somebody has begun what it moves, and may resume or cancel it."""
        return self.stream not in (LIVE, ERRORS_SINK)


def shares_of(context: RunContext, assignment: Assignment, task: int) -> dict[Partition, Share]:
    """The partitions that one task of this run moves."""
    wanted = context.backfill_plan.partitions() if context.backfill_plan else assignment.shares.keys()
    return {part: share for part, share in assignment.shares.items() if share.task == task and part in wanted}
