"""Dead letters on their way to a second target, the errors sink of their connector: which go there, in which order, and
what became of them.

Whoever settles a rejection says whether it goes there. Before it is sent it gets a number, in one transaction for all
that wait, with the connector's row locked: the numbers of a partition are the offsets of the stream `errors-sink`, in
the order in which they were given. A letter that commits late gets a higher one, and none is passed over; ids of rows
would not do, since several streams write letters of one partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.auditing import note
from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions, insert_missing, now
from connect_core.ledger.dead_letters import Count, DeadLetter, dead_letter_of
from connect_core.ledger.identity import last_restored
from connect_core.ledger.leases import Lease, fence
from connect_core.ledger.letter_replays import cut, replays_letters
from connect_core.ledger.ranges import abandon_range, all_open_range_ids, last_planned_end
from connect_core.ledger.rows import position_row, storable
from connect_core.ledger.tables import DEAD_LETTERS, OFFSETS, RUNS
from connect_core.sdk.records import Partition
from connect_core.sdk.values import ERRORS_SINK, Part, Position
from connect_core.work import Receipt

UNSENT_AT_MOST = 10_000
"""So many have a number and are not settled: what one run sends, and what one transaction numbers."""

_OFFSET_KEY = ("uid", "stream", "partition_id")


def moves_letters(stream: str) -> bool:
    """Whether it reads dead letters, and no source."""
    return stream == ERRORS_SINK or replays_letters(stream)


class SentLetter(NamedTuple):
    """`number` is its offset on the way, `task` the one that has rejected it."""

    number: int
    letter: DeadLetter
    task: int


class ErrorsSink(Transactions):
    """Part of `Ledger`."""

    def number_letters(self, uid: str, partitions: Collection[Partition]) -> tuple[Part, ...]:
        """Numbers what waits of these partitions, oldest first; returns all that have a number and are not settled, as
        stretches of consecutive numbers."""
        with self._write() as connection:
            locked(connection, uid)
            unsent = _unsent(connection, uid)
            if room := UNSENT_AT_MOST - len(unsent):
                unsent += _numbered(connection, uid, {one.id for one in partitions}, room)
        there = {one.id for one in partitions}
        return _parts([(one, number) for one, number in unsent if one.id in there])

    def letters_waiting(self, uid: str) -> int:
        """How many go to the second target, and were not settled there."""
        with self._read() as connection:
            return int(connection.scalar(sa.select(sa.func.count()).where(*_waiting(uid))) or 0)

    def letters_to_send(
        self, uid: str, partition: Partition, begin: int, end: int, max_records: int, max_bytes: int
    ) -> tuple[list[SentLetter], int]:
        """Those with a number in `[begin, end)`, as many as there may be, one at least; and the number before which
        these are all."""
        number, mine = DEAD_LETTERS.c.sink_number, _numbers(uid, partition.id, begin, end)
        sizes = sa.select(number, sa.func.length(DEAD_LETTERS.c.original).label("size")).where(mine)
        with self._read() as connection:
            listed = connection.execute(sizes.order_by(number).limit(max_records + 1)).all()
            upto = cut([(row.sink_number, row.size) for row in listed], end, max_records, max_bytes)
            query = sa.select(DEAD_LETTERS, RUNS.c.task).join(RUNS, RUNS.c.id == DEAD_LETTERS.c.run_id)
            rows = connection.execute(query.where(mine, number < upto).order_by(number))
            return [SentLetter(row.sink_number, dead_letter_of(row), row.task) for row in rows], upto

    def letters_on_their_way(self, uid: str) -> list[Count]:
        """Those with a number that are not settled, by partition and stage."""
        key, stage = DEAD_LETTERS.c.partition_key, DEAD_LETTERS.c.stage
        size = sa.func.sum(sa.func.length(DEAD_LETTERS.c.original))
        query = sa.select(key, stage, sa.func.count().label("letters"), size.label("size")).where(*_on_their_way(uid))
        with self._read() as connection:
            rows = connection.execute(query.group_by(key, stage).order_by(key, stage))
            return [Count(row.partition_key, row.stage, int(row.letters), int(row.size or 0)) for row in rows]

    def redirect_letters(self, leases: Sequence[Lease], uid: str, *, who: str, why: str) -> int:
        """Gives up the ranges that are open, and takes the numbers from letters that are not settled: they get new
        ones, and go to the target of then. Returns how many. Raises Fenced when a lease is lost."""
        with self._write() as connection:
            locked(connection, uid)
            fence(connection, leases)
            for range_id in all_open_range_ids(connection, uid, ERRORS_SINK):
                abandon_range(connection, range_id, who, why)
            again = DEAD_LETTERS.update().where(*_on_their_way(uid)).values(sink_number=None)
            count = connection.execute(again).rowcount
            note(connection, uid, "redirect dead letters", who, why, {"letters": count})
        return count

    def letter_sent(self, uid: str, partition_id: str, number: int) -> DeadLetter | None:
        """The letter that has a number of that stream."""
        with self._read() as connection:
            query = sa.select(DEAD_LETTERS).where(_numbers(uid, partition_id, number, number + 1))
            row = connection.execute(query).one_or_none()
        return None if row is None else dead_letter_of(row)


def close_sent_letters(connection: Connection, row: Any, receipt: Receipt, run_id: str) -> None:
    """A range of that stream (`row`) is settled with this receipt: this run has sent its letters, but for those that
    the target could not take."""
    mine = _numbers(row.uid, row.partition_id, receipt.begin, receipt.end)
    connection.execute(DEAD_LETTERS.update().where(mine).values(sink_run=run_id, sink_refused=None))
    for reject in receipt.rejects:
        here = sa.and_(mine, DEAD_LETTERS.c.sink_number == reject.offset)
        why = storable(f"{reject.kind}: {reject.message}")
        connection.execute(DEAD_LETTERS.update().where(here).values(sink_refused=why))


def _numbers(uid: str, partition_id: str, begin: int, end: int) -> sa.ColumnElement[bool]:
    letters = DEAD_LETTERS.c
    here = sa.and_(letters.uid == uid, letters.partition_id == partition_id)
    return sa.and_(here, letters.sink_number >= begin, letters.sink_number < end)


def _waiting(uid: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Those of an index of their own."""
    letters = DEAD_LETTERS.c
    return letters.uid == uid, letters.to_sink.is_not(None), letters.sink_run.is_(None)


