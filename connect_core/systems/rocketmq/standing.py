"""What stands last of ours in a target queue, and whether it still stands there (delivery rule 7).

A floor keeps of the newest message that was delivered its offset and its id, which names a place in its broker's log:
a topic that was deleted, created anew and filled by others past the floor has something else at that offset. The end
of the queue alone does not tell. A message that has expired tells nothing; nor does one that cannot be seen yet. A
queue that begins behind it need not mean that it has expired: a broker lets a queue begin with the first message that
it indexes there, which in a topic made anew may be any. But the log of a broker keeps what was in a deleted topic, and
no queue begins behind a message that the log still has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from connect_core.errors import TargetChanged
from connect_core.rocketmq import (
    Acknowledged,
    Client,
    NotSupported,
    PermissionRefused,
    PullResult,
    Queue,
    StoredMessage,
)
from connect_core.sdk.records import COORDINATES_PROPERTY
from connect_core.sdk.values import Floor, Json, OpenRange
from connect_core.systems.rocketmq.connecting import queue_of

_AT, _ID, _READ_TO = "at", "id", "read_to"
_COORDINATES = COORDINATES_PROPERTY.encode() + b"\x01"


def evidence_of(stored: Acknowledged) -> Json:
    """Of the last message of a batch."""
    at: Json = {_AT: stored.next_offset - 1}
    return at | {_ID: stored.last_id} if stored.last_id else at


def anchors(item: OpenRange, queue: Queue) -> list[Floor]:
    """What of a range's partition stood in a queue before anything was written: what was settled last, and the first
    message that was found of the range."""
    known = [floor for floor in item.floors if floor.target == str(queue) and _AT in floor.evidence]
    if item.found is not None and str(queue) in item.found.targets:
        hits = item.found.hits
        there = hits[hits[:, 2] == item.found.targets.index(str(queue)), 3]
        known += [Floor(item.range.partition.id, str(queue), 0, evidence={_AT: int(there.min())})] if len(there) else []
    return known


def newest_place(known: Iterable[Floor]) -> int:
    """The highest offset of which one of these says what stands there; -1 when none does."""
    return max((int(floor.evidence[_AT]) for floor in known if _AT in floor.evidence), default=-1)


def moved(floor: Floor, position: int) -> Floor:
    """A floor that a plan moves up past messages that nobody has read; it keeps up to where somebody has."""
    if position <= floor.position:
        return floor
    return floor._replace(position=position, evidence={_READ_TO: floor.position} | floor.evidence)


def passed_over(floor: Floor) -> tuple[int, int]:
    """What plans have moved a floor past since something of its partition was settled there."""
    return int(floor.evidence.get(_READ_TO, floor.position)), floor.position


def evidence_found(item: OpenRange) -> Mapping[str, Json]:
    """For each queue the newest message of the range that was found there."""
    if item.found is None:
        return {}
    places, positions = item.found.hits[:, 2], item.found.hits[:, 3]
    return {
        target: {_AT: int(positions[places == place].max())}
        for place, target in enumerate(item.found.targets)
        if (places == place).any()
    }


def replaced(client: Client, floors: Iterable[Floor]) -> Iterator[Floor]:
    """Those whose message has another one in its place. Of each queue the newest and the oldest are asked for, which
    may be of partitions that are idle; all others only where one of the two is gone, since each may be of another
    time."""
    by_queue: dict[str, list[Floor]] = {}
    for floor in floors:
        if _AT in floor.evidence:
            by_queue.setdefault(floor.target, []).append(floor)
    for name, known in by_queue.items():
        queue = queue_of(name)
        newest, *others = sorted(known, key=lambda floor: -int(floor.evidence[_AT]))
        if not stands(client, queue, newest) or gone(client, queue, others):
            yield from (floor for floor in (newest, *others) if not stands(client, queue, floor))


def oldest_gone(client: Client, floors: Iterable[Floor]) -> Iterator[Floor]:
    """For each queue the oldest message that any of the floors keeps, where another one is in its place."""
    by_queue: dict[Queue, list[Floor]] = {}
    for floor in floors:
        by_queue.setdefault(queue_of(floor.target), []).append(floor)
    for queue, known in by_queue.items():
        if lost := gone(client, queue, known):
            yield lost


def gone(client: Client, queue: Queue, known: Iterable[Floor]) -> Floor | None:
    """The oldest of these that still tells anything decides for all behind it: it is returned when something else
    stands in its place."""
    return end_and_gone(client, queue, known)[1]


def end_and_gone(client: Client, queue: Queue, known: Iterable[Floor]) -> tuple[int, Floor | None]:
    """The same, and the end of the queue as the same answer has it; 0 where none of these says what stands anywhere."""
    kept = sorted((floor for floor in known if _AT in floor.evidence), key=lambda floor: int(floor.evidence[_AT]))
    begin = end = 0
    for floor in kept:
        if floor.evidence[_AT] >= begin:
            seen = client.pull(queue, floor.evidence[_AT], max_messages=1)
            begin, end = seen.begin, seen.end
            there = _is_in(seen, floor)
            if there is False:
                return end, floor
            if there or end <= seen.offset:  # and nothing behind it can be seen yet, either
                break
    behind = [floor for floor in kept if floor.evidence[_AT] < begin]
    return end, next((floor for floor in behind[-1:] if _is_in_log(client, queue, floor)), None)


def stands(client: Client, queue: Queue, floor: Floor) -> bool:
    """Whether what a floor keeps is still there, or nobody can tell."""
    return _is_there(client, queue, floor) is not False


def _is_there(client: Client, queue: Queue, floor: Floor) -> bool | None:
    """None when nobody can tell: it has expired, or cannot be seen yet."""
    if (at := floor.evidence.get(_AT)) is None:
        return None
    seen = client.pull(queue, at, max_messages=1)
    if at < seen.begin and _is_in_log(client, queue, floor):
        return False
    return _is_in(seen, floor)


def _is_in_log(client: Client, queue: Queue, floor: Floor) -> bool:
    """Whether the broker still has what this floor keeps, wherever it stands. False where nobody can tell, too."""
    if _ID not in floor.evidence:
        return False
    with suppress(NotSupported, PermissionRefused):
        return client.with_id(queue.broker, floor.evidence[_ID]) is not None
    return False


def _is_in(seen: PullResult, floor: Floor) -> bool | None:
    """Of the answer to who asks for its place."""
    if not seen.messages or seen.messages[0].queue_offset != seen.offset:
        return None
    return _is_that(seen.messages[0], floor)


def _is_that(message: StoredMessage, floor: Floor) -> bool:
    if wanted := floor.evidence.get(_ID):
        return bool(message.offset_message_id == wanted)
    _, found, rest = message.properties.rpartition(_COORDINATES)
    return bool(found) and floor.partition_id.encode() in rest.partition(b"\x02")[0].split(b":")


def target_replaced(floor: Floor) -> TargetChanged:
    return TargetChanged(
        f"The message that was delivered at {floor.evidence[_AT]} is no longer in the queue, and it has not expired: "
        "the topic was deleted and created again, and others have filled it since",
        where=floor.target,
        next_step="Restore the topic, or let the sink continue in the topic that is there now (on_replaced: continue); "
        "what went with the former topic is delivered again only when the offsets are moved back (waybill offsets "
        "set). A range that is open has to be given up for that (waybill offsets set --abandon)",
    )
