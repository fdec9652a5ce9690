"""Which brokers do not answer: their queues are put aside, and nobody waits for the same broker twice
(delivery rule 26)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.errors import PartitionUnreachable, Retriable, Unreachable


class Reach:
    """What one source knows of its brokers: of a run on the driver, of a lane in a worker. A broker that is back is
    asked again by the next one."""

    def __init__(self) -> None:
        self._away: dict[str, Retriable] = {}

    def lost(self, broker: str, error: Retriable) -> None:
        """The first reason counts."""
        self._away.setdefault(broker, error)

    def away(self) -> frozenset[str]:
        return frozenset(self._away)

    def why(self, broker: str) -> Retriable | None:
        return self._away.get(broker)

    @contextmanager
    def asking(self, broker: str) -> Iterator[None]:
        """Raises, for one queue of it, why a broker cannot be asked: at once when that is known. Unreachable becomes
        PartitionUnreachable, for queues of other brokers may be there."""
        if (known := self.why(broker)) is not None:
            raise of_one_queue(known)
        try:
            yield
        except PartitionUnreachable:
            raise
        except Unreachable as error:
            self.lost(broker, error)
            raise of_one_queue(error) from error


def of_one_queue(error: Retriable) -> Retriable:
    if isinstance(error, Unreachable):
        return PartitionUnreachable.of(error)
    return Retriable(error.what, where=error.where, next_step=error.next_step)
