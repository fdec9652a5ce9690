"""A broker that refuses a request because of one message: the others are stored, in order, and that one is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from connect_core.errors import TooManyRejects
from connect_core.rocketmq import Acknowledged, Batch, MessageIllegal, Queue, StoreStatus
from connect_core.rocketmq.wire.batch_entries import BatchEntry, decode_entries
from connect_core.sdk.records import Lineage
from connect_core.sdk.sink import Refusable
from connect_core.sdk.testing.driving import limit, records
from connect_core.systems.rocketmq.appending import QueueAppender
from connect_core.systems.rocketmq.marking import MessageMarker
from connect_core.systems.rocketmq.parcels import Load
from connect_core.systems.rocketmq.writing import QueueWriter

OUT = Queue("out", "broker-a", 0)
LINEAGE = Lineage("u", "live", "p", 0)
MOST = 1_000_000


@dataclass
class Strict:
    """A sender whose broker takes no request with a body of `refused`; what a frame cannot hold does not even leave."""

    refused: frozenset[bytes] = frozenset()
    too_long: frozenset[bytes] = frozenset()
    stored: list[bytes] = field(default_factory=list)
    requests: int = 0
    under_way: list[bytes] = field(default_factory=list)

    def submit(self, message: Batch | BatchEntry, *, deadline: float, sys_flag: int) -> Acknowledged | None:
        acknowledged = self.finish(deadline=deadline)
        bodies = [one.body for one in decode_entries(message.body)] if isinstance(message, Batch) else [message.body]
        if self.too_long.intersection(bodies):
            raise MessageIllegal("A batch does not fit into a frame")
        self.under_way = bodies
        self.requests += 1
        return acknowledged

    def finish(self, *, deadline: float) -> Acknowledged | None:
        bodies, self.under_way = self.under_way, []
        if self.refused.intersection(bodies):
            raise MessageIllegal("Answered with code 13: no")
        first = len(self.stored)
        self.stored += bodies
        return Acknowledged(OUT, first, len(bodies), StoreStatus.OK) if bodies else None


def writer_to(sender: Strict) -> QueueWriter:
    client: Any = SimpleNamespace(sender=lambda queue: sender)
    return QueueWriter(QueueAppender(client, OUT, LINEAGE, 0, 3.0), LINEAGE, 3.0, MOST)


def written(sender: Strict, bodies: list[bytes], tolerated: int = 1_000_000) -> tuple[QueueWriter, list[int]]:
    """In two batches of the source; the offsets that were refused."""
    writer, told = writer_to(sender), []

    def refused(row: pa.RecordBatch, kind: str, message: str) -> None:
        assert (kind, row.column("value")[0].as_py()) == ("MessageIllegal", bodies[row.column("offset")[0].as_py()])
        if len(told) == tolerated:
            raise TooManyRejects("one too many")
        told.extend(row.column("offset").to_pylist())

    assert isinstance(writer, Refusable)
    writer.on_refused = refused
    half = len(bodies) // 2
    rows = records(list(bodies))
    assert writer.write(rows.slice(0, half), limit()) == half
    assert writer.write(rows.slice(half), limit()) == len(bodies) - half
    writer.flush(limit())
    return writer, told


BODIES = [b"body %05d" % n for n in range(2_600)]


@pytest.mark.parametrize("reason", ["refused", "too_long"])
@pytest.mark.parametrize("places", [[0], [1_299], [2_599], [7, 8, 9, 1_301], list(range(0, 2_600, 97))])
def test_all_others_are_stored_in_order(places: list[int], reason: str) -> None:
    sender = Strict(**{reason: frozenset(BODIES[place] for place in places)})
    writer, told = written(sender, BODIES)
    assert told == places
    assert sender.stored == [body for n, body in enumerate(BODIES) if n not in places]
    delivered = writer.flush(limit())
    assert (delivered.records, delivered.behind) == (len(sender.stored), {str(OUT): len(sender.stored)})
    assert sender.requests <= 4 + len(places) * 2 * 11, "each is found by halving"


def test_nothing_is_sent_behind_one_that_is_not_tolerated() -> None:
    sender = Strict(refused=frozenset({BODIES[40], BODIES[700]}))
    with pytest.raises(TooManyRejects):
        written(sender, BODIES, tolerated=1)
    assert sender.stored == [body for body in BODIES[:700] if body != BODIES[40]]
    assert not sender.under_way


def test_where_nobody_takes_it_the_refusal_is_raised() -> None:
    writer = writer_to(Strict(refused=frozenset({b"b"})))
    writer.write(records([b"a", b"b"]), limit())
    with pytest.raises(MessageIllegal):
        writer.flush(limit())


def test_a_parcel_of_some_of_the_rows_knows_its_records() -> None:
    rows = records([b"%d" % n for n in range(10)])
    [parcel] = Load.of(rows, MessageMarker(LINEAGE), MOST).take(np.array([1, 4, 8])).parcels()
    first, second = parcel.halves()
    assert [one.record().column("offset").to_pylist() for one in (first, second, second.halves()[1])] == [[1], [4], [8]]
