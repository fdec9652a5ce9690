"""Floors: where in each target queue a range begins to look for what is there (delivery rules 6 and 7).

They stand from one range to the next. A plan moves them past what others wrote, and begins anew where a queue has lost
what was delivered to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from connect_core import clock
from connect_core.errors import TargetChanged, WaybillError
from connect_core.rocketmq import Client, Queue
from connect_core.sdk.spans import Span
from connect_core.sdk.values import Floor, Range
from connect_core.systems.rocketmq.connecting import Connecting, check_route, is_queue, queue_of, with_writable
from connect_core.systems.rocketmq.finding import rewound, visible_ends
from connect_core.systems.rocketmq.routing import pinned, places_forgotten, queues_of
from connect_core.systems.rocketmq.standing import moved, replaced, target_replaced

LOOK_BACK = 10_000
"""Messages of others behind our last settled one that are read before the first batch of a range: more of them would
cost a busy topic more than it is worth to know of a request that its broker had kept back."""

KNOWN_S = 60.0
"""For so long a look at the queues counts: a run with a window may be longer than retention, which passes floors."""


class Floors:
    """Of one run of a sink. With `tolerant` what a queue has lost does not stop it (`on_replaced: continue`)."""

    def __init__(self, connecting: Connecting, *, tolerant: bool) -> None:
        self._connecting = connecting
        self._tolerant = tolerant
        self._looked = clock.monotonic()
        self._ends: dict[Queue, int] = {}
        self._spans: dict[Queue, Span] = {}
        self._shorter: dict[str, int] = {}
        """Queues that have lost what was delivered to them, and where they end, when that is tolerated."""
        self._replaced: set[tuple[str, str]] = set()
        """Partition and queue of the floors in front of which something else stands."""
        self._begun_anew: set[tuple[str, str]] = set()

    def check(self, client: Client, known: Sequence[Floor], queues: Sequence[Queue]) -> None:
        """Whether what was delivered to a topic, which has these queues now, still stands there. Raises TargetChanged
        when it does not, unless that is tolerated."""
        self._check_ends(client, known, queues)
        self._check_standing(client, known)

    def of(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """One for each queue that a record of the range can go to, or may have gone to where the ledger was `restored`.
        The ends of all queues are looked at together, now and then: an older end is only a lower floor."""
        if clock.monotonic() - self._looked >= KNOWN_S:
            self._looked = clock.monotonic()
            self._ends, self._spans = {}, {}
        standing = {floor.target: floor for floor in known}
        queues = [*queues_of(wanted), *(places_forgotten(wanted, known) if restored else ())]
        return tuple(self._floor(wanted, queue, standing.get(str(queue)), restored) for queue in queues)

    def within(self, floors: Sequence[Floor]) -> list[Floor]:
        """See `sdk.sink.Expiring`."""
        return [self._within(floor) for floor in floors]

    def _floor(self, wanted: Range, queue: Queue, standing: Floor | None, restored: bool) -> Floor:
        if standing is not None and self._is_lost(standing):
            return Floor(wanted.partition.id, str(queue), self._near_begin(queue), ahead=True)
        if standing is not None:
            return standing if standing.ahead else moved(standing, self._moved_up(queue, standing.position))
        if restored:
            with self._connecting.client() as client:
                return Floor(wanted.partition.id, str(queue), client.offsets.begin(queue), ahead=True)
        return Floor(wanted.partition.id, str(queue), self._end(wanted, queue))

    def _near_begin(self, queue: Queue) -> int:
        """A request of ours may have come to the queue since it was made anew."""
        with self._connecting.client() as client:
            return near(client.offsets.begin(queue), self._shorter[str(queue)])

    def _is_lost(self, standing: Floor) -> bool:
        """Whether the place that a floor names is gone with what its queue has lost. Asked once of each: what the range
        settles is a place in the queue as it is now."""
        name = (standing.partition_id, standing.target)
        shorter = standing.position > self._shorter.get(standing.target, standing.position)
        if not (shorter or name in self._replaced) or name in self._begun_anew:
            return False
        self._begun_anew.add(name)
        return True

    def _moved_up(self, queue: Queue, position: int) -> int:
        """A queue may get nothing of a partition for long. With nothing of ours ahead its floor is moved to the end
        when so much was written behind it by others that a range would not begin there either, or when it stands in the
        older half of what retention has left: retention might pass it while the range is open, and then nobody could
        say what of the range is there."""
        begin, end = self._span(queue)
        expires_soon = begin > 0 and position - begin <= end - position
        return end if expires_soon else near(position, end)

    def _span(self, queue: Queue) -> Span:
        """As it was when this was asked last: an older end is only a lower floor."""
        if queue not in self._spans:
            with self._connecting.client() as client:
                self._spans[queue] = client.offsets.begin(queue), client.offsets.end(queue)
        return self._spans[queue]

    def _end(self, wanted: Range, queue: Queue) -> int:
        if queue not in self._ends:
            with self._connecting.client() as client:
                unknown = [one for one in pinned(wanted.pins.target) if one not in self._ends]
                self._ends |= visible_ends(client, unknown)
        return self._ends[queue]

    def _within(self, floor: Floor) -> Floor:
        """What is given up may be given up because its queue is not there."""
        with suppress(WaybillError), self._connecting.client() as client:
            if is_queue(floor.target):
                return floor._replace(position=max(floor.position, client.offsets.begin(queue_of(floor.target))))
        return floor

    def _check_ends(self, client: Client, floors: Sequence[Floor], queues: Sequence[Queue]) -> None:
        """A queue that ends before a floor lost what stood there. The end may lag an answer: then it is looked at
        again."""
        behind = {floor.target: floor.position for floor in sorted(floors, key=lambda f: f.position)}
        suspects = [
            queue_of(name) for name, place in behind.items() if not _reaches(client, queue_of(name), place, queues)
        ]
        ends = visible_ends(client, suspects)
        shorter = {queue: end for queue, end in ends.items() if end < behind[str(queue)]}
        if shorter and not self._tolerant:
            queue, end = next(iter(shorter.items()))
            raise rewound(queue, behind[str(queue)], end)
        self._shorter |= {str(queue): end for queue, end in shorter.items()}

    def _check_standing(self, client: Client, floors: Sequence[Floor]) -> None:
        """A queue may have been made anew, and be longer by now than what was delivered to it, or than a part of it."""
        for floor in replaced(client, floors):
            if not self._tolerant:
                raise target_replaced(floor)
            self._replaced.add((floor.partition_id, floor.target))
            if floor.target not in self._shorter:
                self._shorter[floor.target] = client.offsets.end(queue_of(floor.target))


def near(settled: int, end: int) -> int:
    """The place behind what was settled, or the queue's end when that is too far away to read up to it."""
    return settled if end - settled <= LOOK_BACK else end


def _reaches(client: Client, queue: Queue, position: int, queues: Sequence[Queue]) -> bool:
    if queue.broker not in {one.broker for one in queues}:
        check_route(client, queue.topic, [queue.broker], with_writable(queue))
        raise TargetChanged(
            "A queue that was written is no longer in the topic's route",
            where=str(queue),
            next_step="Start its broker again, or give up the open ranges: waybill offsets set --abandon",
        )
    return client.offsets.end(queue) >= position
