"""Avro schemas: a JSON schema -> a tree without names, or why it is none that rows can have. Pure, and light: documents
are checked by it.

Any schema may come, also one of a registry: names are looked up here, so a schema that holds itself, or that grows
without end when its names are written out, is refused before anything is read with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.json_faults import inner
from connect_core.rows.types import MAX_DEPTH, MAX_PRECISION, Type
from connect_core.sdk.values import Json

NODES = 10_000
"""Types in a schema at most, each name written out."""
_MOST_DIGITS = 1000
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

_NAMED = ("record", "enum", "fixed")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_LOGICAL = {
    "date": ("int", "date", ""),
    "time-millis": ("int", "time", "ms"),
    "time-micros": ("long", "time", "us"),
    **{
        f"{word}-{name}": ("long", logical, unit)
        for word, logical in (("timestamp", "timestamp"), ("local-timestamp", "datetime"))
        for name, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}
"""Logical types: what they are written as, and which type of a document they are."""


@dataclass(frozen=True)
class AvroNode:
    """One type of a schema. `logical` is the kind of a document's type, with its `unit`; or `uuid`."""

    kind: str
    logical: str = ""
    unit: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    """Of fixed."""
    symbols: tuple[str, ...] = ()
    """Of an enum."""
    fields: tuple[tuple[str, AvroNode], ...] = ()
    """Of a record."""
    branches: tuple[AvroNode, ...] = ()
    """Of a union; of an array or a map what is in it."""
    word: str = field(default="", compare=False)
    """What the schema calls it, for reasons."""

    def least(self) -> int:
        """So many bytes does a value have at least."""
        if self.kind == "record":
            return sum(of.least() for _, of in self.fields)
        if self.kind == "fixed":
            return self.size
        return {"null": 0, "float": 4, "double": 8}.get(self.kind, 1)


def schema_node(schema: object) -> AvroNode:
    """The record that a schema describes. Raises Misfit."""
    node = _Resolving().node(schema, "", "", 0)
    if node.kind != "record":
        raise Misfit(f"the schema says {node.word}, not a record")
    return node


def read_schema(text: str) -> object:
    """Of a JSON text. Raises Misfit."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Misfit("the schema is no JSON") from None


class _Resolving:
    def __init__(self) -> None:
        self._known: dict[str, AvroNode | None] = {}
        """By full name; None as long as it is being read."""
        self._left = NODES

    def node(self, schema: object, space: str, place: str, depth: int) -> AvroNode:
        self._count(1)
        if depth > 2 * MAX_DEPTH:
            raise Misfit(f"{_at(place)}the schema has more than {2 * MAX_DEPTH} types in each other")
        if isinstance(schema, list):
            return self._union(schema, space, place, depth)
        if isinstance(schema, str):
            return self._called(schema, space, place)
        kind = schema.get("type") if isinstance(schema, dict) else None
        if not isinstance(schema, dict) or not isinstance(kind, str | dict | list):
            raise Misfit(f"{_at(place)}the schema does not say its type")
        if not isinstance(kind, str):
            return self.node(kind, space, place, depth + 1)
        if kind in PRIMITIVES:
            return _logical(AvroNode(kind, word=kind), schema)
        if kind in ("array", "map"):
            return self._container(kind, schema, space, place, depth)
        return self._named(kind, schema, space, place, depth) if kind in _NAMED else self._called(kind, space, place)

    def _count(self, nodes: int) -> None:
        self._left -= nodes
        if self._left < 0:
            raise Misfit(f"the schema has more than {NODES:,} types")

    def _called(self, name: str, space: str, place: str) -> AvroNode:
        if name in PRIMITIVES:
            return AvroNode(name, word=name)
        full = next((one for one in (_full(name, space), name) if one in self._known), None)
        if full is None:
            raise Misfit(f"{_at(place)}the schema names a type that it does not define")
        if (found := self._known[full]) is None:
            raise Misfit(f"{_at(place)}the schema holds itself, which no row can (a recursive type)")
        self._count(_nodes(found))
        return found

    def _union(self, schema: list[Any], space: str, place: str, depth: int) -> AvroNode:
        branches = tuple(self.node(one, space, place, depth + 1) for one in schema)
        if not branches or any(one.kind == "union" for one in branches):
            raise Misfit(f"{_at(place)}the schema has a union of nothing, or of unions")
        return AvroNode("union", branches=branches, word=f"a union of {', '.join(one.word for one in branches)}")

    def _container(self, kind: str, schema: Mapping[str, Any], space: str, place: str, depth: int) -> AvroNode:
        item = self.node(schema.get("items" if kind == "array" else "values"), space, f"{place}[]", depth + 1)
        if kind == "array" and not item.least():
            # Else a few bytes could say that there are 2^40 of them.
            raise Misfit(f"{_at(place)}the schema has an array whose items take no bytes, which is not read here")
        return AvroNode(kind, branches=(item,), word=kind)

    def _named(self, kind: str, schema: Mapping[str, Any], space: str, place: str, depth: int) -> AvroNode:
        name, given = schema.get("name"), schema.get("namespace", space)
        if not isinstance(name, str) or not _FULL_NAME.fullmatch(name) or not isinstance(given, str):
            raise Misfit(f"{_at(place)}the schema has a {kind} without a name of letters, digits and _")
        full = _full(name, given)
        if full in self._known or name in PRIMITIVES:
            raise Misfit(f"{_at(place)}the schema defines a name twice")
        self._known[full] = None
        if kind == "record":
            fields = tuple(self._fields(schema, full.rpartition(".")[0], place, depth))
            node = AvroNode("record", fields=fields, word="record")
        elif kind == "enum":
            node = AvroNode("enum", symbols=_symbols(schema, place), word="enum")
        else:
            node = _logical(AvroNode("fixed", size=_size(schema, place), word="fixed"), schema)
        self._known[full] = node
        return node

    def _fields(self, schema: Mapping[str, Any], space: str, place: str, depth: int) -> Iterator[tuple[str, AvroNode]]:
        seen: set[str] = set()
        fields = schema.get("fields")
        for one in fields if isinstance(fields, list) else [None]:
            name = one.get("name") if isinstance(one, dict) else None
            if not isinstance(one, dict) or not isinstance(name, str) or not is_name(name) or name in seen:
                raise Misfit(f"{_at(place)}the schema does not name its fields, each once")
            seen.add(name)
            yield name, self.node(one.get("type"), space, inner(place, name), depth + 1)


def is_name(name: object) -> bool:
    """Whether Avro takes it for a field."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def nullable(node: AvroNode) -> tuple[AvroNode, bool]:
    """What a value is, and whether it may be missing. A union of more is itself."""
    rest = [one for one in node.branches if one.kind != "null"]
    return (rest[0], len(node.branches) > 1) if node.kind == "union" and len(rest) == 1 else (node, False)


