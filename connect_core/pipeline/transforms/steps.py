"""Steps as documents write them, and the shape of rows behind each. Pure, light: documents are checked by it.

transforms:
  - rename: {user.nm: name}           the last part of a path gets the new name, in its place
  - drop: [user.mail]                 these fields
  - keep: [id, user]                  only these top-level fields, in this order
  - cast: {amount: "decimal(12,2)"}   exactly; a value that cannot be cast makes its row unfit
  - mask: {card: hash, note: redact}
  - flatten: "_"                      structs become top-level fields: user_name
  - set: {site: north, label: "{$.id}-{topic[1]}"}
  - filter: $.amount > 100            only rows for which it holds
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

from connect_core.pipeline.references import names_in, read_condition
from connect_core.pipeline.transforms.casts import fault_of
from connect_core.pipeline.transforms.named import check_names, texts_of
from connect_core.pipeline.transforms.paths import Field, Path, changed, checked, found, path_of, written
from connect_core.rows.types import Type, type_of
from connect_core.sdk.templates import Reference, Template, template

Constant: TypeAlias = bool | int | float | str
TEXT = Type("text")
_INT64 = 1 << 63


class RowStep:
    """One step. Made by `step_of`; `running.run` has rows go through it."""

    def after(self, rows: Type) -> Type:
        """The shape of rows behind it. Raises ValueError where it cannot work on rows of this shape."""
        raise NotImplementedError

    def references(self) -> Mapping[str, Reference]:
        """What its condition or templates name, by text. Whether records have a topic, headers or a file depends on
        the source: `after` asks for fields alone."""
        return {}


@dataclass(frozen=True)
class RenameFields(RowStep):
    names: tuple[tuple[Path, str], ...]

    def after(self, rows: Type) -> Type:
        """All paths are those before it, so two names can be exchanged."""
        for path, _ in self.names:
            found(rows, path)
        return checked(_renamed(rows, dict(self.names)))


@dataclass(frozen=True)
class DropFields(RowStep):
    paths: tuple[Path, ...]

    def after(self, rows: Type) -> Type:
        for path in self.paths:
            found(rows, path)
        return checked(_without(rows, frozenset(self.paths)))


@dataclass(frozen=True)
class KeepFields(RowStep):
    names: tuple[str, ...]

    def after(self, rows: Type) -> Type:
        return Type("struct", fields=tuple((name, found(rows, (name,))) for name in self.names))


@dataclass(frozen=True)
class CastFields(RowStep):
    types: tuple[tuple[Path, Type], ...]

    def after(self, rows: Type) -> Type:
        for path, wanted in self.types:
            if fault := fault_of(found(rows, path), wanted):
                raise ValueError(f"{written(path)}: {fault}")
            rows = _with(rows, path, wanted)
        return rows


@dataclass(frozen=True)
class MaskFields(RowStep):
    """`redact` or `hash`."""

    ways: tuple[tuple[Path, str], ...]

    def after(self, rows: Type) -> Type:
        for path, way in self.ways:
            given = found(rows, path)
            if way == "redact" and given != TEXT:
                raise ValueError(f"redact is for text, and {written(path)} is {given}: drop the field, or use hash")
            rows = _with(rows, path, TEXT)
        return rows


@dataclass(frozen=True)
class FlattenFields(RowStep):
    separator: str

    def after(self, rows: Type) -> Type:
        return checked(Type("struct", fields=tuple(self._leaves(rows, ""))))

    def _leaves(self, rows: Type, before: str) -> Iterator[Field]:
        for name, one in rows.fields:
            if one.kind == "struct":
                yield from self._leaves(one, f"{before}{name}{self.separator}")
            else:
                yield before + name, one


@dataclass(frozen=True)
class SetFields(RowStep):
    """Constants, and templates, which are filled from the rows before it."""

    values: tuple[tuple[Path, Constant | Template], ...]

    def after(self, rows: Type) -> Type:
        check_names(rows, self.references())
        behind = rows
        for path, value in self.values:
            behind = _with(behind, path, constant_type(value))
        return behind

    def references(self) -> Mapping[str, Reference]:
        return texts_of(name for _, value in self.values if isinstance(value, Template) for name in value.names())


@dataclass(frozen=True)
class FilterRows(RowStep):
    condition: str

    def after(self, rows: Type) -> Type:
        check_names(rows, self.references())
        return rows

    def references(self) -> Mapping[str, Reference]:
        return names_in(read_condition(self.condition))


def constant_type(value: Constant | Template) -> Type:
    if isinstance(value, bool):
        return Type("bool")
    if isinstance(value, int):
        return Type("int64")
    return Type("float64") if isinstance(value, float) else TEXT


def _renamed(rows: Type, names: Mapping[Path, str], above: Path = ()) -> Type:
    fields = []
    for name, one in rows.fields:
        path = (*above, name)
        inner = _renamed(one, names, path) if one.kind == "struct" else one
        fields.append((names.get(path, name), inner))
    return Type("struct", fields=tuple(fields))


def _without(rows: Type, paths: frozenset[Path], above: Path = ()) -> Type:
    fields = []
    for name, one in rows.fields:
        path = (*above, name)
        if path not in paths:
            fields.append((name, _without(one, paths, path) if one.kind == "struct" else one))
    return Type("struct", fields=tuple(fields))


def _with(rows: Type, path: Path, one: Type) -> Type:
    """The field is replaced in its place, or comes last of its struct."""
    *above, name = path
    parent = found(rows, tuple(above))
    if parent.kind != "struct":
        raise ValueError(f"no field {written(path)}: {written(tuple(above))} is {parent}, and has no fields")
    if parent.field(name) is not None:
        return changed(rows, path, lambda field: [(name, one)])
    wider = Type("struct", fields=(*parent.fields, (name, one)))
    return changed(rows, tuple(above), lambda field: [(field[0], wider)]) if above else wider


# ---------------------------------------------------------------------------------------------- as a document has them


def step_of(given: object) -> RowStep:
    """One item of `transforms`. Raises ValueError with what is wrong with it."""
    if not isinstance(given, Mapping) or len(given) != 1:
        names = ", ".join(map(str, given)) if isinstance(given, Mapping) else ""
        what = f"{len(given)} names: {names}" if isinstance(given, Mapping) and names else repr(given)
        raise ValueError(f"a step is a mapping with one name, as {{drop: [user.mail]}}, not {what}")
    ((name, of),) = given.items()
    if name not in _STEPS:
        near = get_close_matches(str(name), _STEPS, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{name!r} is no step{meant} (there are: {', '.join(_STEPS)})")
    try:
        return _STEPS[name](of)
    except ValueError as why:
        raise ValueError(f"{name}: {why}") from None


def _mapping(of: object, example: str) -> list[tuple[Path, Any]]:
    if not isinstance(of, Mapping) or not of:
        raise ValueError(f"needs a mapping, as {example}")
    return _once([(path_of(path), value) for path, value in of.items()])


def _once(given: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """The same path may be written in several ways."""
    paths = [path for path, _ in given]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise ValueError(f"{written(twice)} is named twice")
    return given


def _paths(of: object, example: str) -> tuple[Path, ...]:
    if not isinstance(of, list) or not of:
        raise ValueError(f"needs a list, as {example}")
    return tuple(path for path, _ in _once([(path_of(one), None) for one in of]))


def _rename(of: object) -> RenameFields:
    return RenameFields(tuple((path, _new_name(path, name)) for path, name in _mapping(of, "{user.nm: name}")))


def _new_name(path: Path, name: object) -> str:
    """A field stays where it is, so the new name is one name, in quotes where it has a dot."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"{written(path)}: {name!r} is no name of a field")
    parts = path_of(name) if name[0] == '"' else tuple(name.split("."))
    if len(parts) > 1:
        raise ValueError(f"{written(path)}: a field stays where it is: write its new name alone ({parts[-1]})")
    return parts[0]


