"""Change events of a stream, and batches of them. Pure."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from connect_core.sdk.batches import RECORD_SCHEMA, batch_of_columns
from connect_core.sdk.records import OPERATION_NONE
from connect_core.sdk.values import Reject, SourceBatch


class UnfitForEvent(ValueError):
    """A value that an event cannot have, and why."""


class Event(NamedTuple):
    """`unfit` is why the event cannot have one of its values; that one is then in it as the database writes it."""

    topic: str
    key: str | None
    value: bytes
    at_ms: int
    unfit: str = ""


def batch_of(
    numbers: list[int],
    events: list[Event],
    behind: int,
    left_out: tuple[int, ...] = (),
    holes: tuple[tuple[int, int], ...] = (),
) -> SourceBatch:
    fit = [place for place, one in enumerate(events) if not one.unfit]
    rejects = tuple(
        Reject(number, 0, "read", "Unfit", one.unfit, one.value, one.topic)
        for number, one in zip(numbers, events, strict=True)
        if one.unfit
    )
    if rejects:
        numbers, events = [numbers[place] for place in fit], [events[place] for place in fit]
    given = {
        "topic": pa.array([one.topic for one in events], pa.string()),
        "key": pa.array([one.key for one in events], pa.string()),
        "value": pa.array([one.value for one in events], pa.binary()),
        "offset": pa.array(numbers, pa.int64()),
        "timestamp": pa.array([one.at_ms for one in events], RECORD_SCHEMA.field("timestamp").type),
        "operation": pa.array([OPERATION_NONE] * len(events), pa.int8()),
    }
    return SourceBatch(batch_of_columns(given, len(events)), behind, holes, rejects=rejects, filtered=left_out)
