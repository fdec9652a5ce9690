"""Freshness in a window: from stored at the source to visible at the target, under a steady trickle and after silence.

The moment at the source is taken right after the line was written, or the broker has acknowledged the message; the one
at the target when a reader of this process sees it there: by looking at the file every half millisecond, or by a pull
that the broker keeps until something comes. Each record carries a number, which tells when it was stored.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from tests.bench.measures import Row
from tests.bench.place import Place

TRICKLE_S = 30.0
SILENCES = 8
_LINE_BYTES = 200
_LOOK_S = 0.0005
_numbers = count(1)


@dataclass
class Trickle:
    """What was stored and seen when, by number of the record (monotonic seconds)."""

    stored: list[float] = field(default_factory=list)
    seen: dict[int, float] = field(default_factory=dict)

    def body(self) -> bytes:
        return f"{len(self.stored):012d} ".ljust(_LINE_BYTES, "x").encode()

    def delays_s(self) -> list[float]:
        return sorted(self.seen[number] - at for number, at in enumerate(self.stored) if number in self.seen)


Store = Callable[[bytes], None]
See = Callable[[], Iterator[bytes]]


def freshness(place: Place) -> list[Row]:
    rows = []
    for what, ends in (("file -> RocketMQ", _into_topic), ("RocketMQ -> file", _into_file)):
        rows += [_under_a_trickle(place, what, ends, rate) for rate in (10, 1_000)]
        rows.append(_after_silence(place, what, ends))
    return rows


def _into_topic(place: Place, client: Client) -> tuple[str, Store, See]:
    name = f"fresh-in-{next(_numbers)}"
    log = place.folder / f"{name}.log"
    log.touch()
    client.topics.create(name, 1)
    sink = {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}
    place.apply(name, {"file": {"path": str(log)}}, sink)
    file = log.open("ab", buffering=0)
    (queue,) = client.topics.read_queues(name)

    def see() -> Iterator[bytes]:
        for part in client.follow(queue, 0, deadline=math.inf, linger_s=0.2):
            yield b""
            yield from (bytes(message.body) for message in part.messages)

    return name, lambda body: _written(file.write, body + b"\n"), see


def _into_file(place: Place, client: Client) -> tuple[str, Store, See]:
    name = f"fresh-out-{next(_numbers)}"
    target = place.folder / f"{name}.log"
    client.topics.create(name, 1)
    place.apply(name, {"rocketmq": {"connection": "main", "topics": name}}, {"file": {"path": str(target)}})
    sender = client.sender(client.topics.write_queues(name)[0])

    def store(body: bytes) -> None:
        sender.submit(encode_batch([body], [b""]), deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)

    return name, store, lambda: _lines_of(target)


def _written(write: Callable[[bytes], int | None], line: bytes) -> None:
    write(line)


def _lines_of(path: Path) -> Iterator[bytes]:
    while not path.exists():
        yield b""
        time.sleep(_LOOK_S)
    fd, offset, rest = os.open(path, os.O_RDONLY), 0, b""
    while True:
        data = os.pread(fd, 1 << 20, offset)
        offset += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
        yield b""
        if not data:
            time.sleep(_LOOK_S)


def _watched(see: See, trickle: Trickle, over: threading.Event) -> threading.Thread:
    def watch() -> None:
        for body in see():
            if body:
                trickle.seen[int(body[:12])] = time.monotonic()
            elif over.is_set() and len(trickle.seen) >= len(trickle.stored):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def _measured(
    place: Place, ends: Callable[..., tuple[str, Store, See]], feed: Callable[[Trickle, Store], None]
) -> Trickle:
    """A window that is open while `feed` feeds; it begins with one record, which is not counted."""
    with Client(ClientOptions(name_servers=tuple(place.name_servers.split(";")))) as client:
        name, store, see = ends(place, client)
        trickle, over = Trickle(), threading.Event()
        watcher = _watched(see, trickle, over)
        with place.staying(name):
            _stored(trickle, store)
            while not trickle.seen:
                time.sleep(0.01)
            time.sleep(2)
            trickle.stored, trickle.seen = [], {}
            feed(trickle, store)
            over.set()
            watcher.join(30)
    return trickle


def _stored(trickle: Trickle, store: Store) -> None:
    body = trickle.body()
    store(body)
    trickle.stored.append(time.monotonic())


def _under_a_trickle(place: Place, what: str, ends: Callable[..., tuple[str, Store, See]], rate: int) -> Row:
    def feed(trickle: Trickle, store: Store) -> None:
        begun = time.monotonic()
        for number in range(int(rate * TRICKLE_S)):
            time.sleep(max(begun + number / rate - time.monotonic(), 0))
            _stored(trickle, store)

    trickle = _measured(place, ends, feed)
    delays = trickle.delays_s()
    remark = f"p99 {_ms(_at(delays, 0.99))}, max {_ms(delays[-1])}; {len(trickle.stored) - len(delays)} not seen"
    return _row(f"{what}, window, {rate:,} records/s: stored to visible", f"p50 {_ms(_at(delays, 0.5))}", remark)


def _after_silence(place: Place, what: str, ends: Callable[..., tuple[str, Store, See]]) -> Row:
    def feed(trickle: Trickle, store: Store) -> None:
        for _ in range(SILENCES):
            time.sleep(3)
            _stored(trickle, store)

    delays = _measured(place, ends, feed).delays_s()
    return _row(
        f"{what}, window: first record after 3 s of silence", f"p50 {_ms(_at(delays, 0.5))}", f"max {_ms(delays[-1])}"
    )


def _row(what: str, waybill: str, remark: str) -> Row:
    print(f"{what}: {waybill}, {remark}", file=sys.stderr, flush=True)
    return Row(what, waybill, "", remark)


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
