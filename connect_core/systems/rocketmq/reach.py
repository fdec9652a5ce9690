"""Which brokers do not answer: their queues are put aside, and nobody waits for the same broker twice
(delivery rule 26)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.errors import PartitionUnreachable, Unreachable


class Reach:
    """What one source knows of its brokers: of a run on the driver, of a lane in a worker. A broker that is back is
    asked again by the next one."""

    def __init__(self) -> None:
        self._away: dict[str, Unreachable] = {}

    def lost(self, broker: str, error: Unreachable) -> None:
        """The first reason counts."""
        self._away.setdefault(broker, error)

    def away(self) -> frozenset[str]:
        return frozenset(self._away)

    def why(self, broker: str) -> Unreachable | None:
        return self._away.get(broker)

    @contextmanager
    def asking(self, broker: str) -> Iterator[None]:
        """Raises, for one queue of it, why a broker cannot be asked: at once when that is known. Unreachable becomes
        PartitionUnreachable, for queues of other brokers may be there."""
        if (known := self.why(broker)) is not None:
            raise PartitionUnreachable.of(known)
        try:
            yield
        except PartitionUnreachable:
            raise
        except Unreachable as error:
            self.lost(broker, error)
            raise PartitionUnreachable.of(error) from error
