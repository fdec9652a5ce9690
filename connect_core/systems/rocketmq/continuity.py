"""Where reading goes on in a queue whose messages may have expired, or that may be another one by now
(delivery rule 10).

The evidence of a position is what stood right before it: offset, store time and checksum of one message. It is read
again before each plan, and by whoever has waited at the end of a queue; a topic that was deleted and created anew, and
has grown past the offset, is told by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from connect_core import clock
from connect_core.errors import ConfigError, OffsetGone, Retriable
from connect_core.rocketmq import Client, PullStatus, Queue, QueueBounds, QueueReader, StoredMessage, StoredSlice
from connect_core.sdk.values import Bounds, Gap, Json, Position
from connect_core.systems.rocketmq.columns import Columns, columns_of
from connect_core.systems.rocketmq.read_before import limits_at, limits_of

GRACE_S = 2.0
"""For the last look of a quantum: what a lane still has to do then needs the rest of its time."""
_MESSAGE = ("offset", "stored_ms", "crc")
_AT_END = "at_end"
"""In the evidence of a position: the queue ended there when it was read."""
_SHRUNK_FROM = "shrunk_from"
"""In the evidence of a position: the queue ended there when it was read, and further on when that was planned."""
_ENDED = "ended"
"""In the evidence of a position: its topic was deleted, or its queue closed, and that was told; nothing was seen of it
since."""
_WAS = "was"
"""Beside that: where the queue was read to, and the evidence of that position."""
_PASSED_OVER = (PullStatus.FILTERED, PullStatus.REMOVED, PullStatus.INDEX_GONE)
"""Answers of a broker that has no message to give at an offset that it had given out, and says where there is one."""
_BACK = "the queue is there again that had ended; reading continues where it was"


def evidence_of(message: StoredMessage) -> Json:
    return {"offset": message.queue_offset, "stored_ms": message.store_timestamp_ms, "crc": message.body_crc}


def evidence_of_last(columns: Columns) -> Json:
    offset, stored_ms, crc = (int(column[-1]) for column in (columns.offsets, columns.stored_ms, columns.crcs))
    return {"offset": offset, "stored_ms": stored_ms, "crc": crc}


class SecondLook:
    """Whether a queue is still the one of which `evidence` was read: asked at once, and answered while the caller works
    on what came behind it. Without evidence there was nothing before, and any queue is the right one."""

    def __init__(self, client: Client, queue: Queue, evidence: Json, until: float) -> None:
        """A busy broker is asked again until that moment, at which the lane comes to its end, and a little longer: a
        look that begins right before it has its time, too."""
        self._evidence = _of_message(evidence)
        self._reader: QueueReader | None = None
        self._until = max(until, clock.monotonic()) + GRACE_S
        if self._evidence:
            offset = self._evidence["offset"]
            self._reader = client.read(queue, offset, offset + 1, deadline=self._until)
            self._reader.pull()

    def holds(self) -> bool:
        """True as well when the message is gone: that alone says nothing about the others. Raises what pulls raise, and
        Retriable when the broker did not say it in time."""
        if self._reader is None:
            return True
        try:
            parts = list(self._reader.stored())
        except OffsetGone:
            return False
        if not parts and clock.monotonic() >= self._until:
            raise Retriable(
                "The broker did not say in time whether the queue is still the one that was read before",
                where=f"{self._reader.queue}, offset {self._reader.position}",
                next_step="The next run asks again. Look whether the broker is overloaded",
            )
        return bool(parts) and not any(part.data and self._differs(part) for part in parts)

    def _differs(self, part: StoredSlice) -> bool:
        there = columns_of(bytes(part.data)).before(part.end)
        return len(there) > 0 and evidence_of_last(there) != self._evidence


def at_end(evidence: Json) -> Json:
    """The evidence of a position at which the queue ended when it was read."""
    return evidence | {_AT_END: True}


def shrunk(evidence: Json, former_end: int) -> Json:
    """The evidence of a position at which the queue ended when it was read, though it had ended further on before."""
    return evidence | {_SHRUNK_FROM: former_end}


def first_bounds(client: Client, queue: Queue, seen: QueueBounds, wanted: int, *, chosen: bool = False) -> Bounds:
    """A queue that was never read, from `wanted` on: what has expired behind it is a gap. A place beyond its end, as a
    consumer group may have one, is that of a former topic of this name: all that there is is read, and that is told.

    The evidence is the first message itself, at the end of the queue the one before: a range that is planned now may
    be finished by a later attempt, which has to know whether it is still that queue.
    """
    if wanted > seen.end:  # a group may have moved on since the queue was looked at
        seen = QueueBounds(client.offsets.begin(queue), client.offsets.end(queue), 0)
    if wanted > seen.end:
        return _anew(Position(0, wanted), seen, "rewound")
    begin = max(wanted, seen.begin)
    evidence = _first_evidence(client, queue, begin, seen)
    if chosen and begin == seen.end:
        evidence = at_end(evidence)
    gaps = (Gap(0, wanted, begin, "expired"),) if wanted < begin else ()
    # A place that is kept at once would hide what was lost before it.
    return Bounds(0, begin, seen.begin, seen.end, evidence, gaps, chosen=chosen and not gaps)


def begun_at(client: Client, queue: Queue, seen: QueueBounds, wanted: int) -> Bounds:
    """A queue that was never read, from an offset that a person named. Raises ConfigError for one that is not there
    yet."""
    if wanted > seen.end:
        raise ConfigError(
            f"{queue} ends at {seen.end}, before the {wanted} at which it shall begin",
            where="source.rocketmq.start",
            next_step="Name an offset up to its end; `latest` is where it ends now",
        )
    return first_bounds(client, queue, seen, wanted)


def next_bounds(client: Client, queue: Queue, position: Position, seen: QueueBounds) -> Bounds:
    """A queue that was read up to `position`. Every way to lose messages becomes a gap. The evidence of one that
    is read anew says which of its messages may have been read before."""
    if (back := _is_back(client, queue, position, seen)) is not None:
        return back
    there = _continued(client, queue, position, seen)
    anew = there.incarnation > position.incarnation and not there.evidence
    limits = limits_of(position) if anew else position.evidence
    return replace(there, evidence=there.evidence | limits_at(limits, there.begin))


def _continued(client: Client, queue: Queue, position: Position, seen: QueueBounds) -> Bounds:
    """Without evidence where all of the queue is read anew."""
    place, known = position.offset, position.evidence.get("offset", -1)
    was_shrunk = _SHRUNK_FROM in position.evidence or place > seen.end
    position = replace(position, evidence=_of_message(position.evidence))
    if place > seen.end:
        if not seen.begin <= known < seen.end:
            return _anew(position, seen, "rewound")
        place = known + 1  # so far it is the same queue: not all of it is read again
    given: Sequence[StoredMessage] = ()
    if known >= seen.begin:
        before = client.pull(queue, known, max_messages=2)
        if before.status is PullStatus.TOO_LARGE:
            return _anew(position, seen, "rewound")
        if not _is_what_stood_there(before.messages, position.evidence):
            return _anew(position, seen, "recreated")
        if known <= place:  # a backfill begins before what the live stream has read
            given = before.messages
    begin = _first_given(client, queue, max(place, seen.begin), seen.end, given)
    if was_shrunk:  # what has these offsets now is read
        return replace(_anew(position, seen, "rewound"), begin=begin, evidence=position.evidence)
    if begin == position.offset:
        evidence = position.evidence or _first_evidence(client, queue, begin, seen)
        return Bounds(position.incarnation, begin, seen.begin, seen.end, evidence)
    gap = Gap(position.incarnation, position.offset, begin, "expired" if begin == seen.begin else "missing")
    return Bounds(position.incarnation, begin, seen.begin, max(begin, seen.end), position.evidence, (gap,))


def closed_bounds(position: Position, end: int) -> Bounds:
    """A queue that nobody may read any more, since its topic has fewer of them now. The broker still
    knows its `end`: what was not read up to there is a gap. When all of it was, an empty one tells, once, that it has
    ended."""
    end = max(end, position.offset)
    if position.evidence.get(_ENDED) and end == position.offset:
        return Bounds(position.incarnation, end, end, end, position.evidence, grows=False)
    gap = Gap(position.incarnation, position.offset, end, "closed")
    evidence = position.evidence | {_ENDED: True}
    return Bounds(position.incarnation, end, end, end, evidence, (gap,), grows=False)


def never_read(begin: int) -> Position:
    """Of a queue of which nothing was read, and that is closed: that it has ended is nothing to tell."""
    return Position(0, begin, {_ENDED: True})


def deleted_bounds(position: Position | None) -> Bounds:
    """A queue whose topic was deleted. Nobody knows what was in it then. A gap from `position` to an unknown end; an
    empty one when the queue ended there when it was read last, so that nothing is known to be lost. Either way a topic
    of that name that is created later begins anew, unless it has the last message that was read (`_is_back`).

    Where nothing was ever seen in it there is nothing to tell.
    """
    if position is None:
        return Bounds(0, 0, 0, 0, grows=False)
    if position.evidence.get(_ENDED):
        return Bounds(position.incarnation, position.offset, 0, position.offset, position.evidence, grows=False)
    read_to_its_end = bool(position.evidence.get(_AT_END))
    end, reason = (position.offset, "ended") if read_to_its_end else (None, "deleted")
    gap = Gap(position.incarnation, position.offset, end, reason)
    evidence = {_ENDED: True, _WAS: {"at": position.offset, "evidence": _of_message(position.evidence)}}
    return Bounds(position.incarnation + 1, 0, 0, 0, evidence, (gap,), grows=False)


def _is_back(client: Client, queue: Queue, position: Position, seen: QueueBounds) -> Bounds | None:
    """A queue that had ended, when it is the same one after all: a broker may come up without its store for a while. By
    the last message that was read of it. None for a queue that is new."""
    was = position.evidence.get(_WAS) or {}
    known = was.get("evidence") or {}
    if position.offset or not known or not seen.begin <= known["offset"] < was["at"] <= seen.end:
        return None
    there = client.pull(queue, known["offset"], max_messages=1).messages
    if not there or evidence_of(there[0]) != known:
        return None
    gap = Gap(position.incarnation, 0, was["at"], _BACK, warns=True)
    return Bounds(position.incarnation, was["at"], seen.begin, seen.end, known, (gap,))


def _of_message(evidence: Json) -> Json:
    return {name: evidence[name] for name in _MESSAGE if name in evidence}


def _first_evidence(client: Client, queue: Queue, begin: int, seen: QueueBounds) -> Json:
    """Of the message that is read first, where nothing was seen before it; of the one before the queue's end."""
    place = min(begin, seen.end - 1)
    first = client.pull(queue, place, max_messages=1).messages if place >= seen.begin else []
    return evidence_of(first[0]) if first else {}


def _is_what_stood_there(messages: Sequence[StoredMessage], evidence: Json) -> bool:
    """True as well when the message is gone: that alone says nothing about the others."""
    if not messages or messages[0].queue_offset != evidence["offset"]:
        return True
    return evidence_of(messages[0]) == evidence


def _first_given(client: Client, queue: Queue, begin: int, end: int, given: Sequence[StoredMessage]) -> int:
    """`begin`, or the first place behind it from which the broker gives a message. It is asked where what it has
    `given` does not tell: what it passes over would end each attempt to read it, and no plan would see why."""
    ahead = [message.queue_offset for message in given if message.queue_offset >= begin]
    while not ahead and begin < end:
        answer = client.pull(queue, begin, max_messages=1)
        ahead = [message.queue_offset for message in answer.messages if message.queue_offset >= begin]
        if not ahead and (answer.status not in _PASSED_OVER or answer.next_offset <= begin):
            break
        begin = max(begin, min(answer.next_offset, end))
    return ahead[0] if ahead else begin


def _anew(position: Position, seen: QueueBounds, reason: str) -> Bounds:
    gap = Gap(position.incarnation, position.offset, None, reason)
    return Bounds(position.incarnation + 1, seen.begin, seen.begin, seen.end, gaps=(gap,))
