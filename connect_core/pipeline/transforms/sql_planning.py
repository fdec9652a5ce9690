"""What a statement of a `sql` step makes of rows of one shape: what is taken as it is, and what DuckDB works out. Pure
but for DuckDB.

A column that a statement only names is taken from the rows, so it keeps its type and each of its digits. What is worked
out is wrapped: TRY gives null where an expression fails, and within a struct a null that is meant is told from that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from connect_core.pipeline.transforms.paths import Path, checked, found, meant, written
from connect_core.pipeline.transforms.sql_engine import TOO_DEEP, asked, types
from connect_core.pipeline.transforms.sql_parsing import (
    BESIDE,
    OURS,
    TABLE,
    Select,
    beside,
    expanded,
    parsed,
    references,
    walked,
)
from connect_core.pipeline.transforms.sql_words import NOT_THE_SAME
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type
from connect_core.sdk.templates import Reference
from connect_core.sdk.values import Json

ROW = f"{OURS}row"
VALUE = "v"
"""What a value is called in the struct around it."""
Output: TypeAlias = Path | int
"""A path that is taken, or the place among what is worked out."""

_PLAIN: Mapping[str, Type] = {
    "BOOLEAN": Type("bool"),
    **{
        f"{sign}{name}": Type(f"{small}int{bits}")
        for sign, small in (("", ""), ("U", "u"))
        for name, bits in (
            ("TINYINT", 8),
            ("SMALLINT", 16),
            ("INTEGER", 32),
            ("BIGINT", 64),
        )
    },
    "FLOAT": Type("float32"),
    "DOUBLE": Type("float64"),
    "VARCHAR": Type("text"),
    "BLOB": Type("bytes"),
    "DATE": Type("date"),
    "TIME": Type("time", unit="us"),
    "TIME_NS": Type("time", unit="ns"),
    "TIMESTAMP_S": Type("datetime", unit="s"),
    "TIMESTAMP_MS": Type("datetime", unit="ms"),
    "TIMESTAMP": Type("datetime", unit="us"),
    "TIMESTAMP_NS": Type("datetime", unit="ns"),
    "TIMESTAMP WITH TIME ZONE": Type("timestamp", unit="us"),
    "TIMESTAMPTZ_NS": Type("timestamp", unit="ns"),
}
"""By what DuckDB calls it."""
_INSTEAD = {"HUGEINT": "DECIMAL(38,0)", "UHUGEINT": "DECIMAL(38,0)"}
_WRAPPED = f"SELECT {TABLE}.{ROW}, TRY(struct_pack({VALUE} := {OURS}x)) FROM {TABLE}"
"""What statements are made of, by the parser that read the document's own."""


@dataclass(frozen=True)
class Plan:
    """`condition` and `computed` are statements over `fields` and `references`, by the column that has each; empty
    where there is nothing to ask."""

    names: tuple[str, ...]
    outputs: tuple[Output, ...]
    condition: str
    computed: str
    fields: Mapping[str, str]
    references: Mapping[str, Reference]
    rows: Type
    """What it makes."""

    def computed_names(self) -> Iterator[str]:
        return (name for name, one in zip(self.names, self.outputs, strict=True) if isinstance(one, int))


@lru_cache(maxsize=256)
def plan(text: str, rows: Type) -> Plan:
    """Raises ValueError where the statement cannot work on rows of this shape."""
    select = parsed(text)
    try:
        return _Planning(select, rows).plan()
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


