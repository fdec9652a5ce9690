"""What a transaction leaves in the target beside its rows, and what follows from it (delivery rules 6, 7, 20). Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from connect_core.errors import Fenced, RowsLost, TargetChanged
from connect_core.sdk.kits import progress, refused_runs
from connect_core.sdk.kits.identity import TargetIdentity
from connect_core.sdk.kits.progress import ADDED, TargetProgress
from connect_core.sdk.kits.refused_runs import MAX_RUNS, Runs
from connect_core.sdk.scan import NO_PREFIX, Prefix, ScanResult
from connect_core.sdk.values import LIVE, ORIGIN, Attempt, Json, OpenRange, Position, Range

VERSION = 2
_ADDED: Json = {"beside": {}, "target": ""}
"""What a marker lacks where it says nothing, or was written before it could."""
_LISTS_NOTHING = 1
"""The version whose markers do not say what was refused, nor of which target they are."""


@dataclass(frozen=True)
class Marker(TargetProgress):
    """`owner` is the attempt that may go on (`Attempt.id`). `refused` are stretches of offsets whose records the target
    refused: they are not in it, though they lie before `position`. From `refused_since` on it has all of them.
    `target` is what rows went to, as its sink calls it; `rows_in` and `stands_in` are what `TargetIdentity` says of the
    rows and of this marker; empty: unknown. `beside` is what it says of the rows of further targets, by their names."""

    owner: str = field(kw_only=True)
    refused: Runs = ()
    refused_since: int = 0
    target: str = ""
    rows_in: str = ""
    stands_in: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> str:
        """Without what a former version did not know, where that says nothing."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields = {name: value for name, value in fields.items() if value or name not in _ADDED}
        return json.dumps({"version": VERSION, "owner": self.owner, **fields})

    @classmethod
    def decode(cls, text: str, where: str) -> Marker:
        """Raises TargetChanged for anything that `encode` has not made."""
        try:
            given = {**_ADDED, **_stored(json.loads(text), where)}
            fields = {name: given[name] for name in cls.__dataclass_fields__}
            refused = tuple((int(begin), int(end)) for begin, end in given["refused"])
            beside = {str(name): str(rows) for name, rows in dict(given["beside"]).items()}
            return cls(**{**fields, "refused": refused, "beside": beside})
        except (ValueError, TypeError, KeyError):
            raise TargetChanged(
                "This is not the marker of a connector",
                where=where,
                next_step="Find out who writes to the table of markers",
            ) from None

    def owned_by(self, attempt: Attempt) -> Marker:
        return replace(self, owner=attempt.id)

    def is_of(self, target: str) -> bool:
        """A former version did not say of which one it is."""
        return self.target in ("", target)

    def kept_in(self, target: str, here: TargetIdentity | None) -> Self:
        if here is None:
            return replace(self, target=target)
        known = {name: one.rows for name, one in here.beside.items() if one.has_rows or name in self.beside}
        return replace(self, target=target, rows_in=here.rows, stands_in=here.markers, beside=known)

    def written(self, records: int, first: int, end: int) -> Self:
        """After so many records more, one behind the other, with offsets in [first, end). Some may have been refused
        before: then they stand before `position`, or are listed behind it."""
        after = self.advanced(records, max(end, self.position))
        return replace(after, refused=refused_runs.without(self.refused, first, end))

    def refusing(self, offset: int, begin: int) -> Self:
        """After a range that begins at `begin` has come to a record that was refused. Of stretches that are settled the
        oldest are forgotten when there are too many."""
        runs = refused_runs.with_refused(self.refused, offset, self.position)
        surplus = min(len(runs) - MAX_RUNS, len(runs) - len(refused_runs.behind(runs, begin)))
        if surplus <= 0:
            return replace(self, refused=runs)
        since = max(self.refused_since, runs[surplus - 1][1])
        return replace(self, refused=runs[surplus:], refused_since=since)

    def refused_from(self, begin: int) -> int:
        """How many stretches a range that begins there has to keep."""
        return len(refused_runs.behind(self.refused, begin))

    def refused_before(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Boolean mask: which of these records the target has refused, and has taken later ones since."""
        return refused_runs.mask(refused_runs.within(self.refused, 0, self.position), offsets)


def _stored(given: Json, where: str) -> Json:
    version = given["version"]
    if version == _LISTS_NOTHING:
        return ADDED | given | {"refused": (), "refused_since": given["position"], "rows_in": "", "stands_in": ""}
    if version != VERSION:
        raise TargetChanged(
            f"A newer version of Waybill has written this marker ({version}; this one reads up to {VERSION})",
            where=where,
            next_step="Go on with the newer version",
        )
    return given


def names(text: str, target: str, beside: str = "") -> bool:
    """Whether a stored marker is of this target, or of one `beside` its own."""
    try:
        given = json.loads(text)
        return beside in (given.get("beside") or ()) if beside else given.get("target", "") in ("", target)
    except (ValueError, AttributeError):
        return False


def name_of(uid: str, stream: str, partition_id: str) -> str:
    """Of a partition's marker. Backfills and replays have one of their own."""
    return f"{uid}/{partition_id}" + ("" if stream == LIVE else f"/{stream}")


def name_for(name: str, target: str) -> str:
    """Of the marker in a later target, where the first one has the marker called `name`: the document was changed, and
    may be changed back."""
    return f"{name}@{hashlib.blake2b(target.encode(), digest_size=8).hexdigest()}"


def found(marker: Marker | None, wanted: Range, settled: int, target: str) -> ScanResult:
    """What of a range is in the target."""
    return ScanResult(
        scanned={target: marker.count if marker is not None else 0},
        complete=True,
        prefix=_covered(marker, wanted, settled),
        possible_duplicates=progress.elsewhere(marker, wanted, settled),
    )


def _covered(marker: Marker | None, wanted: Range, settled: int) -> Prefix:
    there = progress.covered(marker, wanted, settled)
    if marker is None or there == NO_PREFIX:
        return there
    return there._replace(refused=refused_runs.within(marker.refused, wanted.begin, there.through))


def first(position: Position, attempt: Attempt) -> Marker:
    """Of a partition that goes on at a position, and of which the target has nothing."""
    at = position.offset
    origin = str(position.evidence.get(ORIGIN, ""))
    return Marker(position.incarnation, at, at, origin=origin, owner=attempt.id, refused_since=at)


def taken_over(marker: Marker | None, wanted: Range, attempt: Attempt) -> Marker:
    """The same marker, owned by this attempt."""
    begins = Position(wanted.incarnation, wanted.begin, wanted.evidence)
    return (marker or first(begins, attempt)).owned_by(attempt)


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
    kept = marker if marker is not None and progress.adjoins(marker, wanted, settled) else None
    return Marker(
        owner=attempt.id,
        refused=kept.refused if kept is not None else (),
        refused_since=kept.refused_since if kept is not None else wanted.begin,
        **asdict(progress.begun(marker, wanted, settled)),
    )


def check_kept(marker: Marker | None, wanted: Range, settled: int) -> None:
    """Raises TargetChanged where the target has lost rows that were settled."""
    check_settled(marker, settled, _where(wanted))


def check_settled(marker: Marker | None, settled: int, where: str) -> None:
    """Raises RowsLost where so many rows were settled, and the target has fewer."""
    count = marker.count if marker is not None else 0
    if count >= settled:
        return
    end = f", up to offset {marker.position:,}," if marker else ""
    told = f"The target's marker tells of {count:,} rows of this partition{end}"
    raise _lost(f"{told} and {settled:,} were settled", where)


def check_left(marker: Marker | None, where: str) -> None:
    """Raises RowsLost where there is no marker, and a run has left one before there were rows."""
    if marker is None:
        raise _lost("The target does not have the marker of this partition, which a run has left there", where)


def _lost(what: str, where: str) -> RowsLost:
    """The advice is the same for each partition: it is said once of all of them."""
    return RowsLost(
        what,
        where=where,
        next_step="A server that lagged took over, the target was restored from a backup or emptied, or the document"
        " names another one, or another place of the markers: correct the document, or bring back what the target has"
        " lost. Or deliver it again: export the offsets (waybill offsets export), delete the connector and apply it,"
        " import them (waybill offsets import), set each partition of which this is said to where what the target lacks"
        " begins (waybill offsets set), and run it",
    )


def check_target(marker: Marker | None, here: TargetIdentity | None, wanted: Range, target: str) -> None:
    """Raises TargetChanged where another target has the name of the one that the rows went to, or of one beside it.
    Where the markers stand elsewhere, too, both were restored together."""
    if marker is None or here is None:
        return
    for name, one in here.beside.items():
        check_target(replace(marker, rows_in=marker.beside.get(name, "")), one, wanted, name)
    if not marker.rows_in or here.accepted:
        return
    if marker.rows_in == here.rows or marker.stands_in != here.markers:
        return
    raise TargetChanged(
        f"The target is another one of its name: rows went to {marker.rows_in}, and it is {here.rows} now, while its"
        " markers stayed where they were",
        where=f"{target}, {_where(wanted)}",
        next_step=f"Give the former one its name back. Or, if this one has all its rows, {here.accepting}. Or delete"
        " the connector and apply it again: under its new id it delivers whatever the source still has",
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
