"""Which messages of a queue that is read anew may have been read before (delivery rule 10).

A queue whose broker has lost its newest messages is read from its begin, and so is a topic that was made anew: offsets
alone do not tell one from the other. Store times do. What survived was stored no later than the last message that was
read; what a new topic holds was stored after it, by the same broker's clock. The evidence of positions carries both
limits until the first one is reached.
"""

from __future__ import annotations

import pyarrow as pa

from connect_core.sdk.values import Json, Position
from connect_core.systems.rocketmq.columns import Columns

_READ_BEFORE = "read_before"
_BELOW, _STORED_MS = "below", "stored_ms"


def limits_of(position: Position) -> Json:
    """For a queue that was read up to `position` and is read anew now. Where it was being read anew already, what was
    read at first counts as well. No limit of time where nothing is known of what was read last."""
    known, pending = position.evidence, position.evidence.get(_READ_BEFORE, {})
    limits = {_BELOW: max(position.offset, pending.get(_BELOW, 0))}
    said = [one for one in (known, pending) if one]
    if said and all(_STORED_MS in one for one in said):
        limits[_STORED_MS] = max(one[_STORED_MS] for one in said)
    return {_READ_BEFORE: limits}


def limits_at(evidence: Json, place: int) -> Json:
    """What of the limits in `evidence` is still of use at `place`: for the evidence of a position there."""
    limits = evidence.get(_READ_BEFORE)
    return {_READ_BEFORE: limits} if limits and place < limits[_BELOW] else {}


def read_before(evidence: Json, messages: Columns, rows: pa.RecordBatch) -> tuple[int, ...]:
    """The offsets of those `rows` of `messages` that a range with this evidence may repeat."""
    limits = evidence.get(_READ_BEFORE)
    if not limits or not len(messages) or messages.offsets[0] >= limits[_BELOW]:
        return ()
    among = messages.offsets < limits[_BELOW]
    if _STORED_MS in limits:
        among &= messages.stored_ms <= limits[_STORED_MS]
    there = set(messages.offsets[among].tolist())
    return tuple(offset for offset in rows.column("offset").to_pylist() if offset in there)
