"""What a transaction leaves in the target beside its rows, and what follows from it (delivery rules 6, 7, 20). Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

from connect_core.errors import Fenced, TargetChanged
from connect_core.sdk.kits import progress
from connect_core.sdk.kits.progress import ADDED, TargetProgress
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import LIVE, Attempt, OpenRange, Range


@dataclass(frozen=True)
class Marker(TargetProgress):
    """`owner` is the attempt that may go on (`Attempt.id`)."""

    owner: str = field(kw_only=True)

    def encode(self) -> str:
        return json.dumps({"version": 1, "owner": self.owner, **asdict(self)})

    @classmethod
    def decode(cls, text: str, where: str) -> Marker:
        """Raises TargetChanged for anything that `encode` has not made."""
        try:
            given = json.loads(text)
            return cls(**{name: (ADDED | given)[name] for name in cls.__dataclass_fields__})
        except (ValueError, TypeError, KeyError):
            raise TargetChanged(
                "This is not the marker of a connector",
                where=where,
                next_step="Find out who writes to the table of markers",
            ) from None

    def owned_by(self, attempt: Attempt) -> Marker:
        return replace(self, owner=attempt.id)


def name_of(uid: str, stream: str, partition: Partition) -> str:
    """Of a partition's marker. Backfills and replays have one of their own."""
    return f"{uid}/{partition.id}" + ("" if stream == LIVE else f"/{stream}")


def found(marker: Marker | None, wanted: Range, settled: int, target: str) -> ScanResult:
    """What of a range is in the target."""
    return ScanResult(
        scanned={target: marker.count if marker is not None else 0},
        complete=True,
        prefix=progress.covered(marker, wanted, settled),
        possible_duplicates=progress.elsewhere(marker, wanted, settled),
    )


def taken_over(marker: Marker | None, wanted: Range, attempt: Attempt) -> Marker:
    """The same marker, owned by this attempt."""
    first = Marker(wanted.incarnation, wanted.begin, wanted.begin, origin=wanted.origin, owner=attempt.id)
    return (marker or first).owned_by(attempt)


def begun(marker: Marker | None, item: OpenRange, settled: int, attempt: Attempt) -> Marker:
    """The marker with which an attempt begins to write a range. Raises TargetChanged where the target has lost rows
    that were settled, or holds rows of which the ledger knows nothing and for which nobody has looked; Fenced where
    another attempt has begun since this one looked: it may have written."""
    wanted = item.range
    check_kept(marker, wanted, settled)
    if item.found is not None:
        check_owner(marker, attempt, wanted)
    if marker is not None and marker.count > settled and not item.inherited and item.found is None:
        raise TargetChanged(
            f"The target holds {marker.count - settled:,} rows more than the ledger knows of: the ledger was restored "
            "from a backup, or another program writes under this connector's id",
            where=_where(wanted),
            next_step="After a restore run `waybill db restored`: the next run then looks before it writes",
        )
    return Marker(owner=attempt.id, **asdict(progress.begun(marker, wanted, settled)))


def check_kept(marker: Marker | None, wanted: Range, settled: int) -> None:
    """Raises TargetChanged where the target has lost rows that were settled."""
    count = marker.count if marker is not None else 0
    if count < settled:
        raise TargetChanged(
            f"The target holds {count:,} rows of this partition, and {settled:,} were settled: it was restored from a "
            "backup, emptied, or is another one",
            where=_where(wanted),
            next_step="Restore the target from a backup of its own. Or delete the connector and apply it again: under "
            "its new id it delivers whatever the source still has",
        )


def check_owner(marker: Marker | None, attempt: Attempt, wanted: Range) -> None:
    """Raises Fenced when another attempt has taken over."""
    if marker is None or marker.owner != attempt.id:
        raise Fenced(
            "Another attempt has taken over in the target",
            where=_where(wanted),
            next_step="Nothing more is written here; the newer attempt continues",
        )


def _where(wanted: Range) -> str:
    return f"partition {wanted.partition.key}, stream {wanted.stream}"
