"""What must hold after every history, whatever happened in it. Reads target, source and ledger side by side.

Each check returns sentences about what does not hold. Nothing of the product's own accounting is trusted: records in
the target are counted by the coordinates that they carry, receipts are recomputed from the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from connect_core.contracts import LIVE, Receipt
from connect_core.digest import RecordDigest
from connect_core.ledger import OffsetStep, SettledRange
from connect_core.records import Lineage, Partition
from connect_core.rocketmq import Queue
from tests.simulator.broker import Stored
from tests.simulator.history import History
from tests.simulator.ledger import UID
from tests.simulator.source import HOLE, PLAIN, Log


@dataclass(frozen=True)
class Expected:
    """For each position of one partition, how many copies may stand in the target: at least, and at most."""

    least: list[int]
    most: list[int]
    moved_back: bool


def faults_of(history: History) -> list[str]:
    """Everything that does not hold after a history."""
    found = list(history.problems)
    receipts = history.alone.receipts(UID, stream=LIVE, limit=None)
    repeated, condition = 0, _has_condition(history)
    for partition, log in history.logs.items():
        settled = [one for one in reversed(receipts) if one.partition == partition]
        steps = history.alone.offset_history(UID, partition, limit=10_000)
        expected = expected_copies(history, partition, log, steps, condition)
        copies = Counter(one.offset for _, one in stored_of(history, partition))
        found += _miscounted(partition, log, expected, copies, condition)
        found += _out_of_order(history, partition, expected)
        found += _chain_faults(history, partition, steps)
        found += [fault for one in settled for fault in _receipt_faults(partition, log, one)]
        repeated += 0 if expected.moved_back else repeats_looked_at(history, partition)
    told = sum(one.receipt.surplus for one in receipts)
    history.counts["repeated records looked at"] += repeated
    history.counts["surplus told"] += told
    found += _surplus_faults(history, repeated, told)
    found += _ledger_faults(history)
    return found


def stored_of(history: History, partition: Partition) -> Iterator[tuple[Queue, Stored]]:
    for queue in sorted(history.broker.queues):
        for one in history.broker.queues[queue]:
            if one.partition_id == partition.id:
                yield queue, one


def _has_condition(history: History) -> bool:
    return any(one.held for log in history.broker.queues.values() for one in log)


def expected_copies(
    history: History, partition: Partition, log: Log, steps: list[OffsetStep], condition: bool
) -> Expected:
    """From the ledger's own history of the partition: what was settled must be there once; what was settled again
    after an operator moved the offset back may be there once more; what was left out may have been delivered by an
    attempt that was given up, but only where an operator moved the offset."""
    covered = [0] * log.end
    moved_back = False
    moved = any(step.kind != "settled" for step in steps)
    for step in steps:
        before, after = _offset(step.before), _offset(step.after)
        if step.kind == "settled":
            for n in range(before, after):
                covered[n] += 1
        else:
            moved_back = moved_back or after < before
    dead = {letter.offset for letter in history.alone.dead_letters(UID, 10_000) if letter.partition == partition}
    plain = [log.entries[n].kind == PLAIN and n not in dead for n in range(log.end)]
    least = [int(bool(covered[n]) and plain[n]) for n in range(log.end)]
    left_out = int(moved or condition)
    most = [(covered[n] or left_out) if plain[n] else 0 for n in range(log.end)]
    return Expected(least, most, moved_back)


def _offset(position: object) -> int:
    return 0 if position is None else position.offset  # type: ignore[attr-defined]


def _miscounted(
    partition: Partition, log: Log, expected: Expected, copies: Counter[int], condition: bool
) -> Iterator[str]:
    for n in range(log.end):
        if copies[n] < expected.least[n]:
            yield f"{partition.key}:{n} is lost"
        elif copies[n] > expected.most[n] and not (condition and expected.most[n]):
            yield f"{partition.key}:{n} is there {copies[n]} times"


def _out_of_order(history: History, partition: Partition, expected: Expected) -> list[str]:
    """First copies of a partition's records ascend in each queue, unless an operator moved the offset back."""
    if expected.moved_back:
        return []
    last: dict[Queue, int] = {}
    seen: set[int] = set()
    found = []
    for queue, one in stored_of(history, partition):
        if one.offset in seen or one.held:
            continue
        seen.add(one.offset)
        if one.offset < last.get(queue, -1):
            found.append(f"{partition.key}:{one.offset} stands behind {last[queue]} in {queue}")
        last[queue] = one.offset
    return found


