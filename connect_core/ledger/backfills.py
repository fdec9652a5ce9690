"""Backfills and replays: what each moves, in a stream of its own, and what became of it. Called by whoever begins one,
by its attempts, and by people who look at it or call it off.

A backfill is known by (uid, stream). Where it stands is in `offsets`, as for the live stream: its first positions are
stored with it. One that is cancelled or done is over; one that failed is begun again by the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.auditing import note
from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.rows import position_row
from connect_core.ledger.tables import BACKFILLS, OFFSETS
from connect_core.ledger.writers import WritersSeen, require_seen
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Json, Part, Position

RUNNING, DONE, FAILED, CANCELLED = "running", "done", "failed", "cancelled"
UNFINISHED = (RUNNING, FAILED)
"""Such a backfill still has its target for itself: it may go on."""


@dataclass(frozen=True)
class Backfill:
    """`kind` is backfill, replay, or dead-letters: a replay of those (`letter_replays`). `asked` is what was wanted, in
    the words of whoever began it; `parts` what it came to, by partition and in order. `sink` are the sink's options
    that differ from the document's, which is taken as `revision` has it. `state` is running (also while nobody works on
    it), done, failed or cancelled."""

    uid: str
    stream: str
    kind: Literal["backfill", "replay", "dead-letters"]
    revision: int
    asked: Json
    parts: tuple[Part, ...]
    sink: Json
    who: str
    why: str = ""
    state: str = RUNNING
    created_at: datetime | None = None
    ended_at: datetime | None = None


class Backfills(Transactions):
    """The backfills' part of the ledger."""

    def begin_backfill(self, wanted: Backfill, seen: WritersSeen | None = None) -> Backfill:
        """Stores it with its first positions, and returns what is stored: the first who begins a stream has said what
        it moves; whoever comes later gets that. `seen` is what it was checked beside.

        Raises ConfigError when there is no such connector, or the ledger's tables are older than backfills, and
        WritersChanged.
        """
        if wanted.stream == LIVE or not wanted.parts:
            raise ValueError(f"stream {wanted.stream!r} with {len(wanted.parts)} parts is no backfill")
        with self._write() as connection:
            if stored := stored_backfill(connection, wanted.uid, wanted.stream):
                return stored
            require_seen(connection, seen)
            locked(connection, wanted.uid)  # whoever comes at the same moment waits here, and sees the row
            stored = stored_backfill(connection, wanted.uid, wanted.stream)
            return stored or inserted(connection, wanted)

    def backfill(self, uid: str, stream: str) -> Backfill | None:
        """None when nobody has begun one of this stream."""
        with self._read() as connection:
            return stored_backfill(connection, uid, stream)

    def backfills(self, uid: str | None = None, *, only_unfinished: bool = False) -> list[Backfill]:
        """Newest first; of every connector when no uid is given."""
        query = sa.select(BACKFILLS).order_by(BACKFILLS.c.created_at.desc(), BACKFILLS.c.stream)
        if uid is not None:
            query = query.where(BACKFILLS.c.uid == uid)
        if only_unfinished:
            query = query.where(BACKFILLS.c.state.in_(UNFINISHED))
        with self._read() as connection:
            return [_backfill_of(row) for row in connection.execute(query)]

    def end_backfill(self, uid: str, stream: str, state: Literal["done", "failed"]) -> None:
        """What its last attempt has come to. One that is cancelled, or done, stays so."""
        self._change(uid, stream, UNFINISHED, state=state, ended_at=now())

    def resume_backfill(self, uid: str, stream: str) -> None:
        """A failed one is running again; no effect on any other."""
        self._change(uid, stream, (FAILED,), state=RUNNING, ended_at=None)

    def cancel_backfill(self, uid: str, stream: str, *, who: str, why: str = "") -> bool:
        """Its attempts end at the next range boundary, and no other begins. False when it was over already."""
        with self._write() as connection:
            changed = connection.execute(_changing(uid, stream, UNFINISHED, state=CANCELLED, ended_at=now())).rowcount
            if changed:
                note(connection, uid, "cancel backfill", who, why, {"stream": stream})
        return bool(changed)

    def _change(self, uid: str, stream: str, states: Sequence[str], **values: object) -> None:
        with self._write() as connection:
            connection.execute(_changing(uid, stream, states, **values))


# Built once: building a statement costs more than running it.
_ONE = sa.select(BACKFILLS).where(
    BACKFILLS.c.uid == sa.bindparam("connector"), BACKFILLS.c.stream == sa.bindparam("of_stream")
)


def unfinished(connection: Connection, streams: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the (uid, stream) that are live or a backfill that may go on."""
    backfills = {key for key in streams if key[1] != LIVE}
    if not backfills:
        return set(streams)
    query = sa.select(BACKFILLS.c.uid, BACKFILLS.c.stream).where(BACKFILLS.c.state.in_(UNFINISHED))
    going_on = {(row.uid, row.stream) for row in connection.execute(query)}
    return (set(streams) - backfills) | (backfills & going_on)


def _changing(uid: str, stream: str, states: Sequence[str], **values: object) -> sa.Update:
    here = (BACKFILLS.c.uid == uid) & (BACKFILLS.c.stream == stream)
    return BACKFILLS.update().where(here, BACKFILLS.c.state.in_(states)).values(**values)


def stored_backfill(connection: Connection, uid: str, stream: str) -> Backfill | None:
    """None when nobody has begun one of this stream."""
    row = connection.execute(_ONE, {"connector": uid, "of_stream": stream}).one_or_none()
    return None if row is None else _backfill_of(row)


def inserted(connection: Connection, wanted: Backfill) -> Backfill:
    """Stores it with its first positions. For whoever has locked the connector, and seen that it is not there."""
    moment = now()
    row = {
        **{
            name: getattr(wanted, name) for name in ("uid", "stream", "kind", "revision", "asked", "sink", "who", "why")
        },
        "parts": [{**asdict(part), "partition": part.partition.key} for part in wanted.parts],
        "state": RUNNING,
        "created_at": moment,
    }
    connection.execute(BACKFILLS.insert().values(row))
    first: dict[Partition, Position] = {}
    for part in wanted.parts:
        first.setdefault(part.partition, Position(part.incarnation, part.begin, part.evidence))
    rows = [position_row(wanted.uid, wanted.stream, one, position, moment) for one, position in first.items()]
    connection.execute(OFFSETS.insert(), rows)
    detail = {"stream": wanted.stream, "asked": wanted.asked, "sink": wanted.sink}
    note(connection, wanted.uid, wanted.kind, wanted.who, wanted.why, detail)
    return replace(wanted, state=RUNNING, created_at=moment)


def _backfill_of(row: Any) -> Backfill:
    parts = tuple(Part(**{**part, "partition": Partition(part["partition"])}) for part in row.parts)
    return Backfill(
        uid=row.uid,
        stream=row.stream,
        kind=row.kind,
        revision=row.revision,
        asked=row.asked,
        parts=parts,
        sink=row.sink,
        who=row.who,
        why=row.why,
        state=row.state,
        created_at=row.created_at,
        ended_at=row.ended_at,
    )