def _keep(of: object) -> KeepFields:
    paths = _paths(of, "[id, user]")
    if inner := next((path for path in paths if len(path) > 1), None):
        raise ValueError(f"{written(inner)} is inside a field: keep takes top-level fields, drop those within them")
    return KeepFields(tuple(path[0] for path in paths))


def _cast(of: object) -> CastFields:
    types = []
    for path, wanted in _mapping(of, "{amount: int64}"):
        try:
            types.append((path, type_of(wanted)))
        except ValueError as why:
            raise ValueError(f"{written(path)}: {why}") from None
    return CastFields(tuple(types))


def _mask(of: object) -> MaskFields:
    ways = _mapping(of, "{card: hash, note: redact}")
    for path, way in ways:
        if way not in ("redact", "hash"):
            raise ValueError(f"{written(path)}: {way!r} is not redact or hash")
    return MaskFields(tuple(ways))


def _flatten(of: object) -> FlattenFields:
    if not isinstance(of, str) or not of:
        raise ValueError('needs the text between the names, as "_"')
    return FlattenFields(of)


def _set(of: object) -> SetFields:
    return SetFields(tuple((path, _value(path, value)) for path, value in _mapping(of, "{site: north}")))


def _value(path: Path, value: object) -> Constant | Template:
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


def _filter(of: object) -> FilterRows:
    if not isinstance(of, str):
        raise ValueError("needs a condition, as $.amount > 100")
    read_condition(of)
    return FilterRows(of)


_STEPS: Mapping[str, Callable[[object], RowStep]] = {
    "rename": _rename,
    "drop": lambda of: DropFields(_paths(of, "[user.mail]")),
    "keep": _keep,
    "cast": _cast,
    "mask": _mask,
    "flatten": _flatten,
    "set": _set,
    "filter": _filter,
}
