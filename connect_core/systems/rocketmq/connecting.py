"""Clients of a cluster for the source and the sink: one for each block, or one kept in the caller's resources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from connect_core.rocketmq import Client, ClientOptions, Queue

SEND_TIMEOUT_S = ClientOptions.send_timeout_s


class Connecting:
    """With `resources` the first block connects, and the client stays open until the caller closes them."""

    def __init__(
        self, name_servers: Sequence[str], resources: ExitStack | None, send_timeout_s: float = SEND_TIMEOUT_S
    ) -> None:
        self.options = ClientOptions(name_servers=tuple(name_servers), send_timeout_s=send_timeout_s)
        self._resources = resources
        self._kept: Client | None = None

    @contextmanager
    def client(self) -> Iterator[Client]:
        if self._resources is None:
            with Client(self.options) as client:
                yield client
            return
        if self._kept is None:
            self._kept = self._resources.enter_context(Client(self.options))
        yield self._kept


def queue_of(key: str) -> Queue:
    """The queue that `topic/broker/queueId` names: a source partition's key, a sink's target."""
    topic, _, rest = key.partition("/")
    broker, _, number = rest.rpartition("/")
    return Queue(topic, broker, int(number))
