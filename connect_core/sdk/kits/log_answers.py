"""What the author of a `LogSource` says of a log, and the check of each answer: one that breaks the contract would
lose records in silence, or give them twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from connect_core.sdk.kits.contract import broken, method_of, must_be
from connect_core.sdk.records import Record


class Ends(NamedTuple):
    """The offset of the oldest record that can be read, and the offset behind the newest one. `name` is a name that the
    server gives to this log and to no log before or after it, such as the id of a topic; empty where it gives none."""

    begin: int
    end: int
    name: str = ""


class Fetched(NamedTuple):
    """Records and their offsets, ascending, and the offset to continue at behind them."""

    records: Sequence[tuple[int, Record]]
    next: int


class Logs(Protocol):
    """What the author of a `LogSource` writes; see there."""

    sparse: bool
    first_offset: int

    def ends(self, log: str) -> Ends | None: ...

    def fetch(self, log: str, begin: int, end: int) -> Fetched: ...


def ends_of(logs: Logs, log: str) -> Ends | None:
    """Where the log begins and ends now; None where it is not there. Raises ContractBroken."""
    ends, method = logs.ends(log), method_of(logs, "ends")
    if ends is None:
        return None
    must_be(Ends, ends, f"The answer of {method}")
    must_be(int, ends.begin, f"The begin of {method}")
    must_be(int, ends.end, f"The end of {method}")
    must_be(str, ends.name, f"The name of {method}")
    if ends.begin > ends.end:
        raise broken(f"The begin of {method} must not be behind the end, and they are {ends.begin} and {ends.end}")
    return ends


def fetched_of(logs: Logs, log: str, begin: int, end: int) -> Fetched:
    """What one request brings of [begin, end). Raises ContractBroken."""
    answer, method = logs.fetch(log, begin, end), method_of(logs, "fetch")
    must_be(Fetched, answer, f"The answer of {method}")
    must_be(Sequence, answer.records, f"What has the records of {method}")
    must_be(int, answer.next, f"The next offset of {method}")
    for row in answer.records:
        if not _is_row(row):
            raise broken(f"Each record of {method} must be a tuple of its offset, an int, and a Record")
    _check_order([offset for offset, _ in answer.records], begin, end, method)
    behind = answer.records[-1][0] + 1 if answer.records else begin
    if answer.next < behind:
        raise broken(f"The next offset of {method} must be at least {behind}, behind its records, and is {answer.next}")
    return answer


def _check_order(offsets: Sequence[int], begin: int, end: int, method: str) -> None:
    if any(one >= next_ for one, next_ in pairwise(offsets)):
        raise broken(f"The offsets of {method} must ascend")
    if offsets and not begin <= offsets[0] <= offsets[-1] < end:
        asked = f"from {begin} on and before {end}"
        raise broken(f"The offsets of {method} must be {asked}, and go from {offsets[0]} to {offsets[-1]}")


def _is_row(row: object) -> bool:
    return isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], int) and isinstance(row[1], Record)
