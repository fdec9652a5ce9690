"""Which rows a pass over a table reads one after the other. Pure.

A table whose primary key is no column of whole numbers has no numbers that could be offsets. There a digest of a row's
key is its number: it depends on nothing but the row, so that a range which is read again finds each row at the number
that it had, whatever was inserted and deleted beside it. In the order of digests no index helps, so such a table is
read stretch by stretch: the key up to which a stretch goes is looked up, and each stretch is an incarnation of its own.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from connect_core.sdk.values import Bounds, Json, Position
from connect_core.systems.tables.snapshots import Key

KEY_DIGITS = 11
"""Of a digest, in hexadecimal: as many as leave a number that each target takes as an offset. Of the rows of one
stretch two rarely have the same (7 in 100,000); then it is made shorter."""
KEY_NUMBERS = 1 << 4 * KEY_DIGITS
STRETCH_ROWS, STRETCH_BYTES = 50_000, 16 << 20
"""At most so many rows; each stretch costs a plan and a receipt. A page reads the keys of its whole stretch, so it has
so many bytes: most stretches are one page."""
_AFTER, _UNTIL, _FIRST, _END = "after", "until", "first", "end"


class PassStretch(NamedTuple):
    """Rows with numbers in [first, end), and with a key behind `after`, up to `until`. None: from the first row on, to
    the last one. A table with a column of numbers has one stretch, without keys."""

    first: int
    end: int
    after: Key | None = None
    until: Key | None = None

    @classmethod
    def of(cls, evidence: Json) -> Self:
        return cls(evidence[_FIRST], evidence[_END], _key(evidence, _AFTER), _key(evidence, _UNTIL))

    @property
    def has_more_behind(self) -> bool:
        return self.until is not None

    @property
    def evidence(self) -> Json:
        keys = {_AFTER: self.after, _UNTIL: self.until}
        return {_FIRST: self.first, _END: self.end, **{name: [*key] for name, key in keys.items() if key is not None}}

    def bounds(self, at: Position) -> Bounds:
        """What is left of it."""
        end = max(at.offset, self.end)
        return Bounds(at.incarnation, at.offset, min(self.first, at.offset), end, at.evidence, grows=False)

    @property
    def named(self) -> str:
        """Goes into the origin of what is read: another stretch has other rows by the same numbers."""
        return "" if self.after is None and self.until is None else f"/{self.after}/{self.until}"


def _key(evidence: Json, name: str) -> Key | None:
    found = evidence.get(name)
    return None if found is None else (*found,)
