"""Operations: long work that a caller of `waybill serve` began, how far it has come, and how it ended. Not fenced: what
an operation moves is, by its own leases.

One that is over stays as it is: who comes later, or too late, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from connect_core.ledger.auditing import note
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.runs import new_run_id
from connect_core.ledger.tables import CONNECTORS, OPERATIONS
from connect_core.sdk.values import Json

OperationState = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]
OPEN_STATES: tuple[OperationState, ...] = ("queued", "running")
"""Of an operation that is not over."""


@dataclass(frozen=True)
class Operation:
    """`connector` is the name; `server` does the work; `step` grows. Of `result` and `problem` there is
    one at most, once it is over."""

    id: str
    uid: str
    connector: str
    kind: str
    asked: Json
    who: str
    server: str
    state: OperationState
    step: int
    progress: Json | None
    result: Json | None
    problem: Json | None
    made_at: datetime
    begun_at: datetime | None
    ended_at: datetime | None

    @property
    def is_over(self) -> bool:
        return self.state not in OPEN_STATES


_WITH_NAME = sa.select(OPERATIONS, CONNECTORS.c.name.label("connector")).join(
    CONNECTORS, CONNECTORS.c.uid == OPERATIONS.c.uid
)


class Operations(Transactions):
    """The part of the ledger that knows them."""

    def add_operation(self, uid: str, kind: str, asked: Json, *, who: str, server: str) -> Operation:
        """One that is queued. Its id sorts by its beginning, as those of runs do."""
        made_at = now()
        number = new_run_id(made_at)
        row = {"id": number, "uid": uid, "kind": kind, "asked": asked, "who": who, "server": server}
        with self._write() as connection:
            connection.execute(OPERATIONS.insert().values(**row, state="queued", step=1, made_at=made_at))
            note(connection, uid, f"begin {kind}", who, detail={"operation": number})
            return _operation_of(connection.execute(_WITH_NAME.where(OPERATIONS.c.id == number)).one())

    def operation(self, number: str) -> Operation | None:
        """None where there is none of this id."""
        with self._read() as connection:
            row = connection.execute(_WITH_NAME.where(OPERATIONS.c.id == number)).one_or_none()
        return None if row is None else _operation_of(row)

    def operations(
        self, uids: Sequence[str] | None = None, *, only_open: bool = False, limit: int | None = None, behind: str = ""
    ) -> list[Operation]:
        """The newest first: of these connectors, or of all; those that stand behind the one with this id."""
        query = _WITH_NAME.order_by(OPERATIONS.c.id.desc()).limit(limit)
        if uids is not None:
            query = query.where(OPERATIONS.c.uid.in_(uids))
        if only_open:
            query = query.where(OPERATIONS.c.state.in_(OPEN_STATES))
        if behind:
            query = query.where(OPERATIONS.c.id < behind)
        with self._read() as connection:
            return [_operation_of(row) for row in connection.execute(query)]

    def begin_operation(self, number: str) -> bool:
        """False where it is not queued any more."""
        return self._operation_stepped(number, ("queued",), state="running", begun_at=now())

    def note_progress(self, number: str, progress: Json) -> bool:
        """False where it is over; one that was cancelled tells how far it has come by then."""
        return self._operation_stepped(number, ("running", "cancelled"), progress=progress)

    def end_operation(
        self, number: str, state: OperationState, *, result: Json | None = None, problem: Json | None = None
    ) -> bool:
        """False where it is over already."""
        return self._operation_stepped(number, OPEN_STATES, state=state, result=result, problem=problem, ended_at=now())

    def _operation_stepped(self, number: str, states: Sequence[OperationState], **values: Any) -> bool:
        mine = sa.and_(OPERATIONS.c.id == number, OPERATIONS.c.state.in_(states))
        with self._write() as connection:
            changed = connection.execute(OPERATIONS.update().where(mine).values(step=OPERATIONS.c.step + 1, **values))
            return bool(changed.rowcount)


def _operation_of(row: Any) -> Operation:
    return Operation(**row._mapping)
