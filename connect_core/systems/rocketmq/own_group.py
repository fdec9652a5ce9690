"""The consumer group of a source's own. It is told what is settled, so that RocketMQ's lag tools show it; reading never
asks it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from connect_core.errors import Retriable, Unreachable
from connect_core.rocketmq import Client, Queue, TopicMissing


class OwnGroup:
    """`name` is empty where none is told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._told: dict[Queue, int] = {}
        self._created: set[str] = set()
        """Brokers that know it."""

    def commit(self, client: Client, offsets: Mapping[Queue, int]) -> None:
        """Tells all brokers that answer, and never less than before. Raises Unreachable for the others, and Retriable
        where a broker drops what it is told."""
        silent: dict[str, Unreachable] = {}
        dropped: list[Queue] = []
        for queue, offset in offsets.items():
            if queue.broker in silent:
                continue
            try:
                with suppress(TopicMissing):  # it was deleted: there is nobody to tell
                    if not self._tell(client, queue, offset):
                        dropped.append(queue)
            except Unreachable as error:
                silent[queue.broker] = error
        for reason in silent.values():
            raise reason
        if dropped:
            raise Retriable(
                "An operator has reset our group, and its broker drops its offsets until a client reads with it",
                where=f"{self.name} on {', '.join(map(str, dropped))}",
                next_step="Only lag tools are affected. Allow the source's user to read the topic with this group",
            )

    def _tell(self, client: Client, queue: Queue, offset: int) -> bool:
        """False when the broker has dropped it."""
        if queue.broker not in self._created:
            client.groups.create(self.name, [queue.broker])
            self._created.add(queue.broker)
        told = self._told.get(queue)
        if told is None:
            told = client.groups.committed(self.name, queue) or 0
        if offset > told and not client.groups.commit(self.name, queue, offset):
            return False
        self._told[queue] = max(told, offset)
        return True
