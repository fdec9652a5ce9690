"""Looks for messages of ours in target queues: one forward scan of each queue for all ranges at once (delivery rule 7).

Read-only. A scan begins at the lowest floor of its ranges, or where the last slice stopped, and ends at the queue's
end behind a visibility barrier taken now. What retention has deleted in between cannot be known: the records of a
partition are in order in each queue that they go to: `sdk.kits.log_search` says what that tells. Where nothing does,
`on_unknown` says whether the range is delivered again; how many of its records may be there twice then is counted in
the messages that were deleted.

A range by key, or of a connector with rules, has a floor, and is looked for, in every queue that it pinned. What is
there is any subset of it: one queue may be ahead of another by any number of records. Within a queue it is the first of
what was to go there, since no batch follows one that is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from connect_core import clock
from connect_core.errors import Failure, TargetChanged, WireFormatError
from connect_core.rocketmq import Client, PermissionRefused, Queue, QueueReader, StoredSlice
from connect_core.sdk.kits.log_marks import Mark, Marks
from connect_core.sdk.kits.log_search import OnUnknown, RangeSearch, by_lineage, each_log, give, together
from connect_core.sdk.records import Lineage
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan
from connect_core.sdk.values import OpenRange
from connect_core.systems.rocketmq.columns import Columns, columns_of
from connect_core.systems.rocketmq.connecting import is_queue, queue_of
from connect_core.systems.rocketmq.marking import Torn
from connect_core.systems.rocketmq.recognising import ColumnRecogniser
from connect_core.systems.rocketmq.routing import by_topic, has_rules, queues_of
from connect_core.systems.rocketmq.standing import anchors, oldest_gone, target_replaced

BARRIER_S = 5.0
SEND_QUEUE_S = 0.25
"""Longer than a broker keeps a send that it has not begun (`waitTimeMillsInSendQueue`, 200 ms): a request of a worker
that was killed is stored or dropped by then, so that what the barrier shows is all there will be (delivery rule 4)."""
_BYTES_AT_ONCE = 512 * 1024
"""Of a queue so much is looked at together: brokers may give few messages in an answer."""
_AGAIN = "Or have it delivered again, with possible duplicates counted in its receipt: on_unknown: redeliver"
_OUT_OF_ORDER = "Later messages of the range are left, so delivering it again would change their order"


class _QueueSearch(RangeSearch):
    """One range in one queue, where a message may be torn as well."""

    def take_torn(self, torn: Torn) -> None:
        """A message that was made from a record of ours and is damaged: the record is delivered again, with what makes
        it one, so this one is a duplicate. Where nobody can tell whose it was it may be that."""
        if torn.position < self.begin:
            return
        wanted = self.item.range
        if torn.lineage is None:
            self.unclear += 1
        elif self.settled_before or torn.offset is None or wanted.begin <= torn.offset < wanted.end:
            self.late += 1


def scan(client: Client, wanted: Scan, on_unknown: OnUnknown = "fail") -> dict[int, ScanResult]:
    """See the module. A range of which not every queue was reached to its end is not `complete`.

    Raises TargetChanged where a queue ends before a place that was there, or holds something else where ours stood.
    What a queue has lost, so that nobody can know, is a failure of the ranges that it concerns.
    """
    by_queue = _by_queue(wanted)
    clock.sleep(SEND_QUEUE_S)
    ends = visible_ends(client, by_queue)
    _check_anchors(client, wanted)
    deadline = clock.monotonic() + wanted.limit_s  # of the scan alone, so that every slice gets on

    def read(queue: Queue, searches: list[_QueueSearch], end: int) -> int:
        return _scan(client, queue, searches, end, deadline)

    searched = each_log(by_queue, ends, read, _unknowable, on_unknown)
    return {item.id: together(item, searched.get(item.id, []), _shared_out(item)) for item in wanted.ranges}


def _shared_out(item: OpenRange) -> tuple[str, ...]:
    queues = queues_of(item.range)
    return tuple(map(str, queues)) if len(queues) > 1 or has_rules(item.range.pins.target) else ()


def _by_queue(wanted: Scan) -> dict[Queue, list[_QueueSearch]]:
    """For each queue in which a record of a range can stand, the ranges, and where to look from."""
    queues: dict[Queue, list[_QueueSearch]] = {}
    for item in wanted.ranges:
        for floor in item.floors:
            if not is_queue(floor.target):
                continue
            queue = queue_of(floor.target)
            if queue.topic in by_topic(item.range.pins.target):
                queues.setdefault(queue, []).append(_QueueSearch.of(item, floor, wanted.attempt.uid))
    return queues


def _scan(client: Client, queue: Queue, searches: list[_QueueSearch], end: int, deadline: float) -> int:
    """The place reached. Raises TargetChanged when the queue ends before a place that was there."""
    highest = max(one.begin for one in searches)
    if end < highest:
        raise rewound(queue, highest, end)
    oldest = client.offsets.begin(queue)
    for one in searches:
        one.expired(oldest)
    reader = client.read(queue, max(min(one.begin for one in searches), oldest), end, deadline=deadline)
    _sift(parts(reader, queue), searches)
    return reader.position


def _check_anchors(client: Client, wanted: Scan) -> None:
    """Places of a topic that is gone say nothing of the one that is there now, whatever is tolerated: a range that was
    planned with them is not finished. Asked when the ends are known: a moment before, the new topic may still have
    ended before these places, and nobody could tell."""
    known = [one for item in wanted.ranges for queue in queues_of(item.range) for one in anchors(item, queue)]
    for floor in oldest_gone(client, known):
        raise target_replaced(floor)


def parts(reader: QueueReader, queue: Queue) -> Iterator[Columns | Hole]:
    """What the reader gives, several answers at once."""
    waiting: list[StoredSlice] = []
    for part in reader.stored():
        waiting.append(part)
        if sum(len(one.data) for one in waiting) >= _BYTES_AT_ONCE:
            yield from _decoded(waiting, queue)
            waiting = []
    if waiting:
        yield from _decoded(waiting, queue)


class Hole(NamedTuple):
    """Positions in which there is no message any more: retention goes on while a queue is scanned."""

    begin: int
    end: int


def _decoded(parts: Sequence[StoredSlice], queue: Queue) -> Iterator[Columns | Hole]:
    """An answer may begin before it was asked to, within a batch that is stored as one. Raises WireFormatError when the
    offsets of one do not ascend."""
    columns = columns_of(b"".join(part.data for part in parts))
    if (np.diff(columns.offsets) > 0).all():
        begin, end = parts[0].begin, parts[-1].end
        first, last = np.searchsorted(columns.offsets, [begin, end])
        yield from _with_holes(columns.between(int(first), int(last)), begin, end)
    elif len(parts) > 1:
        for part in parts:
            yield from _decoded([part], queue)
    else:
        where = f"{queue} at {parts[0].begin}"
        raise WireFormatError("The offsets of the messages do not ascend", where=where)


def _with_holes(columns: Columns, begin: int, end: int) -> Iterator[Columns | Hole]:
    """The messages of [begin, end), parted where some are not there."""
    if len(columns) == end - begin:
        yield columns
        return
    places = np.concatenate([[begin - 1], columns.offsets, [end]])
    row = 0
    for behind in np.flatnonzero(np.diff(places) > 1).tolist():
        yield from [columns.between(row, behind)] if behind > row else []
        yield Hole(int(places[behind]) + 1, int(places[behind + 1]))
        row = behind
    yield from [columns.between(row, len(columns))] if row < len(columns) else []


def _sift(parts: Iterable[Columns | Hole], searches: Sequence[_QueueSearch]) -> None:
    lineages = by_lineage(searches)
    recogniser = ColumnRecogniser(lineages)
    last: Mark | Torn = Torn(None, None, -2)
    for part in parts:
        if isinstance(part, Hole):
            for one in searches:
                one.missed(*part)
            continue
        for found in recogniser.read(part):
            if isinstance(found, Torn):
                _take_torn(_placed(found, last), lineages)
                last = found
                continue
            give(found, lineages)
            last = found.last() if isinstance(found, Marks) else last


def _placed(torn: Torn, last: Mark | Torn) -> Torn:
    """A batch is torn within one message: if that does not tell, it is of the batch of ours that stands before it."""
    if torn.lineage is None and last.position + 1 == torn.position:
        return torn._replace(lineage=last.lineage, offset=last.offset)
    return torn


def _take_torn(torn: Torn, lineages: Mapping[Lineage, Sequence[_QueueSearch]]) -> None:
    for lineage, concerned in lineages.items():
        if torn.lineage in (None, lineage):
            for one in concerned:
                one.take_torn(torn)


def visible_ends(client: Client, queues: Iterable[Queue]) -> dict[Queue, int]:
    """The end of each queue, behind everything that its broker has acknowledged."""
    wanted = list(queues)
    for broker in sorted({queue.broker for queue in wanted}):
        wait_until_visible(client, broker)
    return {queue: client.offsets.end(queue) for queue in wanted}


def wait_until_visible(client: Client, broker: str) -> None:
    """Where the barrier's topic may not be written there is no waiting: `check --probe` tells what that means."""
    with suppress(PermissionRefused):
        client.barrier(broker, deadline=clock.monotonic() + BARRIER_S)


def rewound(queue: Queue, expected: int, end: int) -> TargetChanged:
    return TargetChanged(
        f"The queue ends at {end}, before {expected}: it was created again or its broker lost messages",
        where=str(queue),
        next_step="Restore the topic, or let the sink continue in the topic that is there now (on_replaced: continue); "
        "a range that is open has to be given up for that (waybill offsets set --abandon)",
    )


def _unknowable(search: _QueueSearch) -> Failure:
    wanted = search.item.range
    unknowable = TargetChanged(
        "Messages were deleted by retention before Waybill checked which of an open range had arrived",
        where=f"{search.floor}, range of {wanted.partition.key} from {wanted.begin}",
        next_step=f"Find out which arrived, then give the range up: {wanted.give_up}. "
        f"{_OUT_OF_ORDER if search.out_of_order else _AGAIN}",
    )
    return Failure.of(unknowable)
