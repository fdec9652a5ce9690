"""How many messages a topic holds, asked with a plain client: a second opinion beside the receipts."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from connect_core import stack
from connect_core.errors import Unreachable
from connect_core.rocketmq import Client, ClientOptions, TopicMissing


class Topic:
    """A topic of the local stack of `home`, which must run when it is first asked."""

    def __init__(self, home: Path, name: str) -> None:
        self._home, self._name = home, name

    def messages(self) -> int:
        try:
            bounds = self._client.offsets.bounds(self._name)
        except TopicMissing:
            return 0
        return sum(queue.end - queue.begin for queue in bounds.values())

    @cached_property
    def _client(self) -> Client:
        running = stack.load(self._home)
        if running is None:
            raise Unreachable("The local stack is not running", where=str(self._home), next_step="Run `waybill dev up`")
        return Client(ClientOptions(name_servers=(running.name_servers,)))

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *exception: object) -> None:
        if "_client" in self.__dict__:
            self._client.close()
