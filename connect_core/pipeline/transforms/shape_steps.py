"""Steps that put fields elsewhere: how a document writes them, and the shape of rows behind each. Pure, light."""

from __future__ import annotations

from dataclasses import dataclass

from connect_core.pipeline.transforms.paths import Path, found, path_of, written
from connect_core.pipeline.transforms.row_step import RowStep, mapping, with_field
from connect_core.rows.types import MAX_DEPTH, Type


@dataclass(frozen=True)
class HoistRows(RowStep):
    name: str

    def after(self, rows: Type) -> Type:
        if _depth(rows) > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} lists and structs in each other")
        return Type("struct", fields=((self.name, rows),))


@dataclass(frozen=True)
class ExtractRows(RowStep):
    """A row without the object is unfit: a record has fields."""

    path: Path

    def after(self, rows: Type) -> Type:
        one = found(rows, self.path)
        if one.kind != "struct":
            name = written(self.path)
            raise ValueError(f"{name} is {one}, and has no fields; to keep it alone: keep, or encode: {{format: text}}")
        return one


@dataclass(frozen=True)
class CopyFields(RowStep):
    """Where each field comes to; all are those before it."""

    places: tuple[tuple[Path, Path], ...]

    def after(self, rows: Type) -> Type:
        behind = rows
        for path, place in self.places:
            behind = with_field(behind, place, found(rows, path))
        return behind


@dataclass(frozen=True)
class ExplodeRows(RowStep):
    """A row for each item of a list, in its order; none for a list that is empty or missing."""

    on_images = "cannot"
    path: Path

    def after(self, rows: Type) -> Type:
        one = found(rows, self.path)
        if one.item is None:
            raise ValueError(f"{written(self.path)} is {one}, and no list")
        return with_field(rows, self.path, one.item)


def _depth(one: Type) -> int:
    inner = [of for _, of in one.fields] + ([one.item] if one.item else [])
    return 1 + max(map(_depth, inner), default=0)


def hoist_step(of: object) -> HoistRows:
    path = path_of(of)
    if len(path) > 1:
        raise ValueError(f"{written(path)} is a path: hoist takes one name")
    return HoistRows(path[0])


def explode_step(of: object) -> ExplodeRows:
    return ExplodeRows(path_of(of))


def extract_step(of: object) -> ExtractRows:
    return ExtractRows(path_of(of))


def copy_step(of: object) -> CopyFields:
    places = tuple((path, path_of(place)) for path, place in mapping(of, "{user.name: name}"))
    targets = [place for _, place in places]
    if twice := next((one for one in targets if targets.count(one) > 1), None):
        raise ValueError(f"two fields come to {written(twice)}")
    return CopyFields(places)
