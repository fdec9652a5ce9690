"""Topic administration: create, change, look up, delete, list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connect_core.rocketmq.queues import Queue


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic on one broker. `attributes` are pairs such as ("queue.type", "BatchCQ")."""

    topic: str
    read_queues: int
    write_queues: int
    perm: int = 6
    order: bool = False
    attributes: tuple[tuple[str, str], ...] = ()


class Topics:
    def names(self) -> list[str]:
        """Topics that people made, sorted: system, retry, dead-letter and other inner topics are left out."""
        raise NotImplementedError

    def exists(self, topic: str) -> bool:
        raise NotImplementedError

    def create(self, topic: str, queues: int, *, brokers: Sequence[str] | None = None) -> list[Queue]:
        """Creates it on the named brokers (default: every master of the cluster), `queues` on each, waits until the
        route shows it, and returns its write queues. Repeating it is harmless; a lower count never shrinks a topic.
        """
        raise NotImplementedError

    def put(self, config: TopicConfig, broker: str) -> None:
        """Creates or changes it on one broker exactly as given (which may shrink it)."""
        raise NotImplementedError

    def config(self, topic: str) -> dict[str, TopicConfig]:
        """Broker name to configuration. Raises `TopicMissing`."""
        raise NotImplementedError

    def delete(self, topic: str) -> None:
        """From every broker that has it, then from every name server. Harmless when it is not there."""
        raise NotImplementedError

    def read_queues(self, topic: str) -> list[Queue]:
        """Queues that can be read, sorted. Raises `TopicMissing`."""
        raise NotImplementedError

    def write_queues(self, topic: str) -> list[Queue]:
        """Queues that may be written (the permission is applied here: brokers do not), sorted."""
        raise NotImplementedError
