"""Request and response headers as frozen dataclasses: each field names itself on the wire, and this module turns a
value into the text fields of a command and back. Used by `commands`, which declares them, and by whoever sends or
answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from connect_core.errors import WireFormatError

T = TypeVar("T")
Layout = tuple[tuple[str, str, type, bool], ...]


def wire(name: str, default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field called `name` on the wire. Required unless it has a default."""
    return dataclasses.field(default=default, metadata={"wire": name})


def to_fields(value: object) -> dict[str, str]:
    """What goes into the header. None is left out, booleans are `true` and `false`."""
    fields = {}
    for attribute, name, _, _ in _layout(type(value)):
        item = getattr(value, attribute)
        if item is not None:
            fields[name] = ("true" if item else "false") if isinstance(item, bool) else str(item)
    return fields


def from_fields(kind: type[T], fields: Mapping[str, str]) -> T:
    """The value again. Raises `WireFormatError` when a required field is not there or is no number."""
    items = {}
    for attribute, name, item_type, required in _layout(kind):
        text = fields.get(name)
        if text is not None:
            items[attribute] = _parse(kind, name, item_type, text)
        elif required:
            raise WireFormatError(f"{kind.__name__} without its field {name}")
    return kind(**items)


def _parse(kind: type, name: str, item_type: type, text: str) -> object:
    if item_type is bool:
        return text.lower() == "true"
    if item_type is int:
        try:
            return int(text)
        except ValueError:
            raise WireFormatError(f"{kind.__name__}: field {name} is not a number") from None
    return text


def _read_layout(kind: Any) -> Layout:
    """Attribute, name on the wire, plain type, and whether it is required, for each field."""
    hints = get_type_hints(kind)
    return tuple(
        (item.name, item.metadata["wire"], _plain_type(hints[item.name]), item.default is dataclasses.MISSING)
        for item in dataclasses.fields(kind)
    )


_layout: Callable[[Any], Layout] = cache(_read_layout)


def _plain_type(hint: Any) -> type:
    if get_origin(hint) is UnionType:
        hint = next(part for part in get_args(hint) if part is not type(None))
    plain: type = hint
    return plain
