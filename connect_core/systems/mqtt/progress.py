"""How far a partition has come in the target: what the retained message `PREFIX/UID/PARTITION` says, and what follows
from it (delivery rule 19). Pure.

A writer sends it before the first record of a range that an earlier attempt left, behind each group of acknowledged
publishes, and when it is flushed. So an attempt that dies has sent at most one group behind the `position` that is
kept: those records may be there, and are sent again. How often each of them may be there is kept as well, so that
attempts that die one after the other are all counted.

What a sink of rows keeps in a transaction follows from the same rules: `sdk.kits.progress`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Self

from connect_core.errors import Retriable, TargetChanged
from connect_core.sdk.kits import progress
from connect_core.sdk.kits.progress import ADDED, TargetProgress
from connect_core.sdk.scan import Prefix
from connect_core.sdk.values import LIVE, Json, OpenRange, Range


@dataclass(frozen=True)
class MqttProgress(TargetProgress):
    """`unsure` are the numbers of records behind `position` that attempts now dead may have sent, one for each of
    them; `group` is the same of the attempt that wrote this. `repeats` counts what may have been sent more than once
    since the last settle. `epoch` is that of the lease it was written under, for people. `left_out` are stretches
    [begin, end) of offsets before `position`, in order, whose records had expired when their turn came: since the last
    settle, as far as that is known here."""

    unsure: tuple[int, ...] = ()
    repeats: int = 0
    group: int = 0
    epoch: int = 0
    left_out: tuple[tuple[int, int], ...] = ()

    def encode(self) -> bytes:
        fields = asdict(self)
        stored = {name: fields[name] for name in _STORED}
        return json.dumps({"version": 1, **stored} | ({_LEFT_OUT: self.left_out} if self.left_out else {})).encode()

    @classmethod
    def decode(cls, payload: bytes, topic: str) -> MqttProgress:
        """Raises TargetChanged for anything that `encode` has not made."""
        try:
            given = {"origin": "", **ADDED, **json.loads(payload)}
            fields = {name: given[name] for name in _STORED}
            left_out = tuple((int(begin), int(end)) for begin, end in given.get(_LEFT_OUT, ()))
            return cls(**{**fields, "unsure": tuple(map(int, fields["unsure"]))}, left_out=left_out)
        except (ValueError, TypeError, KeyError):
            raise TargetChanged(
                "The retained message there is not the progress of a connector",
                where=topic,
                next_step="Find out who publishes to this topic. Or clear it (an empty retained message): what an "
                "attempt left open is then delivered again, and counted",
            ) from None

    def advanced(self, records: int, position: int) -> Self:
        doubtful = sum(min(one, records) for one in self.unsure)
        left = tuple(one - records for one in self.unsure if one > records)
        return replace(super().advanced(records, position), unsure=left, repeats=self.repeats + doubtful)


_STORED = (
    *("incarnation", "since", "position", "count", "unsure", "repeats", "group", "epoch"),
    *("origin", "begin", "settled", "highest", "elsewhere"),
)
"""In this order."""
_LEFT_OUT = "left_out"
"""Stored where there is something."""


def topic_of(prefix: str, uid: str, stream: str, partition_id: str) -> str:
    """Backfills and replays have one of their own."""
    return f"{prefix}/{uid}/{partition_id}" + ("" if stream == LIVE else f"/{stream}")


def covered(kept: MqttProgress | None, wanted: Range, settled: int, group: int) -> Prefix:
    """What of the range is in the target, where an attempt that sent groups of `group` has left it. `settled` is the
    count of the ledger. Of a progress that is lost, or older than what was settled, nothing follows."""
    if kept is None or kept.count < settled:
        return Prefix(wanted.begin, 0, wanted.max_records)
    there = progress.covered(kept, wanted, settled)
    through = max(there.through, wanted.begin)
    without = tuple((max(begin, wanted.begin), end) for begin, end in kept.left_out if wanted.begin < end <= through)
    return Prefix(through, there.records, max((*kept.unsure, kept.group, group)), without)


def repeated(kept: MqttProgress | None, wanted: Range, settled: int) -> int:
    """How many records may have been delivered twice since the last settle, by what is kept."""
    if kept is None or kept.count <= settled:
        return 0
    return kept.repeats + progress.elsewhere(kept, wanted, settled)


def begun(
    kept: MqttProgress | None, item: OpenRange, settled: int, group: int, epoch: int, left: tuple[int, ...] = ()
) -> MqttProgress:
    """Where a writer of this range begins. `left` is what was unsure when the ledger settled last, for a progress that
    is lost. Raises what `_check_seen` raises."""
    _check_seen(kept, item, settled)
    wanted, lost = item.range, kept is None or kept.count < settled
    if not item.inherited and item.found is None:
        unsure = left if kept is None or lost else kept.unsure
    elif kept is None or lost:
        unsure = (*left, wanted.max_records)
    else:
        unsure = (*kept.unsure, max(kept.group, group))
    return MqttProgress(
        **asdict(progress.begun(kept, wanted, settled)),
        unsure=tuple(one for one in unsure if one > 0),
        repeats=kept.repeats if kept is not None and kept.count > settled else 0,
        group=group,
        epoch=epoch,
        left_out=covered(kept, wanted, settled, group).without,
    )


def covered_by_ledger(item: OpenRange, group: int) -> Prefix:
    """Of a target that keeps nothing: one more attempt has left the range, and may have sent a group of it."""
    before = item.found.prefix.unsure if item.found is not None else 0
    return Prefix(item.range.begin, 0, before + group)


def begun_by_ledger(item: OpenRange, settled: int, group: int, evidence: Json) -> MqttProgress:
    """Where a writer of this range begins in such a target. `evidence` is that of its floor."""
    left, wanted = tuple(evidence.get("unsure", ())), item.range
    attempts = covered_by_ledger(item, 0).unsure // group
    unsure = (*left, *(group,) * max(attempts, int(item.inherited)))
    return MqttProgress(wanted.incarnation, wanted.begin, wanted.begin, settled, unsure=unsure, group=group)


def _check_seen(kept: MqttProgress | None, item: OpenRange, settled: int) -> None:
    """Raises Retriable where `scan` has not seen what is kept, which came too late for it: what it stands for would be
    sent again, and nobody has counted it. Raises TargetChanged where the target holds records that the ledger does not
    know of, and nobody has looked for them."""
    seen = settled if item.found is None else max(item.found.scanned.values(), default=settled)
    if kept is None or kept.count <= seen:
        return
    if item.found is not None:
        raise Retriable(
            f"The broker sent its retained progress too late: {kept.count - seen} records are there that were not seen",
            where=f"partition {item.range.partition.key}, stream {item.range.stream}",
            next_step="Nothing was sent; the next attempt checks again. If it comes again and again, find out why the "
            "broker takes seconds to send a retained message",
        )
    if not item.inherited:
        raise _unknown_records(item.range, kept.count - settled)


def _unknown_records(wanted: Range, count: int) -> TargetChanged:
    return TargetChanged(
        f"The target holds {count} records more than the ledger knows of: the ledger was restored from a backup, or "
        "another program writes under this connector's id",
        where=f"partition {wanted.partition.key}, stream {wanted.stream}",
        next_step="After a restore run `waybill db restored`: the next run then looks before it writes",
    )
