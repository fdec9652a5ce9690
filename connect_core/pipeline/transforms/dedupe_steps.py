"""The step that leaves out duplicates within a range: how a document writes it. Pure, light.

dedupe: [id]
dedupe: {by: [id, who.name], keep: first}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connect_core.pipeline.transforms.paths import Path, found
from connect_core.pipeline.transforms.row_step import RowStep, paths
from connect_core.rows.types import Type


@dataclass(frozen=True)
class DedupeRows(RowStep):
    """Of the rows of a range that have the same in all of these fields the first goes on."""

    on_images = "waits"
    by: tuple[Path, ...]

    def after(self, rows: Type) -> Type:
        for path in self.by:
            found(rows, path)
        return rows

    def written_out(self) -> Sequence[Path]:
        return self.by


def dedupe_step(of: object) -> DedupeRows:
    given = of if isinstance(of, Mapping) else {"by": of}
    if set(given) - {"by", "keep"} or "by" not in given:
        raise ValueError("needs the fields that make a duplicate, as [id] or {by: [id], keep: first}")
    if given.get("keep", "first") == "last":
        raise ValueError(
            "keep: last would need to know where a range ends, and a range that is tried again may end elsewhere; "
            "keep: first is what there is, or a target that keeps the newest of a key"
        )
    if given.get("keep", "first") != "first":
        raise ValueError(f"keep: {given['keep']!r} is not first")
    return DedupeRows(paths(given["by"], "[id]"))
