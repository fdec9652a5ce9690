"""The bare loops that Waybill is measured against: one process, one thread, our RocketMQ client, nothing else.

No ledger, no receipt, no digest, no engine. They move the same bytes: each message carries a property string as long as
Waybill's (its id and coordinates), made once. They are the best that we can write: by column, with no object a message,
one send outstanding a queue, the next pull under way, large reads and writes, one fsync at the end. Run as a process of
its own (`python -m tests.bench.bare in|out|across|changed|read …`); prints the seconds that its loop took, without its
start.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.rocketmq import BatchSender, Client, ClientOptions, QueueReader
from connect_core.rocketmq.wire.batch_entries import MAX_ENTRIES
from connect_core.systems.rocketmq.columns import columns_of
from connect_core.systems.rocketmq.encoding import batch_of, encode_entries
from connect_core.systems.rocketmq.marking import joined

Change: TypeAlias = Callable[[Sequence[bytes]], list[bytes]]
"""What becomes of the bodies of one pull."""
_READ_BYTES = 1024 * 1024
_LIMIT_S = 600.0
PROPERTIES = b"UNIQ_KEY\x01%032X\x02WAYBILL\x01%012x:live:%016x:0:123456789:0\x02" % (1, 2, 3)


def files_to_topic(client: Client, files: list[Path], topic: str) -> int:
    """Each file to a queue of its own, the files taking turns; returns how many lines were acknowledged."""
    deadline = time.monotonic() + _LIMIT_S
    queues = client.topics.create(topic, queues=len(files))
    senders = [client.sender(queue) for queue in queues]
    count = 0
    with ExitStack() as opened:
        reading = [(_lines(opened, path), sender) for path, sender in zip(files, senders, strict=True)]
        while reading:
            still = []
            for lines, sender in reading:
                bodies = next(lines, None)
                if bodies is None:
                    continue
                still.append((lines, sender))
                _send(sender, bodies, deadline)
                count += len(bodies)
            reading = still
    for sender in senders:
        sender.finish(deadline=deadline)
    return count


def topic_to_file(client: Client, topic: str, target: Path) -> int:
    """Queue after queue to one file, a line each; returns how many lines are on the disk."""
    deadline = time.monotonic() + _LIMIT_S
    count = 0
    with target.open("wb", buffering=0) as file:
        for queue, bounds in sorted(client.offsets.bounds(topic).items()):
            for bodies in _bodies(client.read(queue, bounds.begin, bounds.end, deadline=deadline)):
                file.write(joined(bodies, b"\n").buffers()[2])
                count += len(bodies)
        os.fsync(file.fileno())
    return count


def topic_to_topic(client: Client, source: str, target: str, change: Change | None = None) -> int:
    """Each queue to that of its number in a topic made for it, the queues taking turns; bodies as they are stored,
    unless they are changed on the way."""
    deadline = time.monotonic() + _LIMIT_S
    bounds = sorted(client.offsets.bounds(source).items())
    queues = client.topics.create(target, queues=len(bounds))
    senders = [client.sender(queue) for queue in queues]
    readers = [_bodies(client.read(queue, seen.begin, seen.end, deadline=deadline)) for queue, seen in bounds]
    count, going = 0, list(zip(readers, senders, strict=True))
    while going:
        still = []
        for reader, sender in going:
            bodies = next(reader, None)
            if bodies is None:
                continue
            still.append((reader, sender))
            if change is not None:
                bodies = pa.array(change(bodies.to_pylist()), pa.binary())
            _send(sender, bodies, deadline)
            count += len(bodies)
        going = still
    for sender in senders:
        sender.finish(deadline=deadline)
    return count


def through_objects(bodies: Sequence[bytes]) -> list[bytes]:
    """Each JSON read, one member of it changed, and those that pass written. It checks no type."""
    passed = []
    for body in bodies:
        fields = orjson.loads(body)
        fields["id"] = str(fields["id"])
        if fields["count"] < 40:
            passed.append(orjson.dumps(fields))
    return passed


def topic_read(client: Client, topic: str) -> int:
    """Queue after queue into columns that are thrown away; returns how many messages there were."""
    deadline = time.monotonic() + _LIMIT_S
    return sum(
        len(bodies)
        for queue, bounds in sorted(client.offsets.bounds(topic).items())
        for bodies in _bodies(client.read(queue, bounds.begin, bounds.end, deadline=deadline))
    )


def _bodies(reader: QueueReader) -> Iterator[pa.Array]:
    """Those of each pull."""
    for part in reader.stored():
        yield columns_of(bytes(part.data)).before(part.end).bodies


def _send(sender: BatchSender, bodies: pa.Array, deadline: float) -> None:
    entries = encode_entries(bodies, pa.repeat(pa.scalar(PROPERTIES, pa.binary()), len(bodies)))
    for begin in range(0, len(entries), MAX_ENTRIES):
        sender.submit(batch_of(entries.slice(begin, MAX_ENTRIES)), deadline=deadline)


def _lines(opened: ExitStack, path: Path) -> Iterator[pa.Array]:
    file = opened.enter_context(path.open("rb", buffering=0))
    rest = b""
    while chunk := file.read(_READ_BYTES):
        whole = rest + chunk
        ends = np.flatnonzero(np.frombuffer(whole, np.uint8) == ord("\n"))
        rest = whole[ends[-1] + 1 :]
        yield _cut(whole, ends.astype(np.int32))


def _cut(data: bytes, ends: NDArray[np.int32]) -> pa.Array:
    """Lines that end there: every second value of an array that is all of `data`, cut before and behind each end."""
    places = np.zeros(2 * len(ends) + 1, np.int32)
    places[1::2], places[2::2] = ends, ends + 1
    whole = pa.Array.from_buffers(pa.binary(), 2 * len(ends), [None, pa.py_buffer(places), pa.py_buffer(data)])
    return whole.take(pa.array(np.arange(0, 2 * len(ends), 2)))


def main(direction: str, name_servers: str, topic: str, *paths: str) -> None:
    with Client(ClientOptions(name_servers=(name_servers,))) as client:
        begun = time.monotonic()
        if direction == "in":
            count = files_to_topic(client, [Path(path) for path in paths], topic)
        elif direction == "across":
            count = topic_to_topic(client, topic, paths[0])
        elif direction == "changed":
            count = topic_to_topic(client, topic, paths[0], through_objects)
        elif direction == "read":
            count = topic_read(client, topic)
        else:
            count = topic_to_file(client, topic, Path(paths[0]))
        print(count, time.monotonic() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
