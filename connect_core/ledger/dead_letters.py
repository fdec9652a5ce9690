"""Dead letters: which there are, by what people say of them, and that some are discarded. `letter_replays` sends them
again. A letter is never deleted here: it is open until it was delivered by a replay, or discarded. From then on what it
held of its record may be erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from connect_core.errors import ConfigError
from connect_core.ledger.auditing import note
from connect_core.ledger.backfills import UNFINISHED
from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.rows import Row
from connect_core.ledger.tables import BACKFILLS, DEAD_LETTERS
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Json
from connect_core.work import SEALED_MARK, LetterPlace

REPLAY_KIND: Literal["dead-letters"] = "dead-letters"
"""Of the replays that send dead letters again, which are backfills."""

State = Literal["open", "replayed", "discarded"]
STATES: tuple[State, ...] = ("open", "replayed", "discarded")

UNTOUCHED: Row = dict.fromkeys(
    ("replayed_run", "replayed_at", "again_stage", "again_kind", "again_message", "discarded_at")
)
"""The columns of what became of a letter, when nothing did: it was rejected just now."""

ROWS_AT_ONCE = 500
"""So many are named in one statement."""


class Reason(NamedTuple):
    """Why a record was rejected."""

    stage: str
    kind: str
    message: str


@dataclass(frozen=True)
class DeadLetter:
    """A rejected record: `offset`, `ordinal` and `incarnation` with its partition are its coordinates. `stage`, `kind`
    and `message` are of the first rejection, `again` is that of the last replay. `attributes` is what it had beside
    payload and topic; None where what is kept is not the whole record. `replay` is the stream of the replay that has
    it, or had it last, `replayed_run` the run of it that has settled it. One that goes `to_sink`, the second target of
    its connector, has the number `sink_number` on its way; `sink_run` has settled it there, and `sink_refused` says why
    that target could not take it."""

    id: int
    uid: str
    stream: str
    partition: Partition
    incarnation: int
    offset: int
    ordinal: int
    stage: str
    kind: str
    message: str
    original: bytes
    topic: str | None
    run_id: str
    stored_at: datetime
    attributes: Json | None = None
    replay: str | None = None
    replayed_run: str | None = None
    replayed_at: datetime | None = None
    again: Reason | None = None
    discarded_at: datetime | None = None
    to_sink: bool = False
    sink_number: int | None = None
    sink_run: str | None = None
    sink_refused: str | None = None

    @property
    def place(self) -> LetterPlace:
        """What it is bound to where it is encrypted."""
        partition = self.partition.id
        return LetterPlace(self.uid, self.stream, partition, self.incarnation, self.offset, self.ordinal, self.stage)

    @property
    def reason(self) -> Reason:
        """Why it was rejected last."""
        return self.again or Reason(self.stage, self.kind, self.message)

    @property
    def state(self) -> State:
        if self.discarded_at:
            return "discarded"
        return "replayed" if self.replayed_at and not self.again else "open"


@dataclass(frozen=True)
class Wanted:
    """What a person says of dead letters; what is empty says nothing. `partition` and `reason` are parts of the text,
    `stage` and `reason` those of the last rejection, `since` and `until` when a letter was stored first, `run` the one
    that has rejected or replayed it, `newest` the highest number. Without `states` those that are not discarded."""

    stage: str = ""
    since: datetime | None = None
    until: datetime | None = None
    partition: str = ""
    reason: str = ""
    run: str = ""
    ids: tuple[int, ...] = ()
    newest: int = 0
    states: tuple[State, ...] = ()


class Count(NamedTuple):
    """How many letters of a partition have been rejected at a stage, and the bytes of their payloads."""

    partition: str
    stage: str
    letters: int
    bytes: int


class DeadLetters(Transactions):
    """Part of `Ledger`."""

    def dead_letters(
        self, uid: str, limit: int = 50, wanted: Wanted = Wanted(), *, payloads: bool = True
    ) -> list[DeadLetter]:
        """Newest first, with the original bytes; without `payloads` these are empty, but for the beginning of one that
        is encrypted, which says with which key."""
        query = sa.select(DEAD_LETTERS) if payloads else _WITHOUT_PAYLOADS
        query = query.where(*conditions(uid, wanted)).order_by(DEAD_LETTERS.c.id.desc())
        with self._read() as connection:
            return [dead_letter_of(row) for row in connection.execute(query.limit(limit))]

    def dead_letters_behind(self, uid: str, wanted: Wanted, number: int, limit: int) -> list[DeadLetter]:
        """The next ones with a higher number, in order."""
        mine = [*conditions(uid, wanted), DEAD_LETTERS.c.id > number]
        query = sa.select(DEAD_LETTERS).where(*mine).order_by(DEAD_LETTERS.c.id)
        with self._read() as connection:
            return [dead_letter_of(row) for row in connection.execute(query.limit(limit))]

    def dead_letter(self, dead_letter_id: int) -> DeadLetter:
        """Raises ConfigError when there is none of this number."""
        with self._read() as connection:
            query = sa.select(DEAD_LETTERS).where(DEAD_LETTERS.c.id == dead_letter_id)
            row = connection.execute(query).one_or_none()
        if row is None:
            raise ConfigError(f"There is no dead letter {dead_letter_id}", next_step="See `waybill dead-letters list`")
        return dead_letter_of(row)

    def count_dead_letters(self, uid: str, wanted: Wanted) -> list[Count]:
        """By partition and stage."""
        key, stage = DEAD_LETTERS.c.partition_key, _last_stage
        size = sa.func.sum(sa.func.length(DEAD_LETTERS.c.original))
        query = sa.select(key, stage.label("of"), sa.func.count().label("letters"), size.label("size"))
        query = query.where(*conditions(uid, wanted)).group_by(key, stage).order_by(key, stage)
        with self._read() as connection:
            rows = connection.execute(query)
            return [Count(row.partition_key, row.of, int(row.letters), int(row.size or 0)) for row in rows]

    def discard_dead_letters(self, uid: str, wanted: Wanted, *, who: str, why: str = "", asked: Json) -> int:
        """Marks those that are open, but none that a replay is sending; returns how many. `asked` is what is kept of
        the words that chose them."""
        with self._write() as connection:
            locked(connection, uid)
            query = sa.select(DEAD_LETTERS.c.id).where(*conditions(uid, wanted), _IS["open"], ~_is_taken(uid))
            found = list(connection.scalars(query))
            for some in chunks(found):
                connection.execute(DEAD_LETTERS.update().where(DEAD_LETTERS.c.id.in_(some)).values(discarded_at=now()))
            note(connection, uid, "discard dead letters", who, why, {"discarded": len(found), "asked": asked})
        return len(found)

    def erase_dead_letters(self, uid: str, wanted: Wanted, *, who: str, why: str = "", asked: Json) -> int:
        """Takes payload, key, headers and time out of those that are not open, and not on their way to a second target;
        returns how many had them. Number, place and reason stay."""
        on_its_way = sa.and_(DEAD_LETTERS.c.sink_number.is_not(None), DEAD_LETTERS.c.sink_run.is_(None))
        held = sa.or_(sa.func.length(DEAD_LETTERS.c.original) > 0, DEAD_LETTERS.c.attributes.is_not(sa.null()))
        with self._write() as connection:
            locked(connection, uid)
            query = sa.select(DEAD_LETTERS.c.id).where(*conditions(uid, wanted), ~_IS["open"], held, ~on_its_way)
            found = list(connection.scalars(query))
            for some in chunks(found):
                erased = DEAD_LETTERS.update().where(DEAD_LETTERS.c.id.in_(some))
                connection.execute(erased.values(original=b"", attributes=None))
            note(connection, uid, "erase dead letters", who, why, {"erased": len(found), "asked": asked})
        return len(found)


def _beginning(length: int) -> sa.ColumnElement[bytes]:
    return sa.func.substr(DEAD_LETTERS.c.original, 1, length, type_=sa.LargeBinary)


_ENCRYPTED = (_beginning(len(SEALED_MARK)) == SEALED_MARK, _beginning(64))
_HEAD = sa.case(_ENCRYPTED, else_=sa.literal(b"", sa.LargeBinary)).label("original")
_WITHOUT_PAYLOADS = sa.select(*(one for one in DEAD_LETTERS.c if one.name != "original"), _HEAD)
_last_stage = sa.func.coalesce(DEAD_LETTERS.c.again_stage, DEAD_LETTERS.c.stage)
_DELIVERED = sa.and_(DEAD_LETTERS.c.replayed_at.is_not(None), DEAD_LETTERS.c.again_stage.is_(None))
_IS: dict[State, sa.ColumnElement[bool]] = {
    "open": sa.and_(DEAD_LETTERS.c.discarded_at.is_(None), ~_DELIVERED),
    "replayed": sa.and_(DEAD_LETTERS.c.discarded_at.is_(None), _DELIVERED),
    "discarded": DEAD_LETTERS.c.discarded_at.is_not(None),
}


def conditions(uid: str, wanted: Wanted) -> Iterator[sa.ColumnElement[bool]]:
    """What holds for the letters of a connector that are meant."""
    letters = DEAD_LETTERS.c
    yield letters.uid == uid
    states = set(wanted.states or ("open", "replayed"))
    if states != set(STATES):
        yield sa.or_(*(_IS[one] for one in STATES if one in states))
    if wanted.ids:
        yield letters.id.in_(wanted.ids)
    if wanted.stage:
        yield _last_stage == wanted.stage
    if wanted.since:
        yield letters.stored_at >= wanted.since
    if wanted.until:
        yield letters.stored_at < wanted.until
    if wanted.partition:
        yield letters.partition_key.contains(wanted.partition, autoescape=True)
    if wanted.reason:
        kind = sa.func.coalesce(letters.again_kind, letters.kind)
        message = sa.func.coalesce(letters.again_message, letters.message)
        yield sa.or_(*(sa.func.lower(one).contains(wanted.reason.lower(), autoescape=True) for one in (kind, message)))
    if wanted.newest:
        yield letters.id <= wanted.newest
    if wanted.run:
        yield sa.or_(letters.run_id == wanted.run, letters.replayed_run == wanted.run)


def _is_taken(uid: str) -> sa.ColumnElement[bool]:
    """Whether a replay that is not over has a letter, and has not settled it."""
    streams = sa.select(BACKFILLS.c.stream).where(
        BACKFILLS.c.uid == uid, BACKFILLS.c.kind == REPLAY_KIND, BACKFILLS.c.state.in_(UNFINISHED)
    )
    taken = sa.func.coalesce(DEAD_LETTERS.c.replay_stream, "").in_(streams)
    return sa.and_(taken, DEAD_LETTERS.c.replayed_at.is_(None))


def chunks(ids: Iterable[int]) -> Iterator[Sequence[int]]:
    left = iter(ids)
    while some := list(islice(left, ROWS_AT_ONCE)):
        yield some


def dead_letter_of(row: Any) -> DeadLetter:
    again = None if row.again_stage is None else Reason(row.again_stage, row.again_kind, row.again_message)
    return DeadLetter(
        id=row.id,
        uid=row.uid,
        stream=row.stream,
        partition=Partition(row.partition_key),
        incarnation=row.incarnation,
        offset=row.record_offset,
        ordinal=row.ordinal,
        stage=row.stage,
        kind=row.kind,
        message=row.message,
        original=row.original,
        topic=row.topic,
        run_id=row.run_id,
        stored_at=row.stored_at,
        attributes=row.attributes,
        replay=row.replay_stream,
        replayed_run=row.replayed_run,
        replayed_at=row.replayed_at,
        again=again,
        discarded_at=row.discarded_at,
        to_sink=bool(row.to_sink),
        sink_number=row.sink_number,
        sink_run=row.sink_run,
        sink_refused=row.sink_refused,
    )
