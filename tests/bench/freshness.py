"""Freshness: from stored at the source to visible at the target, under a steady trickle and after silence; in a window
that is open all the while, and by each kind of schedule through Airflow.

The moment at the source is taken right after the line was written, or the broker has acknowledged the message; the one
at the target when a reader of this process sees it there: by looking at the file every half millisecond, or by a pull
that the broker keeps until something comes. Each record carries a number, which tells when it was stored.
"""

from __future__ import annotations

import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from tests.bench.place import Place, until
from tests.bench.telling import Row, at, ms, row, s

TRICKLE_S = 120.0
"""Of a window: long enough that one slow pause between two quanta is not the hundredth part of all records."""
SILENCE_S = 3.0
SILENCES = 8
SCHEDULES: tuple[dict[str, Any], ...] = (
    {"every": "10s"},
    {"every": "60s", "window": "55s"},
    {"continuous": True},
    {"continuous": True, "window": "55s"},
    {"on_change": True},
)
_FIRST_LIMIT_S = 600.0
_LAST_LIMIT_S = 120.0
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
Ends = Callable[..., tuple[str, Store, See]]


@dataclass(frozen=True)
class Way:
    """How the connector is run meanwhile: by a command in one long window, or by Airflow as its schedule says."""

    told: str
    schedule: dict[str, Any] | None = None

    @property
    def document(self) -> dict[str, Any]:
        return {"schedule": self.schedule} if self.schedule else {}

    def running(self, place: Place, name: str) -> AbstractContextManager[None]:
        return _scheduled(place, name) if self.schedule else place.staying(name)


@contextmanager
def _scheduled(place: Place, name: str) -> Iterator[None]:
    yield
    place.delete(name)


def freshness(place: Place) -> list[Row]:
    rows, way = [], Way("window")
    for what, ends in DIRECTIONS.items():
        rows += [under_a_trickle(place, what, ends, way, rate, TRICKLE_S) for rate in (10, 1_000)]
        rows.append(after_silence(place, what, ends, way))
    return [*rows, _in_twenties(place, way)]


def _in_twenties(place: Place, way: Way) -> Row:
    """A thousand times a second twenty messages at once, the last of which is looked for."""
    row = under_a_trickle(place, "RocketMQ -> RocketMQ, in twenties", partial(_into_copy, each=20), way, 1_000, 60.0)
    return replace(row, what=row.what.replace("in twenties, window, 1,000", "window, 20,000"))


def through_airflow(place: Place, seconds: float) -> list[Row]:
    """Each trickle lasts so long. A minute has one whole cycle of the longest schedule. Without a window a record waits
    for the next run of a period, whether there was silence before or not: only the others are measured after one."""
    rows, what = [], "RocketMQ -> file"
    for schedule in SCHEDULES:
        words = ", ".join(name if value is True else f"{name} {value}" for name, value in schedule.items())
        way = Way(f"Airflow, {words}", schedule)
        rows.append(under_a_trickle(place, what, _into_file, way, 10, seconds, shown=s))
        if "window" in schedule or "every" not in schedule:
            rows.append(after_silence(place, what, _into_file, way, shown=s))
    return rows


def _into_topic(place: Place, client: Client, **document: Any) -> tuple[str, Store, See]:
    name = f"fresh-in-{next(_numbers)}"
    log = place.folder / f"{name}.log"
    log.touch()
    client.topics.create(name, 1)
    sink = {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}
    place.apply(name, {"file": {"path": str(log)}}, sink, **document)
    file = log.open("ab", buffering=0)
    return name, lambda body: _written(file.write, body + b"\n"), partial(bodies_in, client, name)


def _into_file(place: Place, client: Client, **document: Any) -> tuple[str, Store, See]:
    name = f"fresh-out-{next(_numbers)}"
    target = place.folder / f"{name}.log"
    client.topics.create(name, 1)
    source = {"rocketmq": {"connection": "main", "topics": name}}
    place.apply(name, source, {"file": {"path": str(target)}}, **document)
    sender = client.sender(client.topics.write_queues(name)[0])

    def store(body: bytes) -> None:
        sender.submit(encode_batch([body], [b""]), deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)

    return name, store, lambda: lines_of(target)


