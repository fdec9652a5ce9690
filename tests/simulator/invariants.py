"""What must hold after every history, whatever happened in it. Reads target, source and ledger side by side.

Each check returns sentences about what does not hold. Nothing of the product's own accounting is trusted: records in
the target are counted by the coordinates that they carry, receipts are recomputed from the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from connect_core.ledger import OffsetStep, SettledRange
from connect_core.rocketmq import Queue
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.values import LIVE, Position
from connect_core.work import Receipt
from tests.simulator.broker import Stored
from tests.simulator.history import History
from tests.simulator.ledger import UID
from tests.simulator.source import HOLE, PLAIN, Log

_ALL = 1_000_000


@dataclass(frozen=True)
class Story:
    """One partition: its source, what the ledger tells of it (`steps` are the moves of its offset), and what stands in
    the target, queue by queue."""

    partition: Partition
    log: Log
    receipts: list[SettledRange]
    steps: list[OffsetStep]
    gaps: set[tuple[int, int | None]]
    dead: set[int]
    stored: list[tuple[Queue, Stored]]
    floors: dict[Queue, int]
    abandoned: list[tuple[int, int]]

    @cached_property
    def moved(self) -> bool:
        """A person moved the offset: what was given up may be in the target, what is read again is there twice."""
        return any(step.kind != "settled" for step in self.steps)

    @cached_property
    def moved_back(self) -> bool:
        return any(step.kind != "settled" and _offset(step.after) < _offset(step.before) for step in self.steps)

    @cached_property
    def settled(self) -> Counter[int]:
        """How many receipts cover each offset."""
        spans = [(_offset(step.before), _offset(step.after)) for step in self.steps if step.kind == "settled"]
        return Counter(offset for begin, end in spans for offset in range(begin, end))

    @cached_property
    def given_up(self) -> Counter[int]:
        """How many ranges that a person gave up cover each offset: each may have delivered it once. A live one has no
        end, but delivered nothing that is not in the log."""
        spans = [(begin, min(end, self.log.end)) for begin, end in self.abandoned]
        return Counter(offset for begin, end in spans for offset in range(begin, end))

    @cached_property
    def copies(self) -> Counter[int]:
        return Counter(one.offset for _, one in self.stored)

    @cached_property
    def held(self) -> Counter[int]:
        """Copies that came under the stated condition."""
        return Counter(one.offset for _, one in self.stored if one.held)

    @cached_property
    def late(self) -> set[int]:
        """Records that a receipt told as a gap, among others that it found, and that came after that: they are there,
        and it did not count them."""
        found: set[int] = set()
        for receipt in (one.receipt for one in self.receipts if one.receipt.reconstructed):
            came: dict[int, int] = {}
            for _, one in self.stored:
                if receipt.begin <= one.offset < receipt.end:
                    came[one.offset] = min(one.visible_ns, came.get(one.offset, one.visible_ns))
            gaps = [(gap.begin, gap.end) for gap in receipt.gaps if gap.end is not None]
            told = [offset for offset in came if any(begin <= offset < end for begin, end in gaps)]
            uncounted = max(len(came) - receipt.deduplicated, 0)
            found.update(sorted(told, key=came.__getitem__, reverse=True)[:uncounted])
        return found

    def is_gap(self, offset: int) -> bool:
        """Whether it is within one that was told: also in a receipt, of records that neither side has any more."""
        return any(begin <= offset < end for begin, end in self.gaps if end is not None)

    def plain(self, offset: int) -> bool:
        """Whether there is a record that the target can take."""
        return self.log.entries[offset].kind == PLAIN and offset not in self.dead


def faults_of(history: History) -> list[str]:
    """Everything that does not hold after a history."""
    found = list(history.problems)
    repeated = told = 0
    moved = held = False
    for story in _stories(history):
        found += _miscounted(story)
        found += _out_of_order(story)
        found += _chain_faults(story)
        found += [fault for one in story.receipts for fault in _receipt_faults(story, one)]
        repeated += repeats_looked_at(story)
        told += sum(one.receipt.duplicates for one in story.receipts)
        moved, held = moved or story.moved, held or bool(story.held)
    found += _surplus_faults(repeated, told, moved or bool(history.broker.looked_ahead), held)
    found += _ledger_faults(history)
    history.counts["repeated records looked at"] += 0 if moved else repeated
    history.counts["duplicates told"] += 0 if moved else told
    return found


def _stories(history: History) -> Iterator[Story]:
    receipts = history.alone.receipts(UID, stream=LIVE, limit=None)
    steps = history.alone.offset_history(UID, limit=_ALL)
    gaps, letters = history.alone.gaps(UID), history.alone.dead_letters(UID, limit=_ALL)
    floors = history.database.floors()
    for partition, log in history.logs.items():
        queues = sorted(history.broker.queues)
        yield Story(
            partition=partition,
            log=log,
            receipts=[one for one in reversed(receipts) if one.partition == partition],
            steps=[step for step in steps if step.partition == partition],
            gaps={(one.gap.begin, one.gap.end) for one in gaps if one.partition == partition},
            dead={one.offset for one in letters if one.partition == partition},
            stored=[
                (queue, one)
                for queue in queues
                for one in history.broker.queues[queue]
                if one.partition_id == partition.id
            ],
            floors={queue: floors.get((partition.id, str(queue)), 0) for queue in queues},
            abandoned=history.database.given_up(partition.id),
        )


def _offset(position: Position | None) -> int:
    return 0 if position is None else position.offset


def _miscounted(story: Story) -> Iterator[str]:
    """What was settled is there once. What was settled again after a person moved the offset back may be there once
    more, and so is what a range delivered that was given up. What a person moved the offset past may be there as well.
    Copies that the broker held back add up."""
    for n in range(story.log.end):
        plain, copies = story.plain(n), story.copies[n]
        least = int(plain and story.settled[n] > 0 and not story.is_gap(n))
        most = max(story.settled[n] + story.given_up[n], int(story.moved)) + story.held[n] if plain else 0
        if copies < least:
            yield f"{story.partition.key}:{n} is lost"
        elif copies > most:
            yield f"{story.partition.key}:{n} is there {copies} times"


def _out_of_order(story: Story) -> Iterator[str]:
    """First copies ascend in each queue, unless a person moved the offset back."""
    last: dict[Queue, int] = {}
    seen: set[int] = set()
    for queue, one in story.stored:
        if one.offset in seen or one.held or story.moved_back:
            continue
        seen.add(one.offset)
        if one.offset < last.get(queue, -1):
            yield f"{story.partition.key}:{one.offset} stands behind {last[queue]} in {queue}"
        last[queue] = one.offset


def _chain_faults(story: Story) -> Iterator[str]:
    """Receipts join: each begins where the one before it ended, where a person put it, or behind a gap told. What was
    never read, or is again as if it never was, begins anywhere."""
    key, place = story.partition.key, None
    for step in story.steps:
        before = _offset(step.before)
        if place is not None and before != place and (place, before) not in story.gaps:
            yield f"{key}: {step.kind} goes on at {before}, the step before it ended at {place}"
        place = None if step.after is None else step.after.offset
    if (story.log.oldest if place is None else place) != story.log.end:
        yield f"{key}: the last receipt ends at {place} of {story.log.end}"


def _receipt_faults(story: Story, one: SettledRange) -> Iterator[str]:
    receipt, where = one.receipt, f"receipt {one.receipt.begin} to {one.receipt.end} of {story.partition.key}"
    for fault in receipt.identity_faults():
        yield f"{where}: {fault}"
    if receipt.reconstructed:
        return
    entries = story.log.entries[receipt.begin : receipt.end]
    absent = sum(1 for entry in entries if entry.kind == HOLE)
    rejected = sum(1 for entry in entries if entry.kind not in (HOLE, PLAIN))
    if (receipt.absent, receipt.rejected) != (absent, rejected):
        yield f"{where}: {receipt.absent} absent and {receipt.rejected} rejected, not {absent} and {rejected}"
    if receipt.read is None or receipt.end - receipt.begin != receipt.read + absent:
        yield f"{where}: read {receipt.read} and absent {absent} do not make its length"
    yield from _digest_faults(where, story, receipt)


def _digest_faults(where: str, story: Story, receipt: Receipt) -> Iterator[str]:
    readable = story.log.readable(receipt.begin, receipt.end)
    plain = [n for n in readable if story.log.entries[n].kind == PLAIN]
    if _digest(story, readable) != receipt.digest_read:
        yield f"{where}: its digest of what was read is not that of the source"
    if _digest(story, plain) != receipt.digest_sent:
        yield f"{where}: its digest of what was sent is not that of the source"


def _digest(story: Story, offsets: list[int]) -> str:
    digest = RecordDigest(Lineage(UID, LIVE, story.partition.id, 0))
    digest.add(story.log.records(offsets))
    return digest.text()


def repeats_looked_at(story: Story) -> int:
    """Copies that no receipt accounts for: beyond the first, or of a record that was told as a gap before it came. Only
    before the place up to which the connector has looked or written last: the next range tells of those behind it."""
    seen: set[int] = set()
    repeated = 0
    for queue, one in story.stored:
        too_many = one.offset in seen or not story.settled[one.offset] or one.offset in story.late
        repeated += too_many and one.message.queue_offset < story.floors[queue]
        seen.add(one.offset)
    return repeated


def _surplus_faults(repeated: int, told: int, unclear: bool, held: bool) -> Iterator[str]:
    if told and not held:
        yield f"{told} duplicates told, and nothing was held by the broker"
    if told > repeated if unclear else told != repeated:
        yield f"{repeated} repeated records were looked at, {told} are told as duplicates"


def _ledger_faults(history: History) -> Iterator[str]:
    for item in history.alone.open_ranges(UID, LIVE):
        yield f"range {item.id} of {item.range.partition.key} is open"
    stored = history.alone.dead_letters(UID, limit=_ALL)
    letters = Counter((letter.partition, letter.offset, letter.stage) for letter in stored)
    for (partition, offset, _), count in letters.items():
        if count > 1 or history.logs[partition].entries[offset].kind in (PLAIN, HOLE):
            yield f"{partition.key}:{offset} is {count} times a dead letter"
