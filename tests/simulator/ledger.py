"""The product's ledger on a SQLite database in memory, and what can go wrong between it and a driver.

A transaction is one event of virtual time, as SQLite has it: writers wait for each other. Faults come before it,
instead of its COMMIT, and between its COMMIT and the answer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import StaticPool

from connect_core.errors import Unreachable
from connect_core.ledger import Begun, Lease, Ledger, upgrade
from connect_core.ledger.database import CommitUnknown, _begin_sqlite, read, write
from connect_core.sdk.values import Floor, OpenRange, Range
from connect_core.work import Outcome
from tests.simulator.faults import COMMIT_LOST, COMMIT_UNDONE, LEDGER_AWAY, Faults

NAME = "orders"
UID = "5117a7ed0001"


class _UndoneError(Exception):
    """Rolls a transaction back whose COMMIT did not arrive."""


class SimulatedLedger(Ledger):
    """`step` lets virtual time pass and processes die; `settled` is called after everything that moves offsets or
    floors. `say` takes what stands in it from then on, for whoever reads a history."""

    def __init__(
        self,
        engine: Engine,
        step: Callable[[str], None],
        faults: Faults,
        settled: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        super().__init__(engine)
        self._step, self._faults, self._have_moved, self._say = step, faults, settled, say

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        self._step("asks the ledger")
        if self._faults.strikes(LEDGER_AWAY, weight=0.25):
            raise Unreachable("the ledger does not answer")
        with read(self._engine) as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        self._step("writes to the ledger")
        fault = self._faults.strikes(LEDGER_AWAY, COMMIT_LOST, COMMIT_UNDONE, weight=0.5)
        if fault == LEDGER_AWAY:
            raise Unreachable("the ledger does not answer")
        try:
            with write(self._engine) as connection:
                yield connection
                if fault == COMMIT_UNDONE:
                    raise _UndoneError
        except _UndoneError:
            raise CommitUnknown("the answer to COMMIT was lost") from None
        if fault == COMMIT_LOST:
            raise CommitUnknown("the answer to COMMIT was lost")
        self._step("has the ledger's answer")

    def plan(
        self,
        leases: Sequence[Lease],
        run_id: str,
        uid: str,
        task: int,
        ranges: Sequence[Range],
        floors: Sequence[Floor],
        beside: Begun | None = None,
    ) -> list[OpenRange]:
        opened = super().plan(leases, run_id, uid, task, ranges, floors, beside)
        for one in opened:
            self._say(f"planned: {_shown(one.range)}{', inherited' if one.inherited else ''} (range {one.id})")
        self._have_moved()
        return opened

    def settle(
        self, leases: Sequence[Lease], run_id: str, uid: str, outcomes: Sequence[Outcome], *, to_sink: bool = False
    ) -> None:
        super().settle(leases, run_id, uid, outcomes, to_sink=to_sink)
        for one in outcomes:
            self._say(f"settled: range {one.range_id} {_receipt(one)}")
        self._have_moved()


def _shown(planned: Range) -> str:
    end = "on" if planned.live else planned.end
    gaps = "".join(f", gap {one.begin} to {one.end} ({one.reason})" for one in planned.gaps)
    return f"{planned.partition.key} {planned.incarnation}: {planned.begin} to {end}{gaps}"


def _receipt(outcome: Outcome) -> str:
    one, failure = outcome.receipt, f" {outcome.failure}" if outcome.failure else ""
    if one is None:
        return f"has no receipt{failure}"
    return f"{one.begin} to {one.end}: {one.delivered} delivered, {one.deduplicated} were there{failure}"


class Database:
    """One database in memory for all histories of a process: each begins with the same freshly made ledger."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.engine = sa.create_engine("sqlite://", creator=lambda: self.connection, poolclass=StaticPool)
        event.listen(self.engine, "begin", _begin_sqlite)

    def begin_anew(self) -> Ledger:
        """A ledger without faults on the emptied database, for whoever looks on."""
        self.connection.deserialize(_template())
        self.connection.execute("PRAGMA foreign_keys = ON")
        return Ledger(self.engine)

    # What is looked at after every step is read without the product, which would take most of the time.

    def tasks(self) -> int:
        """Of the newest revision of the document."""
        row = self.connection.execute("SELECT document FROM connector_revisions ORDER BY revision DESC").fetchone()
        return int(json.loads(row[0])["tasks"])

    def paused(self) -> bool:
        return bool(self.connection.execute("SELECT target_state FROM connectors").fetchone()[0] != "running")

    def shares(self) -> dict[str, int]:
        """The task of each partition id, in the newest version of the assignment."""
        query = "SELECT partition_id, task FROM assignment_shares ORDER BY version"
        return dict(self.connection.execute(query))

    def open_ranges(self) -> set[str]:
        """The ids of the partitions that have one."""
        return {row[0] for row in self.connection.execute("SELECT partition_id FROM ranges WHERE state = 'open'")}

    def committed(self) -> dict[str, int]:
        """By partition id."""
        return dict(self.connection.execute("SELECT partition_id, next_offset FROM offsets"))

    def place(self, partition_id: str) -> tuple[int, int]:
        """Incarnation and offset of what is settled of a partition; zeros where nothing is."""
        query = "SELECT incarnation, next_offset FROM offsets WHERE partition_id = ?"
        row: tuple[int, int] | None = self.connection.execute(query, (partition_id,)).fetchone()
        return row or (0, 0)

    def floors(self) -> dict[tuple[str, str], int]:
        """By partition id and target."""
        rows = self.connection.execute("SELECT partition_id, target, position FROM floors")
        return {(partition_id, target): position for partition_id, target, position in rows}

    def given_up(self, partition_id: str) -> list[tuple[int, int]]:
        """The ranges of a partition that a person gave up: what of them was delivered is in no receipt."""
        query = "SELECT begin_offset, planned_end FROM ranges WHERE state = 'abandoned' AND partition_id = ?"
        return list(self.connection.execute(query, (partition_id,)))

    def moved(self) -> set[str]:
        """The ids of the partitions whose offset was moved by a person."""
        return {row[0] for row in self.connection.execute("SELECT partition_id FROM offset_changes")}


@cache
def _template() -> bytes:
    """The bytes of a migrated ledger."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        upgrade(f"sqlite:///{path}")
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        data = connection.serialize()
        connection.close()
    return data


def name_connector(connection: sqlite3.Connection, uid: str) -> None:
    """Gives the connector that was just made a uid that does not depend on chance."""
    connection.execute("PRAGMA foreign_keys = OFF")
    for table in ("connectors", "connector_revisions", "audit"):
        connection.execute(f"UPDATE {table} SET uid = ?", (uid,))
    connection.execute("PRAGMA foreign_keys = ON")
