"""Types of fields, as a document has them: `int64`, `decimal(12,2)`, `[text]`, `{name: text, since: date}`. Pure, and
light: documents are checked by it, so no Arrow is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from connect_core.sdk.values import Json

MAX_PRECISION = 38
MAX_DEPTH = 20
"""Of lists and structs in each other."""
UNITS = ("s", "ms", "us", "ns")

PLAIN = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"),
    *("text", "bytes", "date"),
)
"""Types that are one word."""
WITH_UNIT = ("time", "timestamp", "datetime", "epoch")
"""Types with a unit: `time(ms)` of a day; `timestamp(us)`, a moment as text with its zone; `datetime(us)`, date and
time without a zone; `epoch(ms)`, a moment as a whole number since 1970."""
KNOWN = (*PLAIN, "decimal(P,S)", *(f"{name}(ms)" for name in WITH_UNIT))

_ELSEWHERE = {
    **dict.fromkeys(("string", "str", "varchar"), "text"),
    **dict.fromkeys(("int", "integer", "long", "bigint"), "int64"),
    **dict.fromkeys(("double", "float", "number", "real"), "float64"),
    **dict.fromkeys(("boolean",), "bool"),
    **dict.fromkeys(("binary", "bytea"), "bytes"),
    **dict.fromkeys(("numeric", "money"), "decimal(P,S)"),
}
"""What other products call these types."""
_FORM = re.compile(r"([a-z0-9]+)(?:\(\s*([a-z0-9]+)\s*(?:,\s*([0-9]+)\s*)?\))?", re.ASCII)


@dataclass(frozen=True)
class Type:
    """`kind` is one of the words above, `decimal`, `list` or `struct`. Every value may be missing."""

    kind: str
    unit: str = ""
    precision: int = 0
    scale: int = 0
    item: Type | None = None
    """Of a list."""
    fields: tuple[tuple[str, Type], ...] = ()
    """Of a struct, in order."""

    def __str__(self) -> str:
        """As a document has it."""
        if self.kind == "struct":
            return "{" + ", ".join(f"{name}: {one}" for name, one in self.fields) + "}"
        if self.kind == "list":
            return f"[{self.item}]"
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return f"{self.kind}({self.unit})" if self.unit else self.kind

    def field(self, name: str) -> Type | None:
        """Of a struct; None where it has none of that name."""
        return next((one for known, one in self.fields if known == name), None)


def is_text(name: str) -> bool:
    """Whether UTF-8 can write it: JSON and YAML can name half a character."""
    return name.isascii() or not any("\ud800" <= one <= "\udfff" for one in name)


def struct_of(written: Mapping[str, Any]) -> Type:
    """The rows of a document's `fields`. Raises ValueError with the field and what is wrong with its type."""
    return Type("struct", fields=tuple(_fields(written, "", 0)))


def type_of(written: object) -> Type:
    """One type, as a document has it. Raises ValueError."""
    return _type(written, "", 0)


def _fields(written: Mapping[str, Any], place: str, depth: int) -> Iterator[tuple[str, Type]]:
    if not written:
        raise ValueError(f"{place or 'fields'} needs at least one field")
    for name, of in written.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"{place or 'fields'}: {name!r} is no name of a field")
        if not is_text(name):
            raise ValueError(f"{place or 'fields'}: {name!r} holds half of a surrogate pair, which is no text")
        yield name, _type(of, f"{place}.{name}" if place else name, depth + 1)


def _type(written: object, place: str, depth: int) -> Type:
    where = f"{place}: " if place else ""
    if depth > MAX_DEPTH:
        raise ValueError(f"{where}more than {MAX_DEPTH} lists and structs in each other")
    if isinstance(written, dict):
        return Type("struct", fields=tuple(_fields(written, place, depth)))
    if isinstance(written, list):
        if len(written) != 1:
            raise ValueError(f"{where}a list has one type, as [text]")
        return Type("list", item=_type(written[0], f"{place}[]", depth + 1))
    if not isinstance(written, str):
        raise ValueError(f"{where}{written!r} is no type ({', '.join(KNOWN)})")
    return _word(written, where)


def _word(written: str, where: str) -> Type:
    found = _FORM.fullmatch(written.strip())
    if found is not None:
        word, first, second = found.groups()
        if word in PLAIN and first is None:
            return Type(word)
        if word in WITH_UNIT and second is None and (first or "us") in UNITS:
            return Type(word, unit=first or "us")
        if word == "decimal" and first is not None and first.isdigit():
            return _decimal(int(first), int(second or 0), where)
    near = [_ELSEWHERE[written.lower()]] if written.lower() in _ELSEWHERE else get_close_matches(written, KNOWN, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(f"{where}{written!r} is no type{meant} (known: {', '.join(KNOWN)})")


def _decimal(precision: int, scale: int, where: str) -> Type:
    if not (1 <= precision <= MAX_PRECISION and scale <= precision):
        raise ValueError(
            f"{where}decimal({precision},{scale}): at most {MAX_PRECISION} digits, not more of them behind the point"
        )
    return Type("decimal", precision=precision, scale=scale)


def as_written(rows: Type) -> Json:
    """The `fields` that a document would have for these rows."""
    return {name: _as_written(one) for name, one in rows.fields}


def _as_written(one: Type) -> Any:
    if one.kind == "struct":
        return as_written(one)
    if one.item is not None:
        return [_as_written(one.item)]
    return str(one)
