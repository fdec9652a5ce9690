"""The receipt of a range of which nothing was read. Without what counts records: a run with nothing to move never
loads that."""

from __future__ import annotations

from connect_core.sdk.digest_texts import format_digest
from connect_core.sdk.floors import next_floors
from connect_core.sdk.values import Delivered, OpenRange
from connect_core.work import Receipt

_NOTHING = format_digest(0)


def empty_receipt(item: OpenRange) -> Receipt:
    """Closes a range at its begin, where nothing was read: it only tells of the gaps before it."""
    begin, found = item.range.begin, item.known
    return Receipt(
        begin=begin,
        end=begin,
        read=0,
        absent=0,
        filtered=0,
        rejected=0,
        passed=0,
        emitted=0,
        delivered=0,
        deduplicated=0,
        duplicates=found.duplicates(begin),
        possible_duplicates=found.possible_duplicates,
        bytes_read=0,
        bytes_written=0,
        seconds=0.0,
        digest_read=_NOTHING,
        digest_sent=_NOTHING,
        where={},
        evidence=item.range.evidence,
        floors=next_floors(item, Delivered(records=0, bytes=0, behind={}, where={}), begin),
        gaps=item.range.gaps,
        covered=0,
    )