def _on_their_way(uid: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (*_waiting(uid), DEAD_LETTERS.c.sink_number.is_not(None))


def _unsent(connection: Connection, uid: str) -> list[tuple[Partition, int]]:
    letters = DEAD_LETTERS.c
    query = sa.select(letters.partition_key, letters.sink_number)
    query = query.where(*_on_their_way(uid))
    return [(Partition(row.partition_key), row.sink_number) for row in connection.execute(query)]


def _numbered(connection: Connection, uid: str, partitions: Collection[str], room: int) -> list[tuple[Partition, int]]:
    """Gives the next numbers, none of which was ever planned. Behind a restored backup they begin where none was given
    before: what has these in the target is another letter, which the ledger has forgotten."""
    letters, moment = DEAD_LETTERS.c, now()
    restored = last_restored(connection)
    least = int(restored.timestamp() * 1_000_000) if restored else 0
    query = sa.select(letters.id, letters.partition_key).where(*_waiting(uid), letters.sink_number.is_(None))
    waiting = [(row.id, Partition(row.partition_key)) for row in connection.execute(query.order_by(letters.id))]
    mine = [(id_, one) for id_, one in waiting if one.id in partitions][:room]
    following = {one: max(_last(connection, uid, one) + 1, least) for one in {one for _, one in mine}}
    first = [position_row(uid, ERRORS_SINK, one, Position(0, number), moment) for one, number in following.items()]
    insert_missing(connection, OFFSETS, _OFFSET_KEY, first)
    given: Counter[Partition] = Counter(following)
    numbered: list[tuple[Partition, int]] = []
    rows = []
    for id_, one in mine:
        numbered.append((one, given[one]))
        rows.append({"letter": id_, "number": given[one]})
        given[one] += 1
    if rows:
        connection.execute(_NUMBER, rows)
    return numbered


_NUMBER = (
    DEAD_LETTERS.update().where(DEAD_LETTERS.c.id == sa.bindparam("letter")).values(sink_number=sa.bindparam("number"))
)


def _last(connection: Connection, uid: str, partition: Partition) -> int:
    letters = DEAD_LETTERS.c
    query = sa.select(sa.func.max(letters.sink_number)).where(letters.uid == uid, letters.partition_id == partition.id)
    given, planned = connection.scalar(query), last_planned_end(connection, uid, ERRORS_SINK, partition)
    return max(-1 if given is None else int(given), planned - 1)


def _parts(numbers: Iterable[tuple[Partition, int]]) -> tuple[Part, ...]:
    """Stretches of consecutive numbers, in order."""
    found: list[Part] = []
    for partition, some in groupby(sorted(numbers), key=lambda one: one[0]):
        for begin, end in _stretches([number for _, number in some]):
            found.append(Part(partition, 0, begin, end))
    return tuple(found)


def _stretches(numbers: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return found
