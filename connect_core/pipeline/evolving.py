"""Which records of a batch its document is to be evolved for, and which ones it does not take all the same. Pure.

Field names that are data would make a revision for each record: after `MOST_EVOLVED` that runs have added or widened, a
person has to apply the document with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from connect_core.rows.json_reading import JsonReader, Read
from connect_core.rows.types import Type, struct_of, type_of
from connect_core.rows.widening import MOST_EVOLVED, joined, leaves
from connect_core.work import Evolving

MOST_RECORDS = 100
"""What so many records of a batch need is said at once."""

_THEN = "Make room, write the field in the document, apply it, and replay the dead letter"
TOO_MANY = (
    f"runs add or widen at most {MOST_EVOLVED} fields, and have: apply the document with the fields that"
    " `waybill connectors show` has of it, and they count no more"
)


class Needs(NamedTuple):
    """The first row for which the document is to be evolved, and what that one and others behind it need beside the
    fields that there are (`widening.beyond`)."""

    row: int
    fields: Type


class Evolution:
    """Of one range, whose revision has the fields `rows`."""

    def __init__(self, rows: Type, evolving: Evolving) -> None:
        self._rows = rows
        self._refused = [(one.place, type_of(one.type), one.why) for one in evolving.refused]
        evolved = struct_of(evolving.evolved) if evolving.evolved else None
        self._evolved = {place for place, _ in leaves(evolved)}

    def judged(self, read: Read, values: pa.Array) -> tuple[Read, Needs | None]:
        """What of a batch goes on, up to the first row for which the document is to be evolved; rows that it is not
        evolved for have that in their reasons."""
        reasons, needs = dict(read.unfit), None
        for row, lacks in sorted(read.needs.items()):
            if why := self._refusal(lacks):
                reasons[row] = f"{reasons[row]}: {why}"
            elif why := self._misfit(values.slice(row, 1), lacks):
                reasons[row] = f"Not of format json: {why}"
            else:
                needs = Needs(row, self._together(lacks, self._behind(read, values, row)))
                break
        if needs is None:
            return Read(read.rows, sorted(reasons.items())), None
        unfit = [(row, why) for row, why in sorted(reasons.items()) if row < needs.row]
        return Read(read.rows.slice(0, needs.row - len(unfit)), unfit), needs

    def _behind(self, read: Read, values: pa.Array, first: int) -> Iterator[Type]:
        behind = [row for row in sorted(read.needs) if row > first][: MOST_RECORDS - 1]
        return (read.needs[row] for row in behind if not self._misfit(values.slice(row, 1), read.needs[row]))

    def _together(self, first: Type, others: Iterator[Type]) -> Type:
        """As many as can be had together: the rest is met again."""
        for one in others:
            both = joined(first, one)
            if both is not None and not self._refusal(both):
                first = both
        return first

    def _refusal(self, lacks: Type) -> str:
        """Why the document is not evolved so; empty: it may be."""
        wanted = dict(leaves(lacks))
        for place, least, why in self._refused:
            if (one := wanted.get(place)) and joined(one, least) == one:
                return f"{why}. {_THEN}"
        return TOO_MANY if len(self._evolved.union(wanted)) > MOST_EVOLVED else ""

    def _misfit(self, value: pa.Array, lacks: Type) -> str:
        """Why it does not fit with these fields either; empty: it does. The reader is the judge of that, and not
        whoever has looked for types."""
        wider = joined(self._rows, lacks) or self._rows
        return next((why for _, why in JsonReader(wider, unknown="drop").read(value).unfit), "")
