"""Dead letters that are sent again: which ones a replay takes, what it reads, and what becomes of them when it settles.

A replay is a backfill of a stream of its own over the letters of a partition, in order of their numbers: these are its
offsets. From the moment it has begun each of its letters says so (`replay_stream`), so that no other replay takes it.
Settling marks them in the transaction that moves the offset, fenced like any other.

A record may have several letters: it was rejected at two stages, or by the live stream and a backfill. It is sent once,
as the newest that is whole has it; the others are closed with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.backfills import UNFINISHED, Backfill, inserted, stored_backfill
from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions
from connect_core.ledger.dead_letters import (
    REPLAY_KIND,
    STATES,
    Count,
    DeadLetter,
    State,
    Wanted,
    chunks,
    conditions,
    dead_letter_of,
)
from connect_core.ledger.rows import storable
from connect_core.ledger.tables import BACKFILLS, DEAD_LETTERS, RANGES
from connect_core.ledger.writers import WritersSeen, require_seen
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Part
from connect_core.work import Letter, Letters, Receipt

_PREFIX = f"{REPLAY_KIND}-"

IN_PART, NOT_READ, TAKEN, REPLAYED, DOUBTFUL = "in_part", "not_read", "taken", "replayed", "doubtful"
DISCARDED = "discarded"
"""Why a letter is not sent: only a part of its record is kept; no task has its partition; a replay that is not over has
it; it was replayed; a replay that was cancelled may have delivered it; it was discarded."""


def replay_stream(id_: str) -> str:
    """The stream of a replay of dead letters with this id."""
    return f"{_PREFIX}{id_}"


def replays_letters(stream: str) -> bool:
    """Whether its offsets are numbers of dead letters."""
    return stream.startswith(_PREFIX)


class _Head(NamedTuple):
    """A letter without its record. `key` is what it shares with other letters of that record."""

    id: int
    partition: Partition
    key: tuple[str, int, int]
    stage: str
    bytes: int
    whole: bool
    replay: str | None
    replayed: bool
    discarded: bool


@dataclass(frozen=True)
class LetterChoice:
    """What a replay would send: `sent` are the letters that stand for their records, counted in `counts`; with the
    others of these records they are `taken`. `left_out` says why how many are not sent, `newest` is the highest number
    that was looked at. `delivered` of them an earlier replay has delivered, or may have."""

    sent: tuple[tuple[Partition, int], ...]
    taken: tuple[tuple[Partition, int], ...]
    counts: tuple[Count, ...]
    left_out: dict[str, int]
    newest: int
    delivered: int = 0

    def parts(self) -> tuple[Part, ...]:
        """From the first to the last that is taken of each partition: all of them are settled. What lies between and is
        not taken is no letter of it."""
        numbers = sorted(self.taken)
        spans = [(one, [number for _, number in some]) for one, some in groupby(numbers, key=lambda sent: sent[0])]
        return tuple(Part(partition, 0, of[0], of[-1] + 1) for partition, of in spans)


class LetterReplays(Transactions):
    """Part of `Ledger`."""

    def choose_dead_letters(
        self, uid: str, wanted: Wanted, partitions: Collection[Partition], *, again: bool = False
    ) -> LetterChoice:
        """What a replay that begins now would send of the letters `wanted`; with `again` also what was replayed, or
        may have been."""
        with self._read() as connection:
            return _choice(connection, uid, wanted, partitions, again)

    def begin_letter_replay(
        self,
        draft: Backfill,
        wanted: Wanted,
        partitions: Collection[Partition],
        *,
        again: bool = False,
        seen: WritersSeen | None = None,
    ) -> Backfill | None:
        """Stores a replay with the letters that it takes, which are its own from then on. None when there are none.
        Of a stream that somebody has begun already: what is stored. `seen` is what it was checked beside. Raises
        WritersChanged."""
        with self._write() as connection:
            require_seen(connection, seen)
            locked(connection, draft.uid)
            if stored := stored_backfill(connection, draft.uid, draft.stream):
                return stored
            choice = _choice(connection, draft.uid, wanted, partitions, again)
            if not choice.sent:
                return None
            taken = {"replay_stream": draft.stream, "replayed_run": None, "replayed_at": None, **_NOT_AGAIN}
            for some in chunks(number for _, number in choice.taken):
                connection.execute(DEAD_LETTERS.update().where(DEAD_LETTERS.c.id.in_(some)).values(taken))
            return inserted(connection, replace(draft, parts=choice.parts()))

    def letters_of(
        self, uid: str, stream: str, partition: Partition, begin: int, end: int, max_records: int, max_bytes: int
    ) -> Letters:
        """The letters in `[begin, end)` that a replay sends, as many as there may be; one at least, where there is
        one."""
        mine = sa.and_(_of_replay(uid, stream, partition.id, begin, end), ~_has_newer(stream))
        mine = sa.and_(mine, DEAD_LETTERS.c.attributes.is_not(sa.null()))
        sizes = sa.select(DEAD_LETTERS.c.id, sa.func.length(DEAD_LETTERS.c.original).label("size")).where(mine)
        with self._read() as connection:
            listed = connection.execute(sizes.order_by(DEAD_LETTERS.c.id).limit(max_records + 1)).all()
            upto = cut([(row.id, row.size) for row in listed], end, max_records, max_bytes)
            query = sa.select(DEAD_LETTERS).where(mine, DEAD_LETTERS.c.id < upto).order_by(DEAD_LETTERS.c.id)
            rows = connection.execute(query)
            return Letters(tuple(_letter(dead_letter_of(row)) for row in rows), upto)


def close_letters(connection: Connection, row: Any, receipt: Receipt, run_id: str, moment: datetime) -> None:
    """A range of a replay (`row`) is settled with this receipt: its letters were replayed by this run. Those that were
    rejected stay open, with their new reason."""
    mine = _of_replay(row.uid, row.stream, row.partition_id, receipt.begin, receipt.end)
    settled = {"replayed_run": run_id, "replayed_at": moment, **_NOT_AGAIN}
    connection.execute(DEAD_LETTERS.update().where(mine).values(settled))
    for reject in receipt.rejects:
        again = {"again_kind": storable(reject.kind), "again_message": storable(reject.message)}
        here = sa.and_(mine, DEAD_LETTERS.c.id == reject.offset)
        connection.execute(DEAD_LETTERS.update().where(here).values(again_stage=reject.stage, **again))


def _letter(kept: DeadLetter) -> Letter:
    return Letter(kept.id, kept.original, kept.topic, kept.attributes, kept.place)


_NOT_AGAIN: dict[str, None] = dict.fromkeys(("again_stage", "again_kind", "again_message"))


def _of_replay(uid: str, stream: str, partition_id: str, begin: int, end: int) -> sa.ColumnElement[bool]:
    letters = DEAD_LETTERS.c
    mine = sa.and_(letters.uid == uid, letters.replay_stream == stream, letters.partition_id == partition_id)
    return sa.and_(mine, letters.id >= begin, letters.id < end)


def _has_newer(stream: str) -> sa.ColumnElement[bool]:
    """Whether the replay has a newer letter of the same record, which is whole."""
    other = DEAD_LETTERS.alias()
    same = [other.c[name] == DEAD_LETTERS.c[name] for name in ("uid", "partition_id", "incarnation", "record_offset")]
    newer = [other.c.replay_stream == stream, other.c.id > DEAD_LETTERS.c.id, other.c.attributes.is_not(sa.null())]
    return sa.exists().where(*same, *newer)


def cut(listed: Sequence[tuple[int, int]], end: int, max_records: int, max_bytes: int) -> int:
    """The number before which the letters are within both limits."""
    held = 0
    for place, (number, size) in enumerate(listed):
        if place and (place >= max_records or held + size > max_bytes):
            return number
        held += size
    return end


def _choice(
    connection: Connection, uid: str, wanted: Wanted, partitions: Collection[Partition], again: bool
) -> LetterChoice:
    # First: what a replay that is over by now has settled is seen in the letters then.
    standing = _Standing(connection, uid, again, frozenset(partitions))
    states: tuple[State, ...] = ("open", "replayed") if again else ("open",)
    if wanted.ids:  # of those that are named it is said why they are not sent
        states = STATES
    found = _heads(connection, conditions(uid, replace(wanted, states=states)))
    records = {head.key: [head] for head in found}
    for head in _siblings(connection, uid, records, wanted.newest):
        records[head.key].append(head)
    sent: list[_Head] = []
    taken: list[_Head] = []
    left_out: Counter[str] = Counter()
    delivered = 0
    for heads in records.values():
        letters = sorted(set(heads))
        whole = [head for head in letters if head.whole]
        last = (whole or letters)[-1]
        if why := standing.why_not(last, letters):
            left_out[why] += 1
        else:
            sent.append(last)
            taken += letters
            delivered += standing.may_be_delivered(letters)
    highest = max((head.id for head in found), default=0)
    return LetterChoice(_numbers(sent), _numbers(taken), tuple(_counts(sent)), dict(left_out), highest, delivered)


def _numbers(heads: Sequence[_Head]) -> tuple[tuple[Partition, int], ...]:
    return tuple((head.partition, head.id) for head in heads)


def _heads(connection: Connection, where: Iterable[sa.ColumnElement[bool]]) -> list[_Head]:
    letters = DEAD_LETTERS.c
    query = sa.select(
        letters.id,
        letters.partition_key,
        letters.partition_id,
        letters.incarnation,
        letters.record_offset,
        letters.replay_stream,
        sa.func.coalesce(letters.again_stage, letters.stage).label("of_stage"),
        sa.func.length(letters.original).label("size"),
        letters.attributes.is_not(sa.null()).label("whole"),
        sa.and_(letters.replayed_at.is_not(None), letters.again_stage.is_(None)).label("replayed"),
        letters.discarded_at.is_not(None).label("discarded"),
    )
    return [
        _Head(
            row.id,
            Partition(row.partition_key),
            (row.partition_id, row.incarnation, row.record_offset),
            row.of_stage,
            row.size or 0,
            bool(row.whole),
            row.replay_stream,
            bool(row.replayed),
            bool(row.discarded),
        )
        for row in connection.execute(query.where(*where).order_by(letters.id))
    ]


def _siblings(connection: Connection, uid: str, records: Collection[tuple[str, int, int]], newest: int) -> list[_Head]:
    """All open letters of those of these records that have several."""
    key = [DEAD_LETTERS.c[name] for name in ("partition_id", "incarnation", "record_offset")]
    several = sa.select(*key).where(*conditions(uid, Wanted())).group_by(*key).having(sa.func.count() > 1)
    wanted = [tuple(row) for row in connection.execute(several) if tuple(row) in records]
    found: list[_Head] = []
    for partition_id, incarnation, offset in wanted:
        here = [column == value for column, value in zip(key, (partition_id, incarnation, offset), strict=True)]
        found += _heads(connection, [*conditions(uid, Wanted(newest=newest, states=("open",))), *here])
    return found


class _Standing:
    """What other replays have of the letters of a connector."""

    def __init__(self, connection: Connection, uid: str, again: bool, partitions: frozenset[Partition]) -> None:
        self._again, self._partitions = again, partitions
        query = sa.select(BACKFILLS.c.stream, BACKFILLS.c.state).where(
            BACKFILLS.c.uid == uid, BACKFILLS.c.kind == REPLAY_KIND
        )
        self._states = {row.stream: row.state for row in connection.execute(query)}
        # A replay that was cancelled has left them, with records of theirs in the target, or not.
        left = sa.select(RANGES).where(RANGES.c.uid == uid, RANGES.c.state == "open", RANGES.c.stream.in_(self._states))
        self._open = [
            (row.stream, row.partition_id, row.begin_offset, row.planned_end) for row in connection.execute(left)
        ]

    def why_not(self, head: _Head, letters: Sequence[_Head]) -> str:
        """Why the record is not sent for which `head` stands among its letters; empty where it is."""
        if any(self._states.get(one.replay or "") in UNFINISHED for one in letters):
            return TAKEN
        if head.discarded:
            return DISCARDED
        if head.partition not in self._partitions:
            return NOT_READ
        if not head.whole:
            return IN_PART
        if self._again or not self.may_be_delivered(letters):
            return ""
        return REPLAYED if all(one.replayed for one in letters) else DOUBTFUL

    def may_be_delivered(self, letters: Sequence[_Head]) -> bool:
        """Whether an earlier replay has delivered the record of these letters, or was cancelled while it did."""
        return all(one.replayed for one in letters) or any(self._is_doubtful(one) for one in letters)

    def _is_doubtful(self, head: _Head) -> bool:
        return any(
            (head.replay, head.partition.id) == (stream, partition_id) and begin <= head.id < end
            for stream, partition_id, begin, end in self._open
        )


def _counts(heads: Sequence[_Head]) -> list[Count]:
    letters: Counter[tuple[str, str]] = Counter()
    held: Counter[tuple[str, str]] = Counter()
    for head in heads:
        letters[head.partition.key, head.stage] += 1
        held[head.partition.key, head.stage] += head.bytes
    return [Count(*key, letters[key], held[key]) for key in sorted(letters)]
