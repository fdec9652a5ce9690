"""The type that holds all values of two types, and what it has beyond the one. Pure, and light.

Nothing is rounded: whole numbers become wider ones and then decimals, `float32` becomes `float64`, and no exact type
becomes a float. Joining is commutative and associative: who joins the same types in another order has the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from connect_core.rows.types import MAX_PRECISION, Type

MOST_EVOLVED = 50
"""So many fields of a document may be there, or be wider, because runs have evolved them (`parse.unknown: evolve`)."""

_SIGNED = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
_FLOATS = {"float32", "float64"}
_DIGITS, _UNSIGNED_DIGITS = 19, 20
"""Of a decimal that a whole number becomes, before the point; the second one of `uint64`. One for all of them: else it
would count in which order they are joined."""


def joined(one: Type, other: Type) -> Type | None:
    """None where no type holds the values of both. The fields of `one` come first."""
    if one == other:
        return one
    if one.kind == other.kind == "struct":
        return _struct(one, other)
    if one.item is not None and other.item is not None:
        item = joined(one.item, other.item)
        return item and Type("list", item=item)
    if {one.kind, other.kind} <= _FLOATS:
        return Type("float64")
    if is_exact(one) and is_exact(other):
        return _exact(one, other)
    return None


def is_exact(one: Type) -> bool:
    """Whether it is of numbers that are never rounded."""
    return one.kind in _SIGNED or one.kind in _UNSIGNED or one.kind == "decimal"


def beyond(one: Type, wider: Type) -> Type | None:
    """Of a type that `one` was joined to, what `one` does not have: fields, and wider types; None where it has all.
    `one` joined with that is `wider` again."""
    if one == wider:
        return None
    if one.kind == "struct":
        found = [(name, _beyond_field(one.field(name), of)) for name, of in wider.fields]
        fields = tuple((name, of) for name, of in found if of is not None)
        return Type("struct", fields=fields) if fields else None
    if one.item is not None and wider.item is not None:
        item = beyond(one.item, wider.item)
        return item and Type("list", item=item)
    return wider


def leaves(one: Type | None, place: str = "") -> Iterator[tuple[str, Type]]:
    """The fields that have no others in them, by their places: `id`, `order.tags[]`."""
    if one is None:
        return
    if one.item is not None:
        yield from leaves(one.item, f"{place}[]")
    elif one.kind == "struct":
        for name, of in one.fields:
            yield from leaves(of, f"{place}.{name}" if place else name)
    else:
        yield place, one


def parts(one: Type) -> Iterator[Type]:
    """The same type once for each of its `leaves`, with that one alone; all of them joined are the type."""
    if one.item is not None:
        yield from (Type("list", item=part) for part in parts(one.item))
    elif one.kind == "struct":
        for name, of in one.fields:
            yield from (Type("struct", fields=((name, part),)) for part in parts(of))
    else:
        yield one


def _beyond_field(known: Type | None, wider: Type) -> Type | None:
    return wider if known is None else beyond(known, wider)


def _struct(one: Type, other: Type) -> Type | None:
    fields = dict(one.fields)
    for name, of in other.fields:
        both = joined(fields[name], of) if name in fields else of
        if both is None:
            return None
        fields[name] = both
    return Type("struct", fields=tuple(fields.items()))


def _exact(one: Type, other: Type) -> Type | None:
    if "decimal" in (one.kind, other.kind):
        return _decimal(max(map(_digits, (one, other))), max(one.scale, other.scale))
    for known in (_SIGNED, _UNSIGNED):
        if one.kind in known and other.kind in known:
            return max(one, other, key=lambda of: known[of.kind])
    signed, unsigned = (one, other) if one.kind in _SIGNED else (other, one)
    bits = max(_SIGNED[signed.kind], 2 * _UNSIGNED[unsigned.kind])
    return Type(f"int{bits}") if bits in _SIGNED.values() else _decimal(_UNSIGNED_DIGITS, 0)


def _digits(one: Type) -> int:
    """Before the point."""
    if one.kind == "decimal":
        return one.precision - one.scale
    return _UNSIGNED_DIGITS if one.kind == "uint64" else _DIGITS


def _decimal(digits: int, scale: int) -> Type | None:
    return Type("decimal", precision=digits + scale, scale=scale) if digits + scale <= MAX_PRECISION else None
