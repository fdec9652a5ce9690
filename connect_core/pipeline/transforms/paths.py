"""Paths of fields as steps write them: `user.name`, `user."first name"` for a part with dots or blanks. Pure, light.

Paths lead through structs, never into a list. They are no references as conditions and templates have them: `$.a[0]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches

from connect_core.rows.types import Type

Path = tuple[str, ...]
Field = tuple[str, Type]
_PART = re.compile(r'"((?:[^"]|"")+)"|([^\s."]+)')
SHOWN = 12
"""As many names are listed at most."""


def path_of(written: object) -> Path:
    """Raises ValueError for what is no path."""
    if not isinstance(written, str):
        raise ValueError(f"{written!r} is no path of a field, as user.name")
    if written.startswith("$"):
        raise ValueError(f"{written!r}: a path of a step begins with the name of a field, without $")
    parts, place = [], 0
    while found := _PART.match(written, place):
        parts.append(found[1].replace('""', '"') if found[1] is not None else found[2])
        place = found.end()
        if place == len(written):
            return tuple(parts)
        if written[place] != ".":
            break
        place += 1
    raise ValueError(f'{written!r} is no path of a field: write user.name, or user."first name" around dots and blanks')


def written(path: Path) -> str:
    """As a document has it."""
    return ".".join(part if _PART.fullmatch(part) and part[0] not in '"$' else _quoted(part) for part in path)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


def found(rows: Type, path: Path) -> Type:
    """The type at a path. Raises ValueError where there is no such field."""
    one = rows
    for depth, part in enumerate(path):
        if one.kind != "struct":
            raise ValueError(f"no field {written(path)}: {written(path[:depth])} is {one}, and has no fields")
        inner = one.field(part)
        if inner is None:
            raise ValueError(f"no field {written(path)}{meant(rows, path)}")
        one = inner
    return one


def meant(rows: Type, path: Path) -> str:
    """What was probably meant, and what there is: the end of a message about a path that leads nowhere."""
    known = [written(one) for one in every_path(rows)]
    text = written(path)
    near = [one for one in known if one.lower() == text.lower()] or get_close_matches(text, known, n=1)
    words = f"; did you mean {near[0]}?" if near else ""
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"{words} (there are: {', '.join(known[:SHOWN])}{more})"


def every_path(rows: Type, above: Path = ()) -> Iterator[Path]:
    for name, one in rows.fields:
        yield (*above, name)
        yield from every_path(one, (*above, name))


def changed(rows: Type, path: Path, change: Callable[[Field], list[Field]]) -> Type:
    """With the field at a path replaced by what `change` makes of it, in its place. The field is there."""
    fields: list[Field] = []
    for name, one in rows.fields:
        if name != path[0]:
            fields.append((name, one))
        elif len(path) > 1:
            fields.append((name, changed(one, path[1:], change)))
        else:
            fields.extend(change((name, one)))
    return replace(rows, fields=tuple(fields))


def checked(rows: Type, above: Path = ()) -> Type:
    """These rows. Raises ValueError where two fields of one struct have the same name, or a struct has none."""
    names = [name for name, _ in rows.fields]
    where = written(above) if above else "the rows"
    if not names:
        raise ValueError(f"no field is left in {where}" + (f": drop {where} itself" if above else ""))
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two fields have the name {written((*above, twice))}")
    for name, one in rows.fields:
        if one.kind == "struct":
            checked(one, (*above, name))
    return rows
