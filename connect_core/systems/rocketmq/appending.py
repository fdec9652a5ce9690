"""Batches behind each other in one queue, and where they stand there: what every writer of the RocketMQ sink uses.

At most one batch is outstanding, and none follows one whose outcome is unknown: what a range has in a queue is always
the first of what was to go there. Every acknowledgement is compared with the offset that was expected: what got in
between is read back before a `flush` returns, and messages of this lineage among it are duplicates: a request of an
attempt that is dead, which its broker had kept back (delivery rule 4). A topic that is made anew while a range is
written takes with it what stood there: so a queue that goes back, or holds something else where ours stood, ends the
range before it is settled (delivery rule 7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from connect_core import clock
from connect_core.errors import OffsetGone, Retriable
from connect_core.rocketmq import Acknowledged, Client, MessageIllegal, Queue, StoreStatus
from connect_core.sdk.kits.log_marks import Elsewhere, Mark
from connect_core.sdk.records import Lineage
from connect_core.sdk.sink import OnRefused
from connect_core.sdk.spans import Span, extend, uncovered
from connect_core.sdk.values import Floor, Json, Limit
from connect_core.systems.rocketmq.finding import rewound
from connect_core.systems.rocketmq.marking import MessageRecogniser, Torn
from connect_core.systems.rocketmq.parcels import Parcel
from connect_core.systems.rocketmq.standing import end_and_gone, evidence_of, newest_place, target_replaced

_POLL_S = 0.005


class QueueAppender:
    """One for a range and a queue. `expected` is the offset that the next batch should get; `records`, `bytes` and
    `duplicates` count what was acknowledged, handed over, and looked at; `possible_duplicates` what was to be looked at
    and is there no more."""

    def __init__(self, client: Client, queue: Queue, lineage: Lineage, expected: int, send_timeout_s: float) -> None:
        self.queue = queue
        self._client = client
        self._lineage = lineage
        self._recogniser = MessageRecogniser([lineage])
        self._send_timeout_s = send_timeout_s
        self._sender = client.sender(queue)
        self.expected = expected
        self._written: list[list[int]] = []
        self._unsure: dict[StoreStatus, list[list[int]]] = {}
        self._foreign: list[Span] = []
        self.records = 0
        self.bytes = 0
        self.duplicates = 0
        self.possible_duplicates = 0
        self.stands: Json = {}
        """What of ours stands last in the queue; empty where nothing was written nor found."""
        self.on_refused: OnRefused | None = None
        """Who is told of a message that the broker refuses for good (`sdk.sink.Refusable`)."""
        self._outstanding: Parcel | None = None
        self.others: Callable[[], Sequence[Span]] = tuple
        """Where other writers of the same lane have written to this queue by now."""
        self.anchors: list[Floor] | None = None
        """What must stand in the queue when the range ends; None where what a queue has lost is tolerated."""

    def send(self, parcel: Parcel, limit: Limit) -> None:
        """Waits until the one before it is stored, then hands this one over."""
        self.finish(limit)
        try:
            self._sender.submit(parcel.message, deadline=self._deadline(limit), sys_flag=parcel.packing)
        except MessageIllegal as error:
            self._part(parcel, error, limit)
            return
        self._outstanding = parcel

    def finish(self, limit: Limit) -> None:
        """Returns when everything that was sent is stored, or was refused."""
        parcel, self._outstanding = self._outstanding, None
        try:
            self._count(self._sender.finish(deadline=self._deadline(limit)))
        except MessageIllegal as error:
            if parcel is None:
                raise
            self._part(parcel, error, limit)
            return
        self.bytes += len(parcel.message.body) if parcel else 0

    def _part(self, parcel: Parcel, error: MessageIllegal, limit: Limit) -> None:
        """A broker refuses all of a request because of one message. Nothing of it is stored: it is sent again in
        halves, in order, until the message stands alone. Nothing behind it is sent before somebody has said that it may
        be left out."""
        if self.on_refused is None:
            raise error
        if parcel.rows == 1:
            self.on_refused(parcel.record(), type(error).__name__, error.what)
            return
        for half in parcel.halves():
            self.send(half, limit)
            self.finish(limit)

    def look_between(self, *spans: Span) -> None:
        """`look` goes through these as well: what came before the first batch."""
        self._foreign += spans

    def written(self) -> list[Span]:
        """Where the acknowledged batches stand."""
        return [(begin, end) for begin, end in self._written]

    def unsure(self) -> dict[str, list[Span]]:
        """Where the batches stand that the broker has stored, and says that it could not flush or copy in time."""
        return {status.name: [(begin, end) for begin, end in spans] for status, spans in self._unsure.items()}

    def look(self, limit: Limit) -> None:
        """Counts the duplicates among what others wrote between our batches. Raises TargetChanged when what stood there
        before is gone."""
        deadline = clock.monotonic() + limit.left_s()
        self._check_anchors(deadline)
        if not self._foreign:
            return
        ours = [*self.written(), *self.others()]
        for one in (rest for span in self._foreign for rest in uncovered(*span, ours)):
            self._count_duplicates(*one, deadline)
        self._foreign = []

    def _check_anchors(self, deadline: float) -> None:
        """Of a place that cannot be seen yet nobody can tell what stands there: what others have stored in a queue that
        was made anew may become visible later than what we wrote behind it is acknowledged."""
        if not self.anchors:
            return
        last = newest_place(self.anchors)
        end, lost = end_and_gone(self._client, self.queue, self.anchors)
        while self._written and end <= last:
            self._wait_for_sight(last, deadline)
            end, lost = end_and_gone(self._client, self.queue, self.anchors)
        if lost:
            raise target_replaced(lost)

    def _wait_for_sight(self, place: int, deadline: float) -> None:
        if clock.monotonic() >= deadline:
            raise Retriable(
                "No time was left to check the messages between our batches",
                where=f"{self.queue}, offset {place}",
                next_step="The next attempt checks all of it; give each queue of this topic fewer writers",
            )
        clock.sleep(_POLL_S)

    def _deadline(self, limit: Limit) -> float:
        """The last moment at which a send may begin, so that its outcome is known before the lane's deadline."""
        return clock.monotonic() + limit.left_s() - self._send_timeout_s

    def _count(self, stored: Acknowledged | None) -> None:
        if stored is None:
            return
        self._check_goes_on(stored)
        if stored.first_offset > self.expected:
            self._foreign.append((self.expected, stored.first_offset))
        extend(self._written, stored.first_offset, stored.next_offset)
        if stored.status is not StoreStatus.OK:
            extend(self._unsure.setdefault(stored.status, []), stored.first_offset, stored.next_offset)
        self.expected = stored.next_offset
        self.stands = evidence_of(stored)
        self.records += stored.count

    def _check_goes_on(self, stored: Acknowledged) -> None:
        if self.anchors is None:
            return
        if stored.first_offset < self.expected:
            raise rewound(self.queue, self.expected, stored.first_offset)
        if not self._written:
            evidence = evidence_of(stored)
            self.anchors.append(Floor(self._lineage.partition_id, str(self.queue), self.expected, evidence=evidence))

    def _count_duplicates(self, begin: int, end: int, deadline: float) -> None:
        """Messages of this lineage in [begin, end): whatever record they are of, this writer has not sent them. Of what
        retention has removed meanwhile nobody can say what it was."""
        while begin < end:
            found, removed, begin = self._found_in(begin, end, deadline)
            self.duplicates += found
            self.possible_duplicates += removed
            if begin < end:  # acknowledged, but not visible yet
                self._wait_for_sight(begin, deadline)

    def _found_in(self, begin: int, end: int, deadline: float) -> tuple[int, int, int]:
        """How many messages of this lineage are visible in [begin, end), how many are there no more, and where that
        ends."""
        count, removed = 0, 0
        reader = self._client.read(self.queue, begin, end, deadline=deadline)
        with suppress(OffsetGone):  # on a busy broker the visible end may still be before all of this
            for part in reader:
                count += sum(map(_is_of_lineage, self._recogniser.read(part.messages)))
                removed += part.end - part.begin - len(part.messages)
        return count, removed, reader.position


def _is_of_lineage(one: Mark | Elsewhere | Torn) -> bool:
    return one.lineage is not None and not isinstance(one, Elsewhere)
