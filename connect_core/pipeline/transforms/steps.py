"""Steps as documents write them, and the shape of rows behind each. Pure, light: documents are checked by it.

transforms:
  - rename: {user.nm: name}           the last part of a path gets the new name, in its place
  - drop: [user.mail]                 these fields
  - keep: [id, user]                  only these top-level fields, in this order
  - cast: {amount: "decimal(12,2)"}   exactly; a value that cannot be cast makes its row unfit
  - mask: {card: hash, note: redact}  also {with: "***"}
  - flatten: "_"                      structs become top-level fields: user_name
  - set: {site: north, label: "{$.id}-{topic[1]}"}
  - filter: $.amount > 100            only rows for which it holds
  - filter_out: {pattern: "DEBUG.*", fields: [level]}
  - hoist: order                      all fields become fields of one object
  - extract: order                    the fields of this object are all that is left
  - copy: {user.name: name}           a field comes to another place, too, with its type
  - explode: items                    a record for each item of this list
  - dedupe: [id]                      of equal ones in a range only the first
  - parse_time: {at: "dd.MM.yyyy"}    a text of this form becomes a timestamp; format_time is the way back
  - sql: SELECT *, price * 100 AS cents FROM records WHERE price > 0
  - python: iban                      a function of an installed package
  - record: {key: "{$.id}", headers: {site: "{$.site}", trace: null}}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from connect_core.pipeline.formats.patterns import check_pattern
from connect_core.pipeline.references import names_in, read_condition
from connect_core.pipeline.transforms.casts import fault_of
from connect_core.pipeline.transforms.dedupe_steps import dedupe_step
from connect_core.pipeline.transforms.mask_steps import mask_step
from connect_core.pipeline.transforms.named import check_names, texts_of
from connect_core.pipeline.transforms.paths import Field, Path, checked, found, path_of, written
from connect_core.pipeline.transforms.python_step import python_step
from connect_core.pipeline.transforms.record_steps import record_step
from connect_core.pipeline.transforms.row_step import (
    TEXT,
    Constant,
    RowStep,
    constant_type,
    mapping,
    paths,
    value_of,
    with_field,
)
from connect_core.pipeline.transforms.shape_steps import copy_step, explode_step, extract_step, hoist_step
from connect_core.pipeline.transforms.sql_step import sql_step
from connect_core.pipeline.transforms.time_steps import format_time_step, parse_time_step
from connect_core.rows.types import Type, type_of
from connect_core.sdk.templates import Reference, Template


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
            rows = with_field(rows, path, wanted)
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
            behind = with_field(behind, path, constant_type(value))
        return behind

    def references(self) -> Mapping[str, Reference]:
        return texts_of(name for _, value in self.values if isinstance(value, Template) for name in value.names())


@dataclass(frozen=True)
class FilterRows(RowStep):
    on_images = "waits"
    condition: str

    def after(self, rows: Type) -> Type:
        check_names(rows, self.references())
        return rows

    def references(self) -> Mapping[str, Reference]:
        return names_in(read_condition(self.condition))


@dataclass(frozen=True)
class FilterOut(RowStep):
    """Rows of which one of these texts is wholly of the pattern."""

    on_images = "waits"
    pattern: str
    paths: tuple[Path, ...]

    def after(self, rows: Type) -> Type:
        check_pattern(self.pattern)
        for path in self.paths:
            if (given := found(rows, path)) != TEXT:
                raise ValueError(f"{written(path)} is {given}, and no text")
        return rows


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


def _rename(of: object) -> RenameFields:
    return RenameFields(tuple((path, _new_name(path, name)) for path, name in mapping(of, "{user.nm: name}")))


def _new_name(path: Path, name: object) -> str:
    """A field stays where it is, so the new name is one name, in quotes where it has a dot."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"{written(path)}: {name!r} is no name of a field")
    parts = path_of(name) if name[0] == '"' else tuple(name.split("."))
    if len(parts) > 1:
        raise ValueError(f"{written(path)}: a field stays where it is: write its new name alone ({parts[-1]})")
    return parts[0]


def _keep(of: object) -> KeepFields:
    kept = paths(of, "[id, user]")
    if inner := next((path for path in kept if len(path) > 1), None):
        raise ValueError(f"{written(inner)} is inside a field: keep takes top-level fields, drop those within them")
    return KeepFields(tuple(path[0] for path in kept))


def _cast(of: object) -> CastFields:
    types = []
    for path, wanted in mapping(of, "{amount: int64}"):
        try:
            types.append((path, type_of(wanted)))
        except ValueError as why:
            raise ValueError(f"{written(path)}: {why}") from None
    return CastFields(tuple(types))


def _flatten(of: object) -> FlattenFields:
    if not isinstance(of, str) or not of:
        raise ValueError('needs the text between the names, as "_"')
    return FlattenFields(of)


def _set(of: object) -> SetFields:
    return SetFields(tuple((path, value_of(path, value)) for path, value in mapping(of, "{site: north}")))


def _filter(of: object) -> FilterRows:
    if not isinstance(of, str):
        raise ValueError("needs a condition, as $.amount > 100")
    read_condition(of)
    return FilterRows(of)


def _filter_out(of: object) -> FilterOut:
    example = '{pattern: "DEBUG.*", fields: [level]}'
    if not isinstance(of, Mapping) or set(of) != {"pattern", "fields"} or not isinstance(of["pattern"], str):
        raise ValueError(f"needs a pattern and fields, as {example}")
    return FilterOut(of["pattern"], paths(of["fields"], "[level]"))


_STEPS: Mapping[str, Callable[[object], RowStep]] = {
    "rename": _rename,
    "drop": lambda of: DropFields(paths(of, "[user.mail]")),
    "keep": _keep,
    "cast": _cast,
    "mask": mask_step,
    "flatten": _flatten,
    "set": _set,
    "filter": _filter,
    "filter_out": _filter_out,
    "hoist": hoist_step,
    "extract": extract_step,
    "copy": copy_step,
    "explode": explode_step,
    "dedupe": dedupe_step,
    "parse_time": parse_time_step,
    "format_time": format_time_step,
    "record": record_step,
    "sql": sql_step,
    "python": python_step,
}
STEPS = tuple(_STEPS)
"""Their names."""