def fields_of(node: AvroNode) -> Type:
    """The fields that a document has which declares none. Raises Misfit for what no field can be."""
    return _type(node, "", 0)


def _type(node: AvroNode, place: str, depth: int) -> Type:
    node, _ = nullable(node)
    if depth > MAX_DEPTH:
        raise Misfit(f"{place}: more than {MAX_DEPTH} arrays and records in each other")
    if node.kind == "record":
        if not node.fields:
            raise Misfit(f"{place or 'payload'}: a record without fields")
        return Type(
            "struct", fields=tuple((name, _type(of, inner(place, name), depth + 1)) for name, of in node.fields)
        )
    if node.kind == "array":
        return Type("list", item=_type(node.branches[0], f"{place}[]", depth + 1))
    if node.logical == "decimal":
        if node.precision > MAX_PRECISION:
            raise Misfit(f"{place}: a decimal of {node.precision} digits; fields have {MAX_PRECISION} at most")
        return Type("decimal", precision=node.precision, scale=node.scale)
    if node.logical and node.logical != "uuid":
        return Type(node.logical, unit=node.unit)
    if node.kind not in _TYPES:
        raise Misfit(f"{place}: the schema says {node.word}, which no field can be")
    return Type(_TYPES[node.kind])


_TYPES = {
    "boolean": "bool",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    **dict.fromkeys(("string", "enum"), "text"),
    **dict.fromkeys(("bytes", "fixed"), "bytes"),
}


def wire_schema(node: AvroNode) -> Any:
    """For who reads and writes it: without logical types, and each named type under a name of its own."""
    return _Wire().of(node)


class _Wire:
    def __init__(self) -> None:
        self._names = 0

    def of(self, node: AvroNode) -> Any:
        if node.kind in PRIMITIVES:
            return node.kind
        if node.kind == "union":
            return [self.of(one) for one in node.branches]
        if node.kind in ("array", "map"):
            return {"type": node.kind, "items" if node.kind == "array" else "values": self.of(node.branches[0])}
        self._names += 1
        named: Json = {"type": node.kind, "name": f"t{self._names}"}
        if node.kind == "record":
            return named | {"fields": [{"name": name, "type": self.of(of)} for name, of in node.fields]}
        return named | ({"symbols": list(node.symbols)} if node.kind == "enum" else {"size": node.size})


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _nodes(node: AvroNode) -> int:
    return 1 + sum(_nodes(of) for _, of in node.fields) + sum(_nodes(of) for of in node.branches)


def _symbols(schema: Mapping[str, Any], place: str) -> tuple[str, ...]:
    symbols = schema.get("symbols")
    if not isinstance(symbols, list) or not symbols or not all(map(is_name, symbols)):
        raise Misfit(f"{_at(place)}the schema has an enum without symbols")
    if len(set(symbols)) < len(symbols):
        raise Misfit(f"{_at(place)}the schema has an enum with a symbol twice")
    return tuple(symbols)


def _size(schema: Mapping[str, Any], place: str) -> int:
    size = schema.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
        raise Misfit(f"{_at(place)}the schema has a fixed without a size")
    return size


def _logical(node: AvroNode, schema: Mapping[str, Any]) -> AvroNode:
    """A logical type that is not known, or does not go with its type, means nothing: so says Avro."""
    name = schema.get("logicalType")
    if name == "decimal" and node.kind in ("bytes", "fixed"):
        precision, scale = _whole(schema.get("precision")), _whole(schema.get("scale", 0))
        if 0 <= scale <= precision and 0 < precision <= _digits(node):
            word = f"decimal({precision},{scale})"
            return replace(node, logical="decimal", precision=precision, scale=scale, word=word)
    if name == "uuid" and (node.kind == "string" or (node.kind, node.size) == ("fixed", 16)):
        return replace(node, logical="uuid" if node.kind == "string" else "", word="uuid")
    if isinstance(name, str) and _LOGICAL.get(name, ("",))[0] == node.kind:
        return replace(node, logical=_LOGICAL[name][1], unit=_LOGICAL[name][2], word=name)
    return node


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _digits(node: AvroNode) -> int:
    """Of a decimal, as many as its bytes hold."""
    if node.kind == "bytes":
        return _MOST_DIGITS
    return min(_MOST_DIGITS, len(str(2 ** (8 * min(node.size, _MOST_DIGITS) - 1) - 1)) - 1) if node.size else 0


def _at(place: str) -> str:
    return f"{place}: " if place else ""
