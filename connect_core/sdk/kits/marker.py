"""What a transaction leaves in the target beside its rows, and what follows from it (delivery rules 6, 7, 19). Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from connect_core.errors import Fenced, TargetChanged
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import NO_PREFIX, Prefix, ScanResult
from connect_core.sdk.values import LIVE, Attempt, OpenRange, Range


@dataclass(frozen=True)
class Marker:
    """Every record of `incarnation` with an offset in [since, position) is in the target, but for those that a receipt
    says are not; `count` rows of the partition in all. `owner` is the attempt that may go on (`Attempt.id`); `origin`
    names what was read as this incarnation (`sdk.values.ORIGIN`). The range that was begun last began with `settled`
    rows settled, and at `begin`, or the first one did that began with so many: the others stand behind that. `highest`
    is how far the partition had come before: further than `position` where a person has set the offset back.

    Rows are told by `count`, not by position alone: positions go back when a person sets them back, and begin anew
    with an incarnation. The count of the ledger (a floor's position) and this one differ by what is there and not
    settled.
    """

    owner: str
    incarnation: int
    since: int
    position: int
    count: int = 0
    origin: str = ""
    begin: int = 0
    settled: int = 0
    highest: int = 0

    def encode(self) -> str:
        return json.dumps({"version": 1, **asdict(self)})

    @classmethod
    def decode(cls, text: str, where: str) -> Marker:
        """Raises TargetChanged for anything that `encode` has not made."""
        try:
            given = json.loads(text)
            former = {"begin": 0, "settled": 0, "highest": 0}  # missing where a former version wrote it
            return cls(**{name: (former | given)[name] for name in cls.__dataclass_fields__})
        except (ValueError, TypeError, KeyError):
            raise TargetChanged(
                "This is not the marker of a connector",
                where=where,
                next_step="Find out who writes to the table of markers",
            ) from None

    def advanced(self, rows: int, position: int) -> Marker:
        """After so many rows more, which end at `position`."""
        return replace(self, position=position, count=self.count + rows)

    def owned_by(self, attempt: Attempt) -> Marker:
        return replace(self, owner=attempt.id)


def name_of(uid: str, stream: str, partition: Partition) -> str:
    """Of a partition's marker. Backfills and replays have one of their own."""
    return f"{uid}/{partition.id}" + ("" if stream == LIVE else f"/{stream}")


def there(marker: Marker | None, wanted: Range, settled: int) -> Prefix:
    """What of a range is in the target behind the `settled` rows."""
    if marker is None or marker.count <= settled or not _reaches(marker, wanted, settled):
        return NO_PREFIX
    return Prefix(max(marker.position, wanted.begin), marker.count - settled)


def elsewhere(marker: Marker | None, wanted: Range, settled: int) -> int:
    """How many rows that are not settled are in the target and were read from another place than this range: a person
    has set the offset since, or the ledger was restored and counts the files of a log otherwise."""
    if marker is None or marker.count <= settled or _reaches(marker, wanted, settled):
        return 0
    return marker.count - settled


def found(marker: Marker | None, wanted: Range, settled: int, target: str) -> ScanResult:
    """What of a range is in the target."""
    return ScanResult(
        scanned={target: marker.count if marker is not None else 0},
        complete=True,
        prefix=there(marker, wanted, settled),
        possible_duplicates=elsewhere(marker, wanted, settled),
    )


def taken_over(marker: Marker | None, wanted: Range, attempt: Attempt) -> Marker:
    """The same marker, owned by this attempt."""
    new = Marker(attempt.id, wanted.incarnation, wanted.begin, wanted.begin, origin=wanted.origin)
    return (marker or new).owned_by(attempt)


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
    seen = there(marker, wanted, settled)
    return Marker(
        owner=attempt.id,
        incarnation=wanted.incarnation,
        since=marker.since if marker is not None and _adjoins(marker, wanted, settled) else wanted.begin,
        position=max(seen.through, wanted.begin),
        count=marker.count if marker is not None else settled,
        origin=wanted.origin,
        begin=_first_begin(marker, wanted, settled),
        settled=settled,
        highest=max(marker.highest, marker.position) if marker is not None and _is_of(marker, wanted) else 0,
    )


def _first_begin(marker: Marker | None, wanted: Range, settled: int) -> int:
    """Where the ranges begin that have settled no row since: a ledger may be restored to any of them."""
    if marker is None or not _is_of(marker, wanted) or not marker.count == marker.settled == settled:
        return wanted.begin
    return min(marker.begin, wanted.begin)


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


def _reaches(marker: Marker, wanted: Range, settled: int) -> bool:
    """Whether what was written without a hole begins at or before the range. What is not settled does not where a
    person has set the offset back: then all between was settled, and is wanted again. Nor where a ledger that was
    restored has forgotten that: what was written before it stands behind the hole."""
    set_back = wanted.begin < marker.begin and settled >= marker.settled
    forgotten = marker.position < marker.highest and settled < marker.settled
    return _is_of(marker, wanted) and not set_back and not forgotten and marker.since <= wanted.begin


def _is_of(marker: Marker, wanted: Range) -> bool:
    """Whether both count the same records by the same positions."""
    other = marker.origin and wanted.origin and marker.origin != wanted.origin
    return not other and marker.incarnation == wanted.incarnation


def _adjoins(marker: Marker, wanted: Range, settled: int) -> bool:
    """Whether the range goes on behind what was written: not where a person has set the offset back."""
    return _reaches(marker, wanted, settled) and (marker.count > settled or marker.position <= wanted.begin)


def _where(wanted: Range) -> str:
    return f"partition {wanted.partition.key}, stream {wanted.stream}"
