"""Other writers of a topic: what they write begins with `FOREIGN`, so that it can be told from ours."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from connect_core.errors import WaybillError
from connect_core.rocketmq import Client, ClientOptions, Queue, encode_batch
from tests.servers import RocketMQ

FOREIGN = b"foreign "
"""What begins every record that is not ours."""


def client_of(cluster: RocketMQ, **options: Any) -> Client:
    return Client(ClientOptions(name_servers=tuple(cluster.name_servers), **options))


@contextmanager
def beside(work: Callable[[], None], pause_s: float) -> Iterator[None]:
    """Does this again and again in another thread while the block lasts."""
    over = threading.Event()

    def again() -> None:
        while not over.wait(pause_s):
            work()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def foreign_writer(cluster: RocketMQ, topic: str, a_second: int) -> Iterator[None]:
    """Writes to each queue in turn, a hundredth of a second's messages at once."""
    count = max(a_second // 100, 1)
    calls = iter(range(1_000_000))

    def write() -> None:
        number = next(calls)
        bodies = [FOREIGN + b"%d.%d" % (number, n) for n in range(count)]
        sender = senders[number % len(senders)]
        sender.submit(encode_batch(bodies, [b""] * count), deadline=time.monotonic() + 10)
        sender.finish(deadline=time.monotonic() + 10)

    with client_of(cluster) as client:
        senders = [client.sender(queue) for queue in client.topics.create(topic, 4)]
        with beside(write, 0.01):
            yield


@contextmanager
def flood(cluster: RocketMQ, topic: str, writers: int) -> Iterator[Counter[str]]:
    """So many clients write small batches to the topic as fast as they can. Counts what became of them: `stored`, or
    the name of the error."""
    outcomes: Counter[str] = Counter()
    batch = encode_batch([FOREIGN], [b""])

    def writing(client: Client, queue: Queue) -> Callable[[], None]:
        def write() -> None:
            sender = client.sender(queue)
            try:
                sender.submit(batch, deadline=time.monotonic() + 10)
                sender.finish(deadline=time.monotonic() + 0.1)
                outcomes["stored"] += 1
            except WaybillError as error:
                outcomes[type(error).__name__] += 1

        return write

    with ExitStack() as open_clients:
        for number in range(writers):
            client = open_clients.enter_context(client_of(cluster, send_timeout_s=0.5))
            queue = client.topics.create(topic, writers)[number]
            open_clients.enter_context(beside(writing(client, queue), 0))
        yield outcomes


def without_foreign(records: Mapping[str, Sequence[bytes]]) -> dict[str, list[bytes]]:
    return {queue: [one for one in mine if not one.startswith(FOREIGN)] for queue, mine in records.items()}
