"""Whether bytes are Protobuf of a schema to the letter. Pure.

The library takes more than that: of a number with more bits than its type it cuts what is too many, and a field that
has another form than the schema says is one that it does not know. What it would write as it came needs no look; all
else is looked at here, byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from connect_core.rows.json_faults import inner
from connect_core.rows.protobuf_parts import ProtoField
from connect_core.rows.protobuf_wire import inner_fields
from connect_core.rows.reading_by_schema import VALUES, NotOfSchema

Fields = tuple[ProtoField, ...]

_VARINT, _EIGHT, _COUNTED, _GROUP, _END_GROUP, _FOUR = range(6)
_FORMS = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), _EIGHT),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), _FOUR),
    **dict.fromkeys(("string", "bytes", "message"), _COUNTED),
}
_SIZES = {_EIGHT: 8, _FOUR: 4}
_LONGEST = 10
"""Bytes of a number."""
_DEEPEST = 100
"""Groups in each other that nobody knows."""
_HALF = 1 << 31
_FITS: dict[str, tuple[Callable[[int], bool], str]] = {
    "bool": (lambda number: number < 2, "neither true nor false"),
    "uint32": (lambda number: not number >> 32, "a number of more than 32 bits"),
    "sint32": (lambda number: not number >> 32, "a number of more than 32 bits"),
    **dict.fromkeys(
        ("int32", "enum"),
        (lambda number: number < _HALF or number >= (1 << 64) - _HALF, "a number of more than 32 bits"),
    ),
}


class Bound(NamedTuple):
    """How many values a message holds at most: so many, and so many more for each of its bytes."""

    fixed: int
    per_byte: int

    @classmethod
    def of(cls, fields: Fields) -> Bound:
        """An item of a list takes two bytes at least."""
        return cls(_own(fields), max(1, (_widest(fields) + 1) // 2))

    def values(self, length: int) -> int:
        return self.fixed + length * self.per_byte


def check_strictly(fields: Fields, body: bytes, unknown: Literal["reject", "drop"]) -> int:
    """How many values there are in it. Raises NotOfSchema."""
    walk = _Walk(body, unknown)
    walk.count(_own(fields))
    walk.message(fields, 0, len(body), "")
    return VALUES - walk.left


def _own(fields: Fields) -> int:
    """Of one message, with the messages that it has one of."""
    return len(fields) + sum(_own(inner_fields(field)) for field in fields if field.presence != "repeated")


def _widest(fields: Fields) -> int:
    """Of all lists of messages in it, the values of one item."""
    found = 0
    for field in fields:
        within = inner_fields(field)
        found = max(found, _widest(within), _own(within) if field.presence == "repeated" else 0)
    return found


class _Walk:
    def __init__(self, body: bytes, unknown: Literal["reject", "drop"]) -> None:
        self._body = body
        self._drops = unknown == "drop"
        self.left = VALUES

    def message(self, fields: Fields, at: int, end: int, place: str) -> None:
        known = {field.number: field for field in fields if field.number}
        while at < end:
            number, form, at = self._tag(at, end)
            field = known.get(number)
            if field is None and not self._drops:
                where = f"{place}: " if place else ""
                raise NotOfSchema(
                    f"{where}field {number}, which the schema does not have (unknown: drop leaves such out)"
                )
            if field is None or field.declared is None:
                at = self._skipped(number, form, at, end)
            else:
                at = self._field(field, form, at, end, inner(place, field.name))

    def count(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise NotOfSchema(f"it holds more than {VALUES:,} values")

    def _field(self, field: ProtoField, form: int, at: int, end: int, place: str) -> int:
        message = field.kind == "message" or bool(field.logical)
        usual = _COUNTED if message else _FORMS.get(field.kind, _VARINT)
        repeated = field.presence == "repeated"
        if form == usual:
            if repeated:
                self.count(_own(inner_fields(field)) if message else 1)
            if not message:
                return self._value(field, at, end, place)
            begin, at = self._counted(at, end)
            self.message(inner_fields(field), begin, at, place)
            return at
        if repeated and form == _COUNTED:
            begin, last = self._counted(at, end)
            while begin < last:
                self.count(1)
                begin = self._value(field, begin, last, place)
            return last
        raise NotOfSchema(f"{place}: another form than that of {field.kind}")

    def _value(self, field: ProtoField, at: int, end: int, place: str) -> int:
        form = _FORMS.get(field.kind, _VARINT)
        if form in _SIZES:
            return self._after(at, _SIZES[form], end)
        if form == _COUNTED:
            begin, at = self._counted(at, end)
            if field.kind == "string":
                self._check_text(begin, at, place)
            return at
        number, at = self._number(at, end)
        fits, otherwise = _FITS.get(field.kind, (None, ""))
        if fits is not None and not fits(number):
            raise NotOfSchema(f"{place}: {otherwise}")
        return at

    def _check_text(self, begin: int, end: int, place: str) -> None:
        try:
            self._body[begin:end].decode()
        except UnicodeDecodeError:
            raise NotOfSchema(f"{place}: a text that is not UTF-8") from None

    def _skipped(self, number: int, form: int, at: int, end: int) -> int:
        """Behind a field that nobody looks into."""
        open_groups: list[int] = []
        while True:
            if form == _VARINT:
                _, at = self._number(at, end)
            elif form == _COUNTED:
                _, at = self._counted(at, end)
            elif form in _SIZES:
                at = self._after(at, _SIZES[form], end)
            elif form == _GROUP and len(open_groups) < _DEEPEST:
                open_groups.append(number)
            elif form != _END_GROUP or not open_groups or open_groups.pop() != number:
                raise NotOfSchema(f"a group that does not begin and end, or is too deep, at byte {at}")
            if not open_groups:
                return at
            number, form, at = self._tag(at, end)

    def _tag(self, at: int, end: int) -> tuple[int, int, int]:
        tag, after = self._number(at, end)
        if tag >> 32 or not tag >> 3 or tag & 7 > _FOUR:
            raise NotOfSchema(f"no field begins at byte {at + 1}")
        return tag >> 3, tag & 7, after

    def _counted(self, at: int, end: int) -> tuple[int, int]:
        length, at = self._number(at, end)
        return at, self._after(at, length, end)

    def _number(self, at: int, end: int) -> tuple[int, int]:
        number = 0
        for place in range(_LONGEST):
            if at + place >= end:
                raise NotOfSchema("it ends too early")
            number |= (self._body[at + place] & 0x7F) << 7 * place
            if self._body[at + place] < 0x80:
                break
        else:
            raise NotOfSchema(f"a number of more than {_LONGEST} bytes at byte {at + 1}")
        if number >> 64:
            raise NotOfSchema(f"a number of more than 64 bits at byte {at + 1}")
        return number, at + place + 1

    def _after(self, at: int, length: int, end: int) -> int:
        if at + length > end:
            raise NotOfSchema("it ends too early")
        return at + length
