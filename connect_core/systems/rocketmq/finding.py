"""Looks for messages of ours in target queues: one forward scan of each queue for all ranges at once (delivery rule 7).

Read-only. A scan begins at the lowest floor of its ranges, or where the last slice stopped, and ends at the queue's
end behind a visibility barrier taken now. What retention has deleted in between cannot be known: the records of a
partition stand in order in each queue that they go to, so the first coordinate still there decides whether anything of
ours can be among it. Where none is left, `on_unknown` says whether the range is delivered again; how many of its
records may be there twice then is counted in the messages that were deleted.

A range by key, or of a connector with rules, has a floor, and is looked for, in every queue that it pinned. What is
there is any subset of it: one queue may be ahead of another by any number of records. Within a queue it is the first of
what was to go there, since no batch follows one that is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from connect_core import clock
from connect_core.errors import Failure, TargetChanged, WireFormatError
from connect_core.rocketmq import Client, PermissionRefused, Queue, QueueReader, StoredSlice
from connect_core.sdk.kits.log_marks import Elsewhere, Mark
from connect_core.sdk.records import Lineage
from connect_core.sdk.scan import Numbers, Piece, ScanResult, parted
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
OnUnknown = Literal["fail", "redeliver"]
_ROWS_AT_ONCE, _PIECES_AT_ONCE = 65_536, 1_024
_BYTES_AT_ONCE = 512 * 1024
"""Of a queue so much is looked at together: brokers may give few messages in an answer."""
_NO_ROWS = np.empty((0, 5), dtype=np.int64)
_AGAIN = "Or have it delivered again, with possible duplicates counted in its receipt: on_unknown: redeliver"
_OUT_OF_ORDER = "Later messages of the range are left, so delivering it again would change their order"


@dataclass
class _Sought:
    """One range in one queue. `begin` is where its scan goes on. `doubtful`: so many messages before that were deleted,
    and nothing behind them has told yet whether any of this range can have been among them. `settled_before`: whatever
    is before the range was settled before the place of its floor, so that what stands here of it is there again."""

    item: OpenRange
    lineage: Lineage
    begin: int
    doubtful: int
    settled_before: bool
    late: int = 0
    unclear: int = 0
    """Messages that may be of this range: torn ones, and those of what may have been cut since."""
    later: int | None = None
    """Where the first record of another incarnation stands that may come later."""
    failure: Failure | None = None
    """Why nobody can say what of the range is there."""
    rows: list[Numbers] = field(default_factory=list)
    kept: list[Numbers] = field(default_factory=list)
    further: list[Piece] = field(default_factory=list)

    def take(self, rows: Numbers, target: str) -> None:
        """`rows` are those of `Marks`."""
        rows = rows[np.searchsorted(rows[:, 2], self.begin) :]
        if not len(rows) or self.failure:
            return
        if self.doubtful and (int(rows[0, 0]), int(rows[0, 1])) > (self.item.range.begin, 0):
            self.failure = _unknowable(target, self, _OUT_OF_ORDER)
            return
        self.doubtful = 0
        mine = rows[:, 0] >= self.item.range.begin
        if self.settled_before:
            self.late += int(len(rows) - np.count_nonzero(mine))
        self.rows.append(rows[mine])
        if sum(map(len, self.rows)) >= _ROWS_AT_ONCE or len(self.rows) >= _PIECES_AT_ONCE:
            self.pack(target)

    def take_elsewhere(self, other: Elsewhere) -> None:
        """One of another incarnation is ahead of this range, unless it may be of it."""
        if other.position < self.begin or (other.same and other.offset < self.item.range.begin):
            return
        if other.same and other.offset < self.item.range.end:
            self.unclear += 1
        elif self.later is None:
            self.later = other.position

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

    def pack(self, target: str) -> None:
        """What is behind the range is packed at once: there may be millions."""
        kept, behind = parted(np.concatenate([_NO_ROWS, *self.rows]), self.item.range.end)
        self.kept.append(kept)
        self.further += [Piece.of(target, behind)] if len(behind) else []
        self.rows = []

    def seen(self, target: str) -> Numbers:
        self.pack(target)
        return np.concatenate(self.kept)

    def possible_duplicates(self) -> int:
        """When nothing in the queue has told: how many records of the range can have been deleted there."""
        return min(self.doubtful, self.item.range.end - self.item.range.begin)


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
    looked: dict[int, list[_Looked]] = {item.id: [] for item in wanted.ranges}
    for queue, sought in by_queue.items():
        reached = _scan(client, queue, sought, ends[queue], deadline)
        for one in sought:
            if one.doubtful and reached >= ends[queue] and on_unknown == "fail":
                one.failure = one.failure or _unknowable(str(queue), one, _AGAIN)
            looked[one.item.id].append(_Looked(queue, one, max(reached, one.begin), reached >= ends[queue]))
    return {item.id: _together(item, looked[item.id]) for item in wanted.ranges}


class _Looked(NamedTuple):
    """What came of one range in one queue."""

    queue: Queue
    sought: _Sought
    scanned: int
    complete: bool


def _together(item: OpenRange, looked: Sequence[_Looked]) -> ScanResult:
    """What came of one range in all of its queues."""
    if failure := next((one.sought.failure for one in looked if one.sought.failure), None):
        return ScanResult(failure=failure)
    scanned: dict[str, int] = {}
    repeats = 0
    for queue, sought, reached, complete in looked:
        scanned |= {str(queue): reached, _doubt(queue): 0 if complete else sought.doubtful}
        repeats += sought.unclear + (sought.possible_duplicates() if complete else 0)
    before = replace(item.found or ScanResult(), spread=_shared_out(item))
    return before.joined(
        {str(one.queue): one.sought.seen(str(one.queue)) for one in looked},
        scanned,
        all(one.complete for one in looked),
        further=[piece for one in looked for piece in one.sought.further],
        later={str(one.queue): one.sought.later for one in looked if one.sought.later is not None},
        late=sum(one.sought.late for one in looked),
        possible_duplicates=repeats,
    )


def _shared_out(item: OpenRange) -> tuple[str, ...]:
    queues = queues_of(item.range)
    return tuple(map(str, queues)) if len(queues) > 1 or has_rules(item.range.pins.target) else ()


def _by_queue(wanted: Scan) -> dict[Queue, list[_Sought]]:
    """For each queue in which a record of a range can stand, the ranges, and where to look from."""
    queues: dict[Queue, list[_Sought]] = {}
    for item in wanted.ranges:
        scanned = item.found.scanned if item.found else {}
        for floor in item.floors:
            if not is_queue(floor.target):
                continue
            queue = queue_of(floor.target)
            if queue.topic in by_topic(item.range.pins.target):
                begin = max(floor.position, scanned.get(floor.target, 0))
                doubtful = scanned.get(_doubt(queue), 0)
                queues.setdefault(queue, []).append(
                    _Sought(item, item.range.lineage(wanted.attempt.uid), begin, doubtful, not floor.ahead)
                )
    return queues


def _doubt(queue: Queue) -> str:
    """The name under which a slice tells the next one that a range is doubtful in this queue."""
    return f"{queue} doubtful"


def _scan(client: Client, queue: Queue, sought: list[_Sought], end: int, deadline: float) -> int:
    """The place reached. Raises TargetChanged when the queue ends before a place that was there."""
    highest = max(one.begin for one in sought)
    if end < highest:
        raise rewound(queue, highest, end)
    oldest = client.offsets.begin(queue)
    for one in sought:
        one.doubtful += max(oldest - one.begin, 0)
    reader = client.read(queue, max(min(one.begin for one in sought), oldest), end, deadline=deadline)
    _sift(_parts(reader, queue), sought, str(queue))
    return reader.position


def _check_anchors(client: Client, wanted: Scan) -> None:
    """Places of a topic that is gone say nothing of the one that is there now, whatever is tolerated: a range that was
    planned with them is not finished. Asked when the ends are known: a moment before, the new topic may still have
    ended before these places, and nobody could tell."""
    known = [one for item in wanted.ranges for queue in queues_of(item.range) for one in anchors(item, queue)]
    for floor in oldest_gone(client, known):
        raise target_replaced(floor)


def _parts(reader: QueueReader, queue: Queue) -> Iterator[Columns]:
    """What the reader gives, several answers at once."""
    waiting: list[StoredSlice] = []
    for part in reader.stored():
        waiting += [part] if part.data else []
        if sum(len(one.data) for one in waiting) >= _BYTES_AT_ONCE:
            yield from _decoded(waiting, queue)
            waiting = []
    if waiting:
        yield from _decoded(waiting, queue)


def _decoded(parts: Sequence[StoredSlice], queue: Queue) -> Iterator[Columns]:
    """An answer may begin before it was asked to, within a batch that is stored as one. Raises WireFormatError when the
    offsets of one do not ascend."""
    columns = columns_of(b"".join(part.data for part in parts))
    if (np.diff(columns.offsets) > 0).all():
        first, last = np.searchsorted(columns.offsets, [parts[0].begin, parts[-1].end])
        yield columns.between(int(first), int(last))
    elif len(parts) > 1:
        for part in parts:
            yield from _decoded([part], queue)
    else:
        where = f"{queue} at {parts[0].begin}"
        raise WireFormatError("The offsets of the messages do not ascend", where=where)


def _sift(parts: Iterable[Columns], sought: Sequence[_Sought], target: str) -> None:
    by_lineage: dict[Lineage, list[_Sought]] = {}
    for one in sought:
        by_lineage.setdefault(one.lineage, []).append(one)
    recogniser = ColumnRecogniser(by_lineage)
    last: Mark | Torn = Torn(None, None, -2)
    for part in parts:
        for found in recogniser.read(part):
            if isinstance(found, Torn):
                _take_torn(_placed(found, last), by_lineage)
                last = found
                continue
            if isinstance(found, Elsewhere):
                for one in by_lineage[found.lineage]:
                    one.take_elsewhere(found)
                continue
            for one in by_lineage[found.lineage]:
                one.take(found.rows, target)
            last = found.last()


def _placed(torn: Torn, last: Mark | Torn) -> Torn:
    """A batch is torn within one message: if that does not tell, it is of the batch of ours that stands before it."""
    if torn.lineage is None and last.position + 1 == torn.position:
        return torn._replace(lineage=last.lineage, offset=last.offset)
    return torn


def _take_torn(torn: Torn, by_lineage: Mapping[Lineage, Sequence[_Sought]]) -> None:
    for lineage, concerned in by_lineage.items():
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


def _unknowable(target: str, one: _Sought, or_else: str) -> Failure:
    wanted = one.item.range
    unknowable = TargetChanged(
        "Messages were deleted by retention before Waybill checked which of an open range had arrived",
        where=f"{target}, range of {wanted.partition.key} from {wanted.begin}",
        next_step=f"Find out which arrived, then give the range up: {wanted.give_up}. {or_else}",
    )
    return Failure.of(unknowable)
