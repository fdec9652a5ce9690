"""A topic that is read whole, as programs keep their state in one: the newest record of each key counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class TopicRecord(NamedTuple):
    """`value` is None where the record cannot be read. Moments in milliseconds of UTC, by the broker's clock."""

    queue: str
    offset: int
    stored_ms: int
    key: str
    value: bytes | None

    @property
    def where(self) -> str:
        return f"{self.queue} at {self.offset}"


class WholeTopic(NamedTuple):
    """`lacking` says in words what of it is not there any more."""

    records: Sequence[TopicRecord]
    lacking: Sequence[str]
