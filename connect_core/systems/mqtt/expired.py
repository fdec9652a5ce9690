"""Which of many records have expired, and where: in columns. Pure; `expiry` has the rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.sdk.records import decode_headers
from connect_core.systems.mqtt.expiry import HEADER, is_over

_NAMED = f"{HEADER}\x01"
MOST_STRETCHES = 256
"""So many are kept with the progress of a range: a few kilobytes. Then the range ends, and is settled."""


def expired(records: pa.RecordBatch, now_ms: int) -> NDArray[np.bool_]:
    """For each row of RECORD_SCHEMA whether the time that its header gives it is over."""
    headers = records.column("headers")
    found = np.zeros(len(records), dtype=np.bool_)
    named = pc.fill_null(pc.match_substring(headers, _NAMED), False).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(named)
    if len(rows):
        chosen = pa.array(rows)
        intervals = _intervals(headers.take(chosen).to_pylist())
        times = came_ms(records.take(chosen))
        found[rows] = [
            interval is not None and is_over(interval, came, now_ms)
            for interval, came in zip(intervals, times, strict=True)
        ]
    return found


def came_ms(records: pa.RecordBatch) -> list[int | None]:
    """When each record was received or born, in milliseconds since 1970, UTC."""
    times: list[int | None] = records.column("timestamp").cast(pa.int64()).to_pylist()
    return times


def _intervals(headers: Sequence[bytes]) -> list[int | None]:
    """None where a record has none, or something else."""
    return [_number(decode_headers(one).get(HEADER, "")) for one in headers]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


class Stretches:
    """Where records of a range were left out: stretches [begin, end) of offsets, in order. Within one nothing was sent,
    whatever else has an offset there."""

    def __init__(self, known: Sequence[tuple[int, int]]) -> None:
        self._all = list(known)
        self._goes_on = False

    def add(self, offsets: NDArray[np.int64], late: NDArray[np.bool_]) -> None:
        """Of rows behind all that is known, which of them are left out."""
        if not len(late):
            return
        flags = np.concatenate([[False], late, [False]])
        changes = np.flatnonzero(flags[1:] != flags[:-1])
        for first, behind in zip(changes[::2], changes[1::2], strict=True):
            end = int(offsets[behind - 1]) + 1
            if first == 0 and self._goes_on:
                self._all[-1] = (self._all[-1][0], end)
            else:
                self._all.append((int(offsets[first]), end))
        self._goes_on = bool(late[-1])

    def before(self, position: int) -> tuple[tuple[int, int], ...]:
        return tuple(one for one in self._all if one[0] < position)

    def too_many_before(self, offset: int) -> bool:
        return len(self._all) > MOST_STRETCHES and self._all[MOST_STRETCHES][0] < offset
