"""What the ledger knows of one record, by its partition and offset."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa

from connect_core.ledger.database import Transactions
from connect_core.ledger.dead_letters import DeadLetter, dead_letter_of
from connect_core.ledger.history import SettledRange, settled_of
from connect_core.ledger.letter_replays import replay_stream
from connect_core.ledger.tables import DEAD_LETTERS, RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.values import ERRORS_SINK


class BegunRange(NamedTuple):
    """A range without a receipt that begins at or before a record: open, or given up by a person. Where it will end
    may be known only with its receipt. `run` has worked on it last."""

    id: int
    stream: str
    incarnation: int
    begin: int
    state: str
    run: str
    attempts: int


class Traces(Transactions):
    """Part of `Ledger`."""

    def partitions_of_id(self, uid: str, partition_id: str) -> list[Partition]:
        """The one partition with this id, none where nothing of it was planned."""
        query = sa.select(RANGES.c.partition_key).where(RANGES.c.uid == uid, RANGES.c.partition_id == partition_id)
        with self._read() as connection:
            return [Partition(row.partition_key) for row in connection.execute(query.limit(1))]

    def settled_over(self, uid: str, partition: Partition, begin: int, end: int) -> list[SettledRange]:
        """The settled ranges with a part of `[begin, end)` of the source, of all streams and incarnations, oldest
        first."""
        mine = _of(uid, partition, *_OF_SOURCE).where(
            RANGES.c.state == "settled", RANGES.c.begin_offset < end, RANGES.c.end_offset > begin
        )
        with self._read() as connection:
            return [settled_of(row) for row in connection.execute(mine)]

    def begun_before(self, uid: str, partition: Partition, offset: int) -> list[BegunRange]:
        """Ranges without a receipt in which a record of the source may be, oldest first."""
        mine = _of(uid, partition, *_OF_SOURCE).where(
            RANGES.c.state != "settled", RANGES.c.begin_offset <= offset, RANGES.c.planned_end > offset
        )
        with self._read() as connection:
            return [
                BegunRange(row.id, row.stream, row.incarnation, row.begin_offset, row.state, row.run_id, row.attempts)
                for row in connection.execute(mine)
            ]

    def replays_of(self, letter: DeadLetter) -> list[SettledRange]:
        """The settled ranges that have sent a dead letter again, or found it rejected; oldest first."""
        mine = _of(letter.uid, letter.partition, RANGES.c.stream == (letter.replay or "")).where(
            RANGES.c.state == "settled", RANGES.c.begin_offset <= letter.id, RANGES.c.end_offset > letter.id
        )
        with self._read() as connection:
            return [settled_of(row) for row in connection.execute(mine)]

    def dead_letters_of(self, uid: str, partition: Partition, offset: int) -> list[DeadLetter]:
        """Of one record, in all streams and incarnations, oldest first."""
        query = sa.select(DEAD_LETTERS).where(
            DEAD_LETTERS.c.uid == uid,
            DEAD_LETTERS.c.partition_id == partition.id,
            DEAD_LETTERS.c.record_offset == offset,
        )
        with self._read() as connection:
            return [dead_letter_of(row) for row in connection.execute(query.order_by(DEAD_LETTERS.c.id))]


_OF_SOURCE = (
    ~RANGES.c.stream.startswith(replay_stream(""), autoescape=True),
    RANGES.c.stream != ERRORS_SINK,
)
"""What moves dead letters has numbers of theirs for offsets."""


def _of(uid: str, partition: Partition, *which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    mine = sa.select(RANGES).where(RANGES.c.uid == uid, RANGES.c.partition_id == partition.id, *which)
    return mine.order_by(RANGES.c.id)
