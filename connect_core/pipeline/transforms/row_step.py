"""What every step is, and how steps read what a document says of them. Pure, light: documents are checked by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

from connect_core.pipeline.transforms.paths import Path, changed, found, path_of, written
from connect_core.rows.types import Type
from connect_core.sdk.templates import Reference, Template, template

Constant: TypeAlias = bool | int | float | str
TEXT = Type("text")
_INT64 = 1 << 63


class RowStep:
    """One step. Made by `step_of`; `running.run` has rows go through it."""

    on_images: ClassVar[Literal["works", "waits", "cannot"]] = "works"
    """Of changes, on rows as they were before: whether it changes their fields as it does those of rows as they are,
    chooses records or works on them alone, or makes other rows of rows."""

    def after(self, rows: Type) -> Type:
        """The shape of rows behind it. Raises ValueError where it cannot work on rows of this shape."""
        raise NotImplementedError

    def references(self) -> Mapping[str, Reference]:
        """What its condition or templates name, by text. Whether records have a topic, headers or a file depends on
        the source: `after` asks for fields alone."""
        return {}

    def written_out(self) -> Sequence[Path]:
        """The fields of which it makes texts, beside those in `references`."""
        return ()


def with_field(rows: Type, path: Path, one: Type) -> Type:
    """The field is replaced in its place, or comes last of its struct."""
    *above, name = path
    parent = found(rows, tuple(above))
    if parent.kind != "struct":
        raise ValueError(f"no field {written(path)}: {written(tuple(above))} is {parent}, and has no fields")
    if parent.field(name) is not None:
        return changed(rows, path, lambda field: [(name, one)])
    wider = Type("struct", fields=(*parent.fields, (name, one)))
    return changed(rows, tuple(above), lambda field: [(field[0], wider)]) if above else wider


def constant_type(value: Constant | Template) -> Type:
    if isinstance(value, bool):
        return Type("bool")
    if isinstance(value, int):
        return Type("int64")
    return Type("float64") if isinstance(value, float) else TEXT


def mapping(of: object, example: str) -> list[tuple[Path, Any]]:
    if not isinstance(of, Mapping) or not of:
        raise ValueError(f"needs a mapping, as {example}")
    return once([(path_of(path), value) for path, value in of.items()])


def once(given: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """The same path may be written in several ways."""
    named = [path for path, _ in given]
    if twice := next((path for path in named if named.count(path) > 1), None):
        raise ValueError(f"{written(twice)} is named twice")
    return given


def paths(of: object, example: str) -> tuple[Path, ...]:
    if not isinstance(of, list) or not of:
        raise ValueError(f"needs a list, as {example}")
    return tuple(path for path, _ in once([(path_of(one), None) for one in of]))


def value_of(path: Path, value: object) -> Constant | Template:
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise ValueError(f"{written(path)}: {value} does not fit into int64")
    if isinstance(value, float) and value - value != 0:
        raise ValueError(f"{written(path)}: JSON has no number {value}")
    if isinstance(value, str):
        try:
            made = template(value)
        except ValueError as why:
            raise ValueError(f"{written(path)}: {why}") from None
        return made if made.fixed is None else made.fixed
    if not isinstance(value, bool | int | float):
        found = "null" if value is None else repr(value)
        raise ValueError(f"{written(path)}: {found} is no truth value, number or text")
    return value
