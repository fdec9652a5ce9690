"""From topic to topic, beside the bare loop: by size of the messages, by number of queues, with the few messages a pull
that brokers give as they are delivered, and in each way of keeping order."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import orjson

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from tests.bench.measures import compared
from tests.bench.place import Place, Timed
from tests.bench.telling import Row
from tests.bench.transforms import CHANGED, made_up

MESSAGES = 400_000
MOST_BYTES = 400_000_000
"""Of one topic: larger messages are fewer."""
SIZES = (100, 1_000, 10_000)
QUEUES = (1, 2, 8)
KEYS = 10_000
_BATCH_BYTES = 512 * 1024
_DELIVERED = {
    "maxTransferCountOnMessageInMemory": "32",
    "maxTransferBytesOnMessageInMemory": "262144",
    "maxTransferCountOnMessageInDisk": "8",
    "maxTransferBytesOnMessageInDisk": "65536",
}
"""A broker's own limits of one pull; the local stack raises them."""
_numbers = count(1)


def copies(place: Place, messages: int, repeats: int) -> list[Row]:
    """Sizes at two queues, then queues at the size in the middle, then what else differs."""
    rows = [_copied(place, messages, size, 2, repeats) for size in SIZES]
    rows += [_copied(place, messages, SIZES[1], queues, repeats) for queues in QUEUES if queues != 2]
    with _limits_as_delivered(place):
        rows.append(_copied(place, messages, SIZES[1], 2, repeats, "a broker's own limits"))
    return [*rows, _copied(place, messages, SIZES[1], 8, repeats, "order: key", order="key")]


def _copied(place: Place, messages: int, size: int, queues: int, repeats: int, remark: str = "", **sink: Any) -> Row:
    amount = min(messages, MOST_BYTES // size)
    topic = f"full-{next(_numbers)}"
    fill(place, topic, amount, size, queues)
    what = f"RocketMQ -> RocketMQ, {queues} queue{'s' * (queues > 1)}{', ' * bool(remark)}{remark}"
    what = f"{what}, {amount:,} messages of {size:,} bytes"
    return _beside(place, "across", topic, what, amount, repeats, {"queues": queues, **sink})


def changed(place: Place, messages: int, repeats: int) -> Row:
    """JSON with typed fields: one of them cast, some records filtered."""
    topic = f"typed-{next(_numbers)}"
    chance = random.Random(1)
    one = len(orjson.dumps(made_up(0, chance)))
    fill(place, topic, messages, one, 2, lambda number: orjson.dumps(made_up(number, chance)))
    what = f"RocketMQ -> one cast, one filter -> RocketMQ, 2 queues, {messages:,} JSON objects of {one} bytes"
    return _beside(place, "changed", topic, what, messages, repeats, {"queues": 2}, **CHANGED)


def _beside(
    place: Place, way: str, topic: str, what: str, messages: int, repeats: int, sink: dict[str, Any], **document: Any
) -> Row:
    """From that topic, which is gone afterwards, beside the bare loop of this way."""

    def ours() -> Timed:
        name = f"{way}-{next(_numbers)}"
        source = {"rocketmq": {"connection": "main", "topics": topic}}
        place.apply(name, source, {"rocketmq": {"connection": "main", "topic": name, **sink}}, **document)
        timed = place.run(name)
        forget(place, name)
        return timed

    def bare() -> float:
        name = f"bare-{next(_numbers)}"
        seconds = place.bare(way, topic, name)
        forget(place, name)
        return seconds

    row = compared(what, messages, ours, bare, repeats)
    forget(place, topic)
    return row


def _client(place: Place) -> Client:
    return Client(ClientOptions(name_servers=tuple(place.name_servers.split(";"))))


def fill(
    place: Place, topic: str, messages: int, size: int, queues: int, body: Callable[[int], bytes] | None = None
) -> None:
    """Every message has a key: one of ten thousand. `body` makes them, of about that size."""
    body = body or (lambda number: b"%012d ".ljust(size, b"x") % number)
    deadline = time.monotonic() + 600
    with _client(place) as client:
        senders = [client.sender(queue) for queue in client.topics.create(topic, queues)]
        each = min(_BATCH_BYTES // size, 1_000)
        for number, begin in enumerate(range(0, messages, each)):
            some = range(begin, min(begin + each, messages))
            bodies = [body(one) for one in some]
            properties = [b"KEYS\x01%d\x02" % (one % KEYS) for one in some]
            senders[number % queues].submit(encode_batch(bodies, properties), deadline=deadline)
        for sender in senders:
            sender.finish(deadline=deadline)


def forget(place: Place, topic: str) -> None:
    """So that the broker's disk and memory hold what is measured, and nothing else."""
    with _client(place) as client:
        client.topics.delete(topic)


@contextmanager
def _limits_as_delivered(place: Place) -> Iterator[None]:
    with _client(place) as client:
        (broker,) = client.brokers.masters()
        raised = client.brokers.settings(broker)
        client.brokers.change_settings(broker, _DELIVERED)
        try:
            yield
        finally:
            client.brokers.change_settings(broker, {name: raised[name] for name in _DELIVERED})