def _into_copy(place: Place, client: Client, each: int = 1, **document: Any) -> tuple[str, Store, See]:
    """Each record is so many messages, in one batch."""
    name = f"fresh-copy-{next(_numbers)}"
    client.topics.create(f"{name}-from", 1)
    client.topics.create(name, 1)
    source = {"rocketmq": {"connection": "main", "topics": f"{name}-from"}}
    place.apply(name, source, {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}, **document)
    sender = client.sender(client.topics.write_queues(f"{name}-from")[0])

    def store(body: bytes) -> None:
        sender.submit(encode_batch([body] * each, [b""] * each), deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)

    return name, store, partial(bodies_in, client, name)


def bodies_in(client: Client, topic: str) -> Iterator[bytes]:
    (queue,) = client.topics.read_queues(topic)
    for part in client.follow(queue, 0, deadline=math.inf, idle_timeout_s=0.2):
        yield b""
        yield from (bytes(message.body) for message in part.messages)


DIRECTIONS: dict[str, Ends] = {
    "file -> RocketMQ": _into_topic,
    "RocketMQ -> file": _into_file,
    "RocketMQ -> RocketMQ": _into_copy,
}


def _written(write: Callable[[bytes], int | None], line: bytes) -> None:
    write(line)


def lines_of(path: Path) -> Iterator[bytes]:
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


def _measured(place: Place, ends: Ends, way: Way, feed: Callable[[Trickle, Store], None]) -> Trickle:
    """What became of the records that `feed` stores. One record goes before them that is not counted: it finds the
    topic, the engine and the run warm."""
    with Client(ClientOptions(name_servers=tuple(place.name_servers.split(";")))) as client:
        name, store, see = ends(place, client, **way.document)
        trickle, over = Trickle(), threading.Event()
        watcher = _watched(see, trickle, over)
        with way.running(place, name):
            _stored(trickle, store)
            until(lambda: trickle.seen, f"the first record through {name}", _FIRST_LIMIT_S)
            time.sleep(2)
            trickle.stored, trickle.seen = [], {}
            feed(trickle, store)
            over.set()
            watcher.join(_LAST_LIMIT_S)
    return trickle


def _stored(trickle: Trickle, store: Store) -> None:
    body = trickle.body()
    store(body)
    trickle.stored.append(time.monotonic())


def under_a_trickle(
    place: Place, what: str, ends: Ends, way: Way, rate: int, seconds: float, shown: Callable[[float], str] = ms
) -> Row:
    def feed(trickle: Trickle, store: Store) -> None:
        begun = time.monotonic()
        for number in range(int(rate * seconds)):
            time.sleep(max(begun + number / rate - time.monotonic(), 0))
            _stored(trickle, store)

    trickle = _measured(place, ends, way, feed)
    delays = trickle.delays_s()
    remark = f"p99 {shown(at(delays, 0.99))}, max {shown(max(delays))}; {len(trickle.stored) - len(delays)} not seen"
    return row(f"{what}, {way.told}, {rate:,} records/s: stored to visible", f"p50 {shown(at(delays, 0.5))}", remark)


def after_silence(place: Place, what: str, ends: Ends, way: Way, shown: Callable[[float], str] = ms) -> Row:
    """Silences are a little longer by chance, or they would keep step with what looks every second."""
    chance = random.Random(way.told)

    def feed(trickle: Trickle, store: Store) -> None:
        for _ in range(SILENCES):
            time.sleep(SILENCE_S + chance.random())
            _stored(trickle, store)

    delays = _measured(place, ends, way, feed).delays_s()
    told = f"{what}, {way.told}: first record after {SILENCE_S:.0f} s of silence"
    return row(told, f"p50 {shown(at(delays, 0.5))}", f"max {shown(max(delays))}")
