"""Compares source and target record by record, and both with the receipts.

Every record a test feeds is there once, so its bytes name it. Compared are all records of the source, by partition and
in order, with all records of the target, by place (a queue, a file) and in order:

- lost: records of the source that are nowhere in the target;
- repeated: copies in the target beyond the first;
- reordered: records of one partition whose first copy stands in front of that of an earlier one, or in another place;
- strangers: records of the target that the source never held.

Of the receipts: the identities of each, whether those of a partition join from its begin to its end without an overlap
or a hole that no gap tells of, whether they account for every record, and the duplicates that they report. Nothing
here reads a server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.faults.rows import FaultRow

Records = Mapping[str, Sequence[bytes]]
"""Partition or place -> its records in order."""
Told = Mapping[str, Any]
"""One receipt or gap, with the names under which `waybill receipts` and `waybill gaps` print it."""


class Account(NamedTuple):
    """What became of the records, and what the receipts say about it. `faults` are sentences about receipts."""

    lost: int = 0
    repeated: int = 0
    reordered: int = 0
    strangers: int = 0
    duplicates: int = 0
    faults: tuple[str, ...] = ()

    def into(self, row: FaultRow) -> Account:
        """Fills the row of this fault; returns itself for the assertion."""
        row.lost, row.repeated, row.reordered, row.duplicates = (
            self.lost,
            self.repeated,
            self.reordered,
            self.duplicates,
        )
        return self


EXACT = Account()
"""Each record once, in order, and the receipts say so."""


@dataclass(frozen=True)
class Span:
    """The positions of one partition that the receipts must cover."""

    begin: int
    end: int


def account(
    source: Records, target: Records, receipts: Sequence[Told], spans: Mapping[str, Span], gaps: Sequence[Told] = ()
) -> Account:
    """Everything at once. `spans` has every partition of the source; `PARTITION~N` is its Nth incarnation after the
    first. `source` is without the records that gaps tell of."""
    copies = Counter(record for records in target.values() for record in records)
    fed = Counter(record for records in source.values() for record in records)
    assert max(fed.values(), default=1) == 1, "a record was fed twice, so it cannot be told from its copy"
    return Account(
        lost=len(fed.keys() - copies.keys()),
        repeated=sum(copies[record] - 1 for record in fed.keys() & copies.keys()),
        reordered=reordered(source, target),
        strangers=sum(copies[record] for record in copies.keys() - fed.keys()),
        duplicates=sum(receipt["duplicates"] for receipt in receipts),
        faults=tuple(faults(receipts, gaps, spans, len(fed))),
    )


def reordered(source: Records, target: Records) -> int:
    """Records behind whose first copy stands that of an earlier record of their partition, or that are in another
    place than the partition's first record."""
    number = {record: (part, n) for part, records in source.items() for n, record in enumerate(records)}
    highest: dict[str, int] = {}
    home: dict[str, str] = {}
    seen: set[bytes] = set()
    count = 0
    for place, records in target.items():
        for record in records:
            if record in seen or record not in number:
                continue
            seen.add(record)
            part, n = number[record]
            if home.setdefault(part, place) != place or n < highest.get(part, -1):
                count += 1
            highest[part] = max(n, highest.get(part, -1))
    return count


def faults(receipts: Sequence[Told], gaps: Sequence[Told], spans: Mapping[str, Span], records: int) -> Iterator[str]:
    """What does not hold, a sentence each."""
    for receipt in receipts:
        yield from _identity_faults(receipt)
    stretches: dict[str, list[Told]] = {partition: [] for partition in spans}
    for stretch in (*receipts, *(gap for gap in gaps if gap["end"] is not None)):
        stretches.setdefault(_partition(stretch), []).append(stretch)
    for partition, mine in stretches.items():
        yield from _joints(partition, mine, spans.get(partition))
    told = sum(receipt["delivered"] + receipt["deduplicated"] for receipt in receipts)
    if told != records:
        yield f"{records} records were fed, the receipts tell of {told}"


def _partition(told: Told) -> str:
    incarnation = told["incarnation"]
    return f"{told['partition']}~{incarnation}" if incarnation else str(told["partition"])


def _identity_faults(receipt: Told) -> Iterator[str]:
    where = f"{receipt['partition']} {receipt['begin']}-{receipt['end']}"
    if receipt["read"] is not None and receipt["read"] != receipt["filtered"] + receipt["rejected"] + receipt["passed"]:
        yield f"{where}: read {receipt['read']} is not filtered + rejected + passed"
    if receipt["emitted"] != receipt["delivered"] + receipt["deduplicated"]:
        yield f"{where}: emitted {receipt['emitted']} is not delivered + deduplicated"
    if not receipt["reconstructed"] and receipt["covered"] != receipt["end"] - receipt["begin"]:
        yield f"{where}: {receipt['covered']} positions are accounted for"


def _joints(partition: str, stretches: Sequence[Told], span: Span | None) -> Iterator[str]:
    if span is None:
        yield f"{partition}: there is no such partition"
        return
    at = span.begin
    for stretch in sorted(stretches, key=lambda told: told["begin"]):
        if stretch["begin"] != at:
            yield f"{partition}: a receipt begins at {stretch['begin']}, the one before it ended at {at}"
        at = stretch["end"]
    if at != span.end:
        yield f"{partition}: the receipts end at {at}, the partition at {span.end}"
