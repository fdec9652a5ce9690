"""Open ranges of which the source has lost records since they were planned (delivery rules 9, 13 and 16). Pure.

Asked by a run's driver about the ranges that it inherits, after `scan` and before anything is written. What of such a
range the target holds is settled from there. What neither side has is a gap; the next plan tells of it. Where a range
has one target, a record below the highest one that is there is no gap: it was there as well, filtered, rejected or
absent. Where it is spread over several, one of them may have got less far: what is not there from that place on may be
lost, and is told as a gap within the receipt.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connect_core.replication.driver.empty_receipt import empty_receipt
from connect_core.sdk.floors import next_floors
from connect_core.sdk.records import Partition
from connect_core.sdk.source import PushSource
from connect_core.sdk.values import Bounds, Delivered, Gap, Json, OpenRange, Range
from connect_core.work import Outcome, Receipt

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult


@dataclass(frozen=True)
class LostRange:
    """A range, and what the source has from its begin on."""

    item: OpenRange
    seen: Bounds

    def gaps(self) -> tuple[Gap, ...]:
        """The records that neither the source nor the target has; none when every one is there."""
        return (*self._within(), *([behind] if (behind := self._behind()) else []), *self._cut_off())

    def _behind(self) -> Gap | None:
        """What is behind everything that the target has; the next plan tells of it."""
        covered = self._covered()
        if self.seen.incarnation != self.item.range.incarnation:
            return Gap(self.item.range.incarnation, covered, None, self._reason())
        if self.seen.begin <= covered:
            return None
        return Gap(self.seen.incarnation, covered, self.seen.begin, self._reason())

    def _cut_off(self) -> tuple[Gap, ...]:
        """What the source has lost behind everything that the target has, when it ends before the range by now. The
        next plan cannot tell of that: it sees a source that has not got further."""
        wanted, covered = self.item.range, self._covered()
        if not _ends_before(wanted, self.seen) or covered == wanted.end:
            return ()
        reason = "rewound" if self.seen.grows else self.seen.gaps[-1].reason
        return (Gap(wanted.incarnation, covered, wanted.end, reason),)

    def _within(self) -> tuple[Gap, ...]:
        """Between records that are there, what may be lost of a range that is spread over several targets; and what the
        target refused, for no receipt says so, and no dead letter."""
        wanted, end = self.item.range, self._closes_at()
        doubtful = (self._found().doubtful_from(wanted.begin, end), end)
        runs = (*self._found().prefix.refused_before(end), doubtful)
        return tuple(Gap(wanted.incarnation, begin, to, self._reason()) for begin, to in runs if begin < to)

    def _reason(self) -> str:
        """Where all that the plan saw was read, the attempt may have seen more of it."""
        if not self.seen.gaps:
            return "gone"
        if self.seen.moved:
            return f"{self.seen.gaps[-1].reason}; how much the target has of what was begun before that, nobody can say"
        return self.seen.gaps[-1].reason if self.seen.gaps[-1].loses else "deleted"

    def _closes_at(self) -> int:
        """Where the receipt ends."""
        wanted, seen = self.item.range, self.seen.begin
        all_lost = self._behind() or _ends_before(wanted, self.seen)
        return self._covered() if all_lost else max(seen, self._found().prefix.within(wanted.begin, wanted.end))

    def is_whole_elsewhere(self) -> bool:
        """Whether the source has all of it by other offsets, and the target certainly nothing that counts: whoever
        writes next moves bytes aside that nobody can place."""
        return self.seen.moved and replace(self._found(), unplaced=0, unplaced_records=0).has_nothing

    def unplaced(self) -> int:
        """Bytes in the target of which nobody can say whether they are of this range."""
        return self._found().unplaced

    def receipt(self) -> Receipt:
        """Closes the range behind what is accounted for: what the source lost and the target has."""
        wanted, end = self.item.range, self._closes_at()
        gaps = (*wanted.gaps, *self._within(), *self._cut_off())
        if end == wanted.begin:
            told = empty_receipt(self.item)
        else:
            told = reconstructed(self.item, end, wanted.evidence, self._found().possible_duplicates)
        if _has_ended(self.seen) and self._cut_off():  # that it has ended is told with this
            told = replace(told, evidence=self.seen.evidence)
        return replace(told, gaps=gaps)

    def _covered(self) -> int:
        """Behind the highest record of the range that the target has."""
        return self._found().behind_highest(self.item.range.begin, self.item.range.end)

    def _found(self) -> ScanResult:
        return self.item.known


def reconstructed(item: OpenRange, end: int, evidence: Json, possible_duplicates: int = 0) -> Receipt:
    """Closes a range at `end` with the records of it that are in the target."""
    found = item.known
    already = found.count_below(end)
    return Receipt(
        begin=item.range.begin,
        end=end,
        read=None,
        absent=None,
        filtered=None,
        rejected=None,
        passed=found.records_below(end),
        emitted=already,
        delivered=0,
        deduplicated=already,
        duplicates=found.duplicates(end),
        possible_duplicates=possible_duplicates,
        bytes_read=None,
        bytes_written=0,
        seconds=0.0,
        digest_read="",
        digest_sent="",
        where={},
        evidence=evidence,
        floors=next_floors(item, Delivered(records=0, bytes=0, behind={}, where={}), end),
        gaps=item.range.gaps,
        reconstructed=True,
    )


def closed_from_target(source: PushSource, items: Sequence[OpenRange], left: Container[int] = ()) -> list[Outcome]:
    """Of a source that pushes (docs/decisions/mqtt-push-source.md): ranges whose attempt left no receipt, looked for in
    the target, are closed behind the highest record that is there. What is not there was not acknowledged, and comes
    again. So does a record of which only some outputs are there: it is delivered again with all of them, and those
    are told as possible duplicates. The first range of each target tells of the bytes there that nobody can place;
    `left` are the ids of those into whose target this task writes no more."""
    telling = {tuple(found.scanned): item.id for item in reversed(items) if (found := item.found) and found.unplaced}
    closed = {item.id: _closed_behind_highest(source, item) for item in items}
    closed |= {item.id: _with_unplaced(item, closed[item.id], left) for item in items if item.id in telling.values()}
    return [Outcome(range_id, receipt) for range_id, receipt in closed.items()]


def _with_unplaced(item: OpenRange, receipt: Receipt, left: Container[int]) -> Receipt:
    """The next who writes there moves them to a file beside it, for what no receipt covers comes again. So it is there
    twice where nobody writes any more. But what a ledger has forgotten that was restored was acknowledged."""
    found = item.known
    names = sorted(found.scanned)
    if item.id in left:
        where = {"left_in": [[name, found.unplaced] for name in names]}
        repeats = receipt.possible_duplicates + found.unplaced_records
        return replace(receipt, where=where, possible_duplicates=repeats)
    if not any(floor.ahead and floor.target in found.scanned for floor in item.floors):
        return receipt
    reason = (
        f"the ledger was restored from a backup: the last {found.unplaced} bytes of {', '.join(names)}, which it does"
        " not know, are moved to a file beside it by the next write; what of them the source was told is there does not"
        " come again"
    )
    told = Gap(item.range.incarnation, receipt.end, receipt.end, reason, warns=True)
    return replace(receipt, gaps=(*receipt.gaps, told))


def _closed_behind_highest(source: PushSource, item: OpenRange) -> Receipt:
    found = item.known
    recovered = source.recovered(item.range, found)
    end = found.behind_highest(item.range.begin, item.range.end)
    come_again = found.prefix.records + found.prefix.unsure  # in such a target: nothing of this was acknowledged
    repeats = recovered.possible_duplicates + found.possible_duplicates + found.in_parts() + come_again
    known = replace(item, found=replace(found, unknown=False))  # what comes again is told by `comes_again`
    return reconstructed(known, end, recovered.evidence, repeats)


def lost_ranges(items: Sequence[OpenRange], bounds: Mapping[Partition, Bounds]) -> list[LostRange]:
    """Those of `items` whose first record the source does not have any more. `bounds` are as seen from their begins."""
    both = [LostRange(item, bounds[item.range.partition]) for item in items]
    return [one for one in both if _is_lost(one.item, one.seen)]


def ends(items: Sequence[OpenRange], bounds: Mapping[Partition, Bounds]) -> dict[int, int]:
    """Where each of the live ranges among `items` ends that an earlier attempt left open, by id: behind everything that
    can have been written of it. It was written from the source, so nothing behind what the source has now can be."""
    return {item.id: _end(item, bounds[item.range.partition]) for item in items if item.range.live}


def _end(item: OpenRange, seen: Bounds) -> int:
    found = item.known
    there = found.behind_highest(item.range.begin, item.range.end)
    return max(there, seen.end) if seen.incarnation == item.range.incarnation else there


def _is_lost(item: OpenRange, seen: Bounds) -> bool:
    if item.range.live and not seen.gaps:  # the source went on behind it: nothing had come into it
        return False
    gone = seen.incarnation != item.range.incarnation or seen.begin > item.range.begin
    return gone or _ends_before(item.range, seen)


def _ends_before(wanted: Range, seen: Bounds) -> bool:
    """Whether a source that had all of a range when it was planned ends by now where that begins, and appends there
    what comes next, or has ended for good. A broker may have lost what it had not stored yet; of a queue that a topic
    has no more it does not know how far it went."""
    same = seen.incarnation == wanted.incarnation and not (wanted.live or seen.pushes)
    return same and (seen.grows or _has_ended(seen)) and seen.begin == seen.end == wanted.begin < wanted.end


def _has_ended(seen: Bounds) -> bool:
    """Whether a partition says that it has ended (`Gap`)."""
    return not seen.grows and any(gap.begin == gap.end and not gap.warns for gap in seen.gaps)
