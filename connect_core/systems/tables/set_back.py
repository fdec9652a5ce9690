"""What a position knows of numbers that went back, as those of a table that was emptied or made again. Pure.

That shows only until they have passed what was read: the rows that came before that are then where nobody looks any
more. So a run that sees it keeps what it saw with the position where it stopped. Whoever moves that has decided.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from connect_core.errors import DataError
from connect_core.sdk.values import Bounds, Gap, Json, Position

_READ_TO, _SET_BACK = "read_to", "set_back"


def reached(evidence: Json, end: int) -> Json:
    """Of a position up to which was read. The begin of a range has none: to finish that is not to stand there."""
    return evidence | {_READ_TO: end}


class SetBack(NamedTuple):
    """Numbers began again below those that were read."""

    stood_at: int
    """Then no row had a higher number, and none was given out."""
    read_to: int
    """The position that was reached before."""

    @classmethod
    def of(cls, at: Position) -> Self | None:
        """What an earlier look has kept."""
        noted = at.evidence.get(_SET_BACK)
        found = None if noted is None else cls(*noted)
        return found if found and found.read_to == at.offset else None

    @classmethod
    def seen(cls, at: Position, stands_at: int) -> Self | None:
        """What is to be kept, and is not yet."""
        if stands_at >= at.offset - 1 or at.evidence.get(_READ_TO) != at.offset:
            return None
        noted = cls.of(at)
        return None if noted and noted.stood_at <= stands_at else cls(stands_at, at.offset)

    def kept(self, at: Position, column: str) -> Bounds:
        """Where the position stands, with this. The next look says what is to be done."""
        reason = f"the numbers of column {column} were back at {self.stood_at}: waybill run says what to do"
        lost = Gap(at.incarnation, at.offset, None, reason)
        evidence = at.evidence | {_SET_BACK: [*self]}
        return Bounds(at.incarnation, *(at.offset,) * 3, evidence, (lost,), grows=False, chosen=True)

    def passed_over(self, column: str, first: int, where: str) -> DataError:
        """`first` is the number of the first row that has come below the position."""
        return DataError(
            f"The numbers of column {column} were back at {self.stood_at} when rows before {self.read_to} had been"
            f" read, as if the table had been emptied or made again. Rows have come since that nobody has read, from"
            f" number {first} on",
            where=where,
            next_step="Move the position with `waybill offsets set`: to the lowest number of the table, if it was made"
            f" again or emptied; to {first}, if all rows up to {self.stood_at} are older",
        )
