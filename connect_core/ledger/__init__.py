"""The ledger: the database that remembers what was moved. Nobody outside this room talks SQL to it.

`Ledger` is put together from one class for each responsibility; each method is one transaction. Methods that take
`leases` are fenced (`leases`): a run that lost its lease gets Fenced and changes nothing. Errors of the database come
out as errors of `connect_core.errors`: Unreachable, Retriable, DataError.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from connect_core.ledger.access_tokens import AccessToken, AccessTokens
from connect_core.ledger.assignments import Assignments
from connect_core.ledger.backfills import UNFINISHED, Backfill, Backfills
from connect_core.ledger.begun import Begun
from connect_core.ledger.connectors import Applied, Connector, Connectors, ConnectorStanding, Revision
from connect_core.ledger.database import engine_for, parse_url
from connect_core.ledger.dead_letters import REPLAY_KIND, STATES, Count, DeadLetter, DeadLetters, Wanted
from connect_core.ledger.errors_sink import ErrorsSink, SentLetter, moves_letters
from connect_core.ledger.figures import ConnectorFigures, EndedRun, Figures, StreamSums
from connect_core.ledger.first_answers import FirstAnswer, FirstAnswers
from connect_core.ledger.floors import FloorsBeside
from connect_core.ledger.history import (
    CommittedOffset,
    Deed,
    History,
    OffsetStep,
    Run,
    SettledRange,
    StoredGap,
)
from connect_core.ledger.identity import Identity
from connect_core.ledger.kept_rows import KeptRows
from connect_core.ledger.leases import Lease, Leases, LeaseState, target_lease_id, task_lease_id
from connect_core.ledger.letter_replays import LetterChoice, LetterReplays, replay_stream, replays_letters
from connect_core.ledger.live import LiveRanges
from connect_core.ledger.offsets import Offsets
from connect_core.ledger.operations import OPEN_STATES, Operation, Operations, OperationState
from connect_core.ledger.partitions import PartitionState, PartitionStates
from connect_core.ledger.ranges import Ranges, TargetWriter
from connect_core.ledger.repeats import LastChange, Moves, Repeats
from connect_core.ledger.runs import Runs, new_run_id
from connect_core.ledger.schema import check, file_identity, is_made, require_current, require_file, upgrade
from connect_core.ledger.settling import Settling
from connect_core.ledger.standings import Standing, Standings
from connect_core.ledger.tracing import BegunRange, Traces
from connect_core.ledger.writers import Writers, WritersChanged, WritersSeen

__all__ = [
    "OPEN_STATES",
    "REPLAY_KIND",
    "STATES",
    "UNFINISHED",
    "AccessToken",
    "Applied",
    "Backfill",
    "Begun",
    "BegunRange",
    "CommittedOffset",
    "Connector",
    "ConnectorFigures",
    "ConnectorStanding",
    "Count",
    "DeadLetter",
    "Deed",
    "EndedRun",
    "FirstAnswer",
    "FloorsBeside",
    "LastChange",
    "Lease",
    "LeaseState",
    "Ledger",
    "LetterChoice",
    "OffsetStep",
    "Operation",
    "OperationState",
    "PartitionState",
    "Repeats",
    "Revision",
    "Run",
    "SentLetter",
    "SettledRange",
    "Standing",
    "StoredGap",
    "StreamSums",
    "TargetWriter",
    "Wanted",
    "WritersChanged",
    "WritersSeen",
    "check",
    "file_identity",
    "is_made",
    "moves_letters",
    "new_run_id",
    "replay_stream",
    "replays_letters",
    "target_lease_id",
    "task_lease_id",
    "upgrade",
]


class Ledger(
    Connectors,
    Assignments,
    Leases,
    Runs,
    Ranges,
    LiveRanges,
    KeptRows,
    Settling,
    PartitionStates,
    Offsets,
    Moves,
    History,
    DeadLetters,
    LetterReplays,
    ErrorsSink,
    Backfills,
    Identity,
    Traces,
    Figures,
    AccessTokens,
    Operations,
    FirstAnswers,
    Standings,
    Writers,
):
    """An open ledger; threads may share it, forked processes must open their own. Close it, or use it with `with`."""

    @classmethod
    def open(cls, url: str) -> Self:
        """Raises ConfigError when there is no ledger or its schema does not fit this code, Unreachable when the
        database does not answer."""
        engine = engine_for(parse_url(url))
        try:
            require_current(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    @classmethod
    def glance(cls, url: str) -> Self:
        """For readers that look every few seconds and ask for one thing: the schema is not looked at first."""
        parsed = parse_url(url)
        require_file(parsed)
        return cls(engine_for(parsed))

    def require_current(self) -> None:
        """Raises what `open` raises: for one that stays open for long."""
        require_current(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
