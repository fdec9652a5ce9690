"""What the kits have in common: one target that all lanes may write to side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from connect_core.sdk.sink import Targets
from connect_core.sdk.values import Floor, Json, OpenRange, Range


class OneTarget:
    """`target` names what is written, for receipts and for people: a table, a file, an address without its password.
    Whoever changes it writes somewhere else: ranges that are open then are finished where they were begun."""

    scan_tells_records = False

    def __init__(self, target: str) -> None:
        self.target = target

    def prepare(self) -> None:
        """Driver, once a run: makes what is missing. Raises ConfigError when the target can never take anything, and
        Unreachable when it does not answer."""

    def target_leases(self, task: int) -> tuple[str, ...]:
        return ()

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        return ()

    def reaches(self, target: Json, name: str) -> bool:
        return bool(target["target"] == name)

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        self.prepare()
        return Targets({"target": self.target})

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """The position of a floor is the number of rows of the partition that are settled."""
        standing = tuple(floor for floor in known if floor.target == self.target)
        return standing or (Floor(wanted.partition.id, self.target, 0, ahead=restored),)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        """Rows that the target can never take: (row, error class, message without anything of the record)."""
        return []


def settled(item: OpenRange, target: str) -> int:
    """How many rows of a range's partition the ledger knows to be in the target."""
    return next((floor.position for floor in item.floors if floor.target == target), 0)


def spans(target: str, before: int, now: int) -> dict[str, list[list[int]]]:
    """`Delivered.where` of a target in which rows have no place: which of the partition's rows they are."""
    return {target: [[before, now]]} if now > before else {}
