"""Records that a range found in its target, and that another document may have made. Pure.

Coordinates say which records a target holds, not what was made of them. Most were sent by an earlier attempt at the
same range, with the same pins. But what a range had sent that a person gave up, or that a restored ledger does not
know, may have been made otherwise, and a receipt has the digest of what the document makes now. So it says how many
records that concerns (delivery rule 8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from connect_core.config.units import show_count
from connect_core.sdk.values import Gap, OpenRange
from connect_core.work import Receipt

_KEY = "found_before"
"""In the `where` of such a receipt: how many records, in a list."""


def telling(receipt: Receipt, item: OpenRange, given_up: Collection[str], *, restored: bool) -> Receipt:
    """The receipt of a range, and how many records of another pipeline may be in its target. `given_up` are the digests
    of the pipelines of ranges that overlap it and were given up; `restored`: the ledger was. Then nobody can know what
    was found by a range that this run has planned."""
    found = item.found.there() if item.found is not None else 0
    doubtful = any(one != item.range.pins.pipeline for one in given_up) or (restored and not item.inherited)
    if not found or not doubtful or receipt.reconstructed:
        return receipt
    told = replace(receipt, where=receipt.where | {_KEY: [receipt.deduplicated or found]})
    return replace(told, gaps=(*told.gaps, *_left_out(told, item, found)))


def _left_out(receipt: Receipt, item: OpenRange, found: int) -> list[Gap]:
    """A target that keeps progress says up to which record it has all, and not which ones another document had
    rejected or filtered: how many there are is all that is known."""
    missing = receipt.deduplicated - found
    through = item.known.prefix.within(receipt.begin, receipt.end)
    if missing <= 0 or through <= receipt.begin:
        return []
    reason = (
        f"{show_count(missing, 'record')} up to {through:,} that count as delivered are not in the target: the document"
        " that wrote the others had rejected or filtered them. Send the stretch again: waybill backfill"
    )
    return [Gap(item.range.incarnation, receipt.begin, receipt.begin, reason, warns=True)]


def found_before(receipts: Iterable[Receipt]) -> int:
    """How many records these tell of."""
    return sum(count for one in receipts for count in one.where.get(_KEY, ()))


def sentence(count: int) -> str:
    return (
        f"{count:,} records were in the target before their range was given up, or the ledger restored. They may be"
        " there as another revision of the document made them: where a target can be read again, waybill verify"
        " compares, and says how to send them again"
    )