def _chain_faults(history: History, partition: Partition, steps: list[OffsetStep]) -> Iterator[str]:
    """Receipts join: each begins where the one before it ended, where an operator put it, or behind a gap told. What
    was never read, or is again as if it never was, begins anywhere."""
    gaps = {(told.gap.begin, told.gap.end) for told in history.alone.gaps(UID) if told.partition == partition}
    place: int | None = None
    for step in steps:
        before = _offset(step.before)
        if place is not None and before != place and (place, before) not in gaps:
            yield f"{partition.key}: {step.kind} goes on at {before}, the step before it ended at {place}"
        place = None if step.after is None else step.after.offset
    if (history.logs[partition].oldest if place is None else place) != history.logs[partition].end:
        yield f"{partition.key}: the last receipt ends at {place} of {history.logs[partition].end}"


def _receipt_faults(partition: Partition, log: Log, one: SettledRange) -> Iterator[str]:
    receipt, where = one.receipt, f"receipt {one.receipt.begin} to {one.receipt.end} of {partition.key}"
    for fault in receipt.identity_faults():
        yield f"{where}: {fault}"
    if receipt.reconstructed:
        return
    entries = log.entries[receipt.begin : receipt.end]
    absent = sum(1 for entry in entries if entry.kind == HOLE)
    rejected = sum(1 for entry in entries if entry.kind not in (HOLE, PLAIN))
    if (receipt.absent, receipt.rejected) != (absent, rejected):
        yield f"{where}: {receipt.absent} absent and {receipt.rejected} rejected, not {absent} and {rejected}"
    if receipt.end - receipt.begin != receipt.read + receipt.absent:
        yield f"{where}: read {receipt.read} and absent {receipt.absent} do not make its length"
    yield from _digest_faults(where, partition, log, receipt)


def _digest_faults(where: str, partition: Partition, log: Log, receipt: Receipt) -> Iterator[str]:
    readable = log.readable(receipt.begin, receipt.end)
    plain = [n for n in readable if log.entries[n].kind == PLAIN]
    if _digest(partition, log, readable) != receipt.digest_read:
        yield f"{where}: its digest of what was read is not that of the source"
    if _digest(partition, log, plain) != receipt.digest_sent:
        yield f"{where}: its digest of what was sent is not that of the source"


def _digest(partition: Partition, log: Log, offsets: list[int]) -> str:
    digest = RecordDigest(Lineage(UID, LIVE, partition.id, 0))
    digest.add(log.records(offsets))
    return digest.text()


def repeats_looked_at(history: History, partition: Partition) -> int:
    """Copies beyond the first that stand before the place up to which the connector has looked or written last. Those
    behind it came later; the next range tells of them."""
    floors = history.database.floors()
    seen: set[int] = set()
    repeated = 0
    for queue, one in stored_of(history, partition):
        if one.offset in seen and one.message.queue_offset < floors.get((partition.id, str(queue)), 0):
            repeated += 1
        seen.add(one.offset)
    return repeated


def _surplus_faults(history: History, repeated: int, told: int) -> Iterator[str]:
    if not _has_condition(history) and told:
        yield f"{told} surplus told, and nothing was held by the broker"
    if told != repeated and not history.database.moved():
        yield f"{repeated} repeated records were looked at, {told} are told as surplus"


def _ledger_faults(history: History) -> Iterator[str]:
    for item in history.alone.open_ranges(UID, LIVE):
        yield f"range {item.id} of {item.range.partition.key} is open"
    letters = Counter(
        (letter.partition, letter.offset, letter.stage) for letter in history.alone.dead_letters(UID, 10_000)
    )
    for (partition, offset, _), count in letters.items():
        if count > 1 or history.logs[partition].entries[offset].kind in (PLAIN, HOLE):
            yield f"{partition.key}:{offset} is {count} times a dead letter"


def floors_above_unsettled(history: History) -> list[str]:
    """Called whenever offsets or floors moved. Where an operator moved an offset back, repeated records stand below the
    floors on purpose."""
    floors, committed, moved = history.database.floors(), history.database.committed(), history.database.moved()
    found = []
    for queue, log in history.broker.queues.items():
        for one in log:
            if not one.partition_id or one.partition_id in moved or one.offset < committed.get(one.partition_id, 0):
                continue
            floor, place = floors.get((one.partition_id, str(queue))), one.message.queue_offset
            if floor is None or floor > place:
                found.append(f"{one.message.body[:9]!r} stands unsettled at {place} of {queue}, its floor is {floor}")
    return found
