"""What the lanes of a replay of dead letters read: the ledger has it, and workers do not know the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_core.ledger import Ledger
from connect_core.sdk.values import OpenRange
from connect_core.work import Letters

LETTERS_OF_A_RANGE = 1_000
BYTES_OF_A_LANE = 16 * 1024 * 1024
"""What a lane brings to its worker, in so many letters of each range at most. What does not fit is for the next one."""


def letters_of(ledger: Ledger, uid: str, items: Sequence[OpenRange]) -> Mapping[str, Letters]:
    """By id of the partition. Ranges for which nothing is left get nothing, and go on with the next lane."""
    found: dict[str, Letters] = {}
    left = BYTES_OF_A_LANE
    for wanted in (item.range for item in items):
        if left <= 0:
            break
        most = min(wanted.max_records, LETTERS_OF_A_RANGE)
        letters = ledger.letters_of(
            uid, wanted.stream, wanted.partition, wanted.begin, wanted.end, most, min(wanted.max_bytes, left)
        )
        found[wanted.partition.id] = letters
        left -= sum(len(one.value) for one in letters.rows)
    return found