@dataclass
class _Planning:
    select: Select
    rows: Type
    fields: dict[str, str] = field(default_factory=dict)
    named: dict[str, Reference] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    computed: list[Json] = field(default_factory=list)

    def plan(self) -> Plan:
        for text in references(self.select):
            self.named[f"{OURS}beside_{len(self.named)}"] = beside(text)
        for item in self.select.items:
            if item["class"] == "STAR":
                self._star(item)
            else:
                self._item(item)
        condition = self.select.condition
        where = [] if condition is None else [walked(condition, self._resolved)]
        checks, values = _statement(where), _statement(self.computed)
        if [str(one) for one in self._types(checks)] not in ([], ["BOOLEAN"]):
            raise ValueError("WHERE needs a condition, which is true or false")
        return Plan(
            tuple(self.names),
            tuple(self.outputs),
            checks,
            values,
            self.fields,
            self.named,
            checked(Type("struct", fields=tuple(self._made(self._types(values))))),
        )

    def _star(self, star: Json) -> None:
        if star["relation_name"] and star["relation_name"].lower() != self.select.table.lower():
            raise ValueError(f"{star['relation_name']}.* names nothing: write * or {self.select.table}.*")
        left_out, replaced, renamed = expanded(star)
        names = {name.lower() for name, _ in self.rows.fields}
        for missing in (left_out | replaced.keys() | renamed.keys()) - names:
            raise ValueError(f"no field {missing}{meant(self.rows, (missing,))}")
        for name, _ in self.rows.fields:
            if name.lower() in left_out:
                continue
            self.names.append(renamed.get(name.lower(), name))
            if name.lower() in replaced:
                self._compute(replaced[name.lower()])
            else:
                self.outputs.append((name,))

    def _item(self, item: Json) -> None:
        path = self._path(item["column_names"]) if item["class"] == "COLUMN_REF" else None
        name = item["alias"] or (path[-1] if path else "")
        if not name:
            raise ValueError("each expression needs a name: write EXPRESSION AS name")
        self.names.append(name)
        if path:
            self.outputs.append(path)
        else:
            self._compute(item)

    def _compute(self, expression: Json) -> None:
        self.outputs.append(len(self.computed))
        self.computed.append(walked(expression, self._resolved))

    def _made(self, computed: Sequence[Any]) -> Iterator[tuple[str, Type]]:
        for name, one in zip(self.names, self.outputs, strict=True):
            yield name, _type(computed[one], name) if isinstance(one, int) else found(self.rows, one)

    def _types(self, statement: str) -> list[Any]:
        """Of what is worked out, without the struct around each."""
        if not statement:
            return []
        shape = {
            ROW: pa.int64(),
            **{column: arrow_type(found(self.rows, (name,))) for column, name in self.fields.items()},
            **dict.fromkeys(self.named, pa.string()),
        }
        try:
            known = types(statement, _empty(shape))
        except ValueError as error:
            raise ValueError(self._readable(str(error))) from None
        return [dict(one.children)[VALUE] for one in known[1:]]

    def _readable(self, words: str) -> str:
        """With the names of the document."""
        known = {**self.fields, **{column: _text(one) for column, one in self.named.items()}}
        return re.sub(rf"{OURS}\w+", lambda one: known.get(one[0], one[0]), words)

    # ------------------------------------------------------------------------------------------------------- names

    def _resolved(self, parts: Sequence[str]) -> list[str]:
        if self._is_beside(parts):
            wanted = beside(parts[1])
            return [next(column for column, one in self.named.items() if one == wanted)]
        path = self._path(parts)
        assert path is not None
        place = [name for name, _ in self.rows.fields].index(path[0])
        self.fields[f"{OURS}{place}"] = path[0]
        return [f"{OURS}{place}", *path[1:]]

    def _is_beside(self, parts: Sequence[str]) -> bool:
        return len(parts) == 2 and parts[0].lower() == BESIDE

    def _path(self, parts: Sequence[str]) -> Path | None:
        """As the fields are called. None for what is beside them."""
        if self._is_beside(parts):
            return None
        if len(parts) > 1 and parts[0].lower() == self.select.table.lower():
            parts = parts[1:]
        one, path = self.rows, list[str]()
        for part in parts:
            name = _named(one, part)
            if name is None:
                raise ValueError(self._unknown(parts))
            path.append(name)
            one = found(one, (name,))
        return tuple(path)

    def _unknown(self, parts: Sequence[str]) -> str:
        if len(parts) == 1 and parts[0].lower() in NOT_THE_SAME:
            return f"{parts[0]} is not allowed: it does not give the same each time"
        return f"no field {written(tuple(parts))}{meant(self.rows, tuple(parts))}"


def _empty(shape: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in shape.values()], list(shape))


def _named(one: Type, name: str) -> str | None:
    """The field that is meant: SQL does not look at capital letters, but where two fields differ in these alone."""
    if one.kind != "struct":
        return None
    if one.field(name) is not None:
        return name
    same = [known for known, _ in one.fields if known.lower() == name.lower()]
    if len(same) > 1:
        raise ValueError(f'{name} may be {" or ".join(same)}: write the one that is meant, in "…"')
    return same[0] if same else None


def _text(one: Reference) -> str:
    return f"{BESIDE}.{one.kind}"


def _statement(expressions: Sequence[Json]) -> str:
    """One row for each row, with its number. Empty where there is nothing to ask. Raises ValueError where the text that
    DuckDB writes of a tree is not that of the same tree."""
    if not expressions:
        return ""
    tree = _tree(_WRAPPED)
    select = tree["statements"][0]["node"]
    row, wrapper = select["select_list"]
    select["select_list"] = [row, *(_wrapped(wrapper, one) for one in expressions)]
    text = asked("SELECT json_deserialize_sql(?::JSON)", json.dumps(tree))
    if _meaning(_tree(text)) != _meaning(tree):
        raise ValueError("has an expression that cannot be taken: write it in another way, or in parts")
    return text


def _tree(text: str) -> Any:
    return json.loads(asked("SELECT json_serialize_sql(?::VARCHAR)", text))


def _meaning(part: Any) -> Any:
    """A tree without the places in its text."""
    if isinstance(part, list):
        return [_meaning(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {name: _meaning(one) for name, one in part.items() if not name.startswith("query_location")}


def _wrapped(wrapper: Json, expression: Json) -> Json:
    [struct] = wrapper["children"]
    [argument] = struct["arguments"]
    inner = {**struct, "arguments": [{**argument, "expression": {**expression, "alias": VALUE}}]}
    return {**wrapper, "children": [inner]}


def _type(given: Any, name: str) -> Type:
    """Raises ValueError for what fields do not have."""
    kind = str(given)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if given.id == "decimal":
        digits = dict(given.children)
        return Type("decimal", precision=digits["precision"], scale=digits["scale"])
    if given.id == "list":
        return Type("list", item=_type(given.children[0][1], name))
    if given.id == "struct":
        return Type("struct", fields=tuple((inner, _type(one, f"{name}.{inner}")) for inner, one in given.children))
    instead = _INSTEAD.get(kind, "VARCHAR")
    raise ValueError(f"{name} would be {kind}, which no field is: write CAST(… AS {instead}) AS {name}")
