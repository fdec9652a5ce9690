"""Reads again what receipts say of topics: the stretches of queues that their ranges wrote, and where some of their
records were found there, all that was written since the receipt before. Records are told by their coordinates."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from connect_core.rocketmq import Client, Queue, TopicMissing
from connect_core.sdk.kits.log_marks import Marks
from connect_core.sdk.rereading import Claim, Reread, Tally, Verdict
from connect_core.sdk.spans import Span
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq.columns import Columns
from connect_core.systems.rocketmq.connecting import is_queue, queue_of, telling_who_is_away
from connect_core.systems.rocketmq.decoding import record_batch
from connect_core.systems.rocketmq.finding import Hole, parts, visible_ends
from connect_core.systems.rocketmq.recognising import ColumnRecogniser
from connect_core.systems.rocketmq.routing import pinned

_READ_S = 3600.0
"""For one stretch of a queue: as long as it takes, and not for ever."""


def reread(client: Client, claims: Sequence[Claim]) -> Iterator[Reread]:
    """See `sdk.rereading.Rereadable`."""
    with_records = [one for one in claims if one.outputs]
    yield from (Reread(one.range_id, Verdict.SAME) for one in claims if not one.outputs)
    places, tally = ClaimedPlaces(client, with_records), Tally(with_records)
    recogniser = ColumnRecogniser({one.lineage for one in with_records})
    for queue, part in places.read():
        _count(part, queue, recogniser, tally)
    for one in with_records:
        yield tally.reread(one, expired=places.expired(one))


class ClaimedPlaces:
    """Where the records of these claims can stand, as far as the queues have it. Raises Unreachable where a broker is
    away."""

    def __init__(self, client: Client, claims: Sequence[Claim]) -> None:
        self._client = client
        self._bounds = _bounds(client, {queue for one in claims for queue in _queues(one)})
        self._bounds |= _what_cannot_be_seen_yet(client, self._bounds, claims)
        self._stretches = {one.range_id: _stretches(one, self._bounds) for one in claims}

    def read(self) -> Iterator[tuple[Queue, Columns]]:
        """What stands there now, each place once."""
        for queue, begin, end in _united(self._stretches.values(), self._bounds):
            for part in parts(self._client.read(queue, begin, end, deadline=time.monotonic() + _READ_S), queue):
                if not isinstance(part, Hole):
                    yield queue, part

    def expired(self, one: Claim) -> int:
        """How many of its places a queue had and has no more: it begins behind them."""
        begins = {queue: begin for queue, (begin, _) in self._bounds.items()}
        return sum(
            max(min(end, begins.get(queue, 0)) - begin, 0) for queue, (begin, end) in self._stretches[one.range_id]
        )


def _bounds(client: Client, queues: set[Queue]) -> dict[Queue, Span]:
    """Of all queues of their topics; none of a topic that is gone. Raises Unreachable where a broker is away."""
    found: dict[Queue, Span] = {}
    for topic in sorted({queue.topic for queue in queues}):
        with suppress(TopicMissing), telling_who_is_away(client, [one for one in queues if one.topic == topic]):
            found |= {queue: (seen.begin, seen.end) for queue, seen in client.offsets.bounds(topic).items()}
    return found


def _what_cannot_be_seen_yet(
    client: Client, bounds: Mapping[Queue, Span], claims: Sequence[Claim]
) -> dict[Queue, Span]:
    """The bounds of queues that end before what a receipt tells, asked again behind a barrier: a moment after a run has
    ended its last messages may be acknowledged and not yet visible (delivery rule 4)."""
    short = {
        queue
        for one in claims
        for queue, spans in _written(one.where).items()
        if queue in bounds and any(end > bounds[queue][1] for _, end in spans)
    }
    return {queue: (bounds[queue][0], end) for queue, end in visible_ends(client, short).items()}


def _queues(one: Claim) -> set[Queue]:
    return {*_written(one.where), *(pinned(one.target) if one.sought else ())}


def _written(where: Json) -> dict[Queue, list[Span]]:
    queues = {queue_of(name): spans for name, spans in where.items() if is_queue(name)}
    return {queue: [(begin, end) for begin, end in spans] for queue, spans in queues.items()}


def _stretches(one: Claim, bounds: Mapping[Queue, Span]) -> list[tuple[Queue, Span]]:
    """Where its records can stand."""
    written = _written(one.where)
    places = [(queue, span) for queue, spans in written.items() for span in spans]
    if not one.sought:
        return places
    before = {queue: max(end for _, end in spans) for queue, spans in _written(one.before).items()}
    for queue in _queues(one):
        oldest, end = bounds.get(queue, (0, 0))
        begin = before.get(queue, oldest)
        behind = max((last for _, last in written.get(queue, ())), default=end)
        if begin < behind:
            places.append((queue, (begin, behind)))
    return places


def _united(
    stretches: Iterable[list[tuple[Queue, Span]]], bounds: Mapping[Queue, Span]
) -> Iterator[tuple[Queue, int, int]]:
    """Each place once, as far as the queues have it."""
    by_queue: dict[Queue, list[Span]] = {}
    for queue, span in (place for places in stretches for place in places):
        by_queue.setdefault(queue, []).append(span)
    for queue, spans in sorted(by_queue.items()):
        oldest, newest = bounds.get(queue, (0, 0))
        reached = oldest
        for begin, end in sorted(spans):
            if max(begin, reached) < min(end, newest):
                yield queue, max(begin, reached), min(end, newest)
            reached = max(reached, end)


def _count(part: Columns, queue: Queue, recogniser: ColumnRecogniser, tally: Tally) -> None:
    found = [one for one in recogniser.read(part) if isinstance(one, Marks)]
    if not found:
        return
    records, _ = record_batch(part, queue.topic)
    places = records.column("offset").to_numpy()
    for marks in found:
        kept = np.isin(marks.rows[:, 2], places)  # what cannot be decoded any more is not there
        rows = marks.rows[kept]
        chosen = records.take(pa.array(np.searchsorted(places, rows[:, 2])))
        if not len(rows):
            continue
        for name, column in (("offset", rows[:, 0]), ("ordinal", rows[:, 1].astype(np.int32))):
            place = chosen.schema.get_field_index(name)
            chosen = chosen.set_column(place, chosen.schema.field(place), pa.array(column))
        tally.add(marks.lineage, chosen, f"{queue} from {rows[0, 2]}")
