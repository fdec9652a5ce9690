"""What a task says when only a person can let it go on: what happened, where, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.config.compatibility import ANOTHER_WAY, NO_LASTING_OFFSETS
from connect_core.errors import ConfigError, OffsetGone, Retriable
from connect_core.ledger import TargetWriter
from connect_core.replication.driver.lost_ranges import LostRange
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Gap


def target_taken(other: TargetWriter, where: str) -> ConfigError:
    who, advice = f"connector {other.connector}", f"delete connector {other.connector} when it is no longer used"
    if other.stream != LIVE:
        who, advice = f"{other.stream} of {who}", f"waybill backfills cancel {other.connector} {other.stream}"
    return ConfigError(
        f"{who} writes this target, which can have one writer only",
        where=where,
        next_step=f"Choose another one, or {advice}",
    )


def no_lasting_offsets(where: str) -> ConfigError:
    return ConfigError(f"The sink {NO_LASTING_OFFSETS}", where=where, next_step=ANOTHER_WAY)


def closed_in_vain(where: str) -> Retriable:
    return Retriable(
        "Range after range was closed without a record, and nothing is moved",
        where=where,
        next_step="What waits in the source is still there. The sink never says how far it has searched the"
        " target: this is a defect; report it, with the receipts of this run",
    )


def targets_in_vain(where: str) -> Retriable:
    return Retriable(
        "A range ends before the same record, however often it is planned",
        where=where,
        next_step="The record is still in the source. The sink does not take the target that it is asked for, or the"
        " document not the fields: this is a defect; report it",
    )


def records_gone(command: str, where: str, partition: Partition, gaps: Sequence[Gap], begin: int) -> OffsetGone:
    told = "; ".join(
        f"{gap.reason}: from {gap.begin} to {gap.end if gap.end is not None else 'an unknown end'}" for gap in gaps
    )
    again = "; what is there from that place on counts as new, also what was delivered before"
    return OffsetGone(
        f"Records are gone ({told})",
        where=f"{where}, partition {partition.key}",
        next_step=f"Find out what happened to them. To continue at {begin} and record the gap:"
        f" {command} --accept-gaps{again if begin < min(gap.begin for gap in gaps) else ''};"
        " to do so every time, set errors.on_data_loss: skip",
    )


def bytes_unplaced(command: str, where: str, loss: LostRange) -> OffsetGone:
    wanted = loss.item.range
    targets = ", ".join(floor.target for floor in loss.item.floors)
    return OffsetGone(
        f"The source has lost records from {wanted.begin} on, and the last {loss.unplaced()} bytes of {targets}, which"
        " no receipt covers, may hold some of them",
        where=f"{where}, partition {wanted.partition.key}",
        next_step=f"Nothing was changed. Look at these bytes; then continue at {loss.seen.begin} with {command}"
        " --accept-gaps, which moves them to a file beside the target",
    )
