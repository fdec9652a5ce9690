"""Conditions of rules, evaluated column by column. Pure.

The grammar and the meaning are those of `sql`, with the names of `references`. What a batch says of a condition is an
array of codes: FALSE, TRUE, UNKNOWN, or FAILED where values cannot be compared, which fails the whole condition of that
row. A comparison that several rules make is made once. One that no column operation stands for is evaluated by `sql`
itself, once for each different value where it names one thing, else row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.pipeline import sql
from connect_core.pipeline.comparing import Incomparable, Whole
from connect_core.pipeline.fields import Fields, FieldValues, Flags, Value
from connect_core.pipeline.references import names_in, read_condition
from connect_core.sdk.templates import Reference

FALSE, TRUE, UNKNOWN, FAILED = range(4)
Codes = NDArray[np.int8]
Compute: TypeAlias = Callable[[Fields], Codes]

_EXACT = 1 << 53
_SIGNS: Mapping[str, Callable[[Any, Any], Flags]] = {
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
    "=": np.equal,
}
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_SEARCHES = {"CONTAINS": pc.match_substring, "STARTSWITH": pc.starts_with, "ENDSWITH": pc.ends_with}


@cache
def compiled(text: str) -> Compute:
    """The codes of each row. Raises ValueError with what is wrong with the text, and where."""
    return _compute(read_condition(text))


def holding(text: str, fields: Fields) -> Flags:
    """For each row whether the condition holds."""
    holds: Flags = compiled(text)(fields) == TRUE
    return holds


# ------------------------------------------------------------------------------------------- what stands between leaves


def _table(meaning: Callable[[int, int], int]) -> NDArray[np.int8]:
    return np.array([meaning(first, second) for first in range(4) for second in range(4)], dtype=np.int8)


def _deciding(decides: int, otherwise: int) -> NDArray[np.int8]:
    """As `sql` evaluates AND and OR: what fails first, or decides, ends the evaluation."""

    def meaning(first: int, second: int) -> int:
        if first in (FAILED, decides):
            return first
        if second in (FAILED, decides):
            return second
        return UNKNOWN if UNKNOWN in (first, second) else otherwise

    return _table(meaning)


_AND, _OR = _deciding(FALSE, TRUE), _deciding(TRUE, FALSE)
_NOT = np.array([TRUE, FALSE, UNKNOWN, FAILED], dtype=np.int8)


def _joined(first: Codes, second: Codes, table: Codes, both: Callable[[Codes, Codes], Codes]) -> Codes:
    """By the table, but for the usual case that nothing is unknown in either."""
    if first.max(initial=0) <= TRUE >= second.max(initial=0):
        return both(first, second)
    codes: Codes = table[first * 4 + second]
    return codes


def _compute(part: Any) -> Compute:
    kind = getattr(part, "data", "")
    if kind in ("and", "or"):
        first, second = map(_compute, part.children)
        table = _AND if kind == "and" else _OR
        both = np.bitwise_and if kind == "and" else np.bitwise_or
        return lambda fields: _joined(first(fields), second(fields), table, both)
    if kind in ("not", "unequal", "not_in"):
        inner = _compute(part.children[0]) if kind == "not" else _remembered(_positive(part, kind))
        return lambda fields: _NOT[inner(fields)]
    return _remembered(part)


def _positive(part: Any, kind: str) -> Any:
    from lark import Tree

    return Tree({"unequal": "equal", "not_in": "in"}[kind], part.children)


def _remembered(part: Any) -> Compute:
    """A leaf: made once for a batch, however many conditions have it."""
    key, leaf = repr(part), _leaf(part)

    def run(fields: Fields) -> Codes:
        if key not in fields.memory:
            fields.memory[key] = leaf(fields)
        codes: Codes = fields.memory[key]
        return codes

    return run


# ----------------------------------------------------------------------------------------------------------- the leaves


@dataclass(frozen=True)
class _Leaf:
    """`by_column` may say that it cannot do it: None."""

    names: Mapping[str, Reference]
    run: sql.Evaluate
    by_column: Callable[[FieldValues], Codes | None]

    def __call__(self, fields: Fields) -> Codes:
        columns = {text: fields.column(one) for text, one in self.names.items()}
        if not columns:
            return np.full(len(fields), _code(self.run, {}), dtype=np.int8)
        if len(columns) > 1:
            values = [map(_as_sql, column.values) for column in columns.values()]
            rows = (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
            return np.array([_code(self.run, row) for row in rows], dtype=np.int8)
        text, column = next(iter(columns.items()))
        done = self.by_column(column)
        return done if done is not None else self._by_value(text, column.values)

    def _by_value(self, text: str, values: Sequence[Value]) -> Codes:
        known: dict[tuple[type, Value], int] = {}
        codes = np.empty(len(values), dtype=np.int8)
        for row, value in enumerate(values):
            key = (type(value), value)
            if key not in known:
                known[key] = _code(self.run, {text: _as_sql(value)})
            codes[row] = known[key]
        return codes


def _leaf(part: Any) -> _Leaf:
    return _Leaf(names_in(part), sql.meaning(part), _by_column(part))


def _as_sql(value: Value) -> Any:
    return Whole(value) if type(value) is int else value


def _code(run: sql.Evaluate, values: Mapping[str, Any]) -> int:
    try:
        result = run(values)
    except Incomparable:
        return FAILED
    return UNKNOWN if result is None else int(result)


def _by_column(part: Any) -> Callable[[FieldValues], Codes | None]:
    """The operation on columns that stands for a leaf of the form `name, operator, constants`."""
    kind = getattr(part, "data", "")
    children: Sequence[Any] = getattr(part, "children", ())
    if not children or not _is_name(children[0]):
        if kind == "compared" and _is_name(children[2]) and (number := _number(children[0])) is not None:
            return _numeric((_TURNED[str(children[1])], number))
        return lambda column: None
    if kind in ("is_null", "is_not_null"):
        return lambda column: (column.missing == (kind == "is_null")).astype(np.int8)
    return _COLUMN_OPERATIONS.get(kind, _none)(children)


def _none(children: Sequence[Any]) -> Callable[[FieldValues], Codes | None]:
    return lambda column: None


def _compared(children: Sequence[Any]) -> Callable[[FieldValues], Codes | None]:
    number = _number(children[2])
    return _none(children) if number is None else _numeric((str(children[1]), number))


def _between(children: Sequence[Any]) -> Callable[[FieldValues], Codes | None]:
    low, high = map(_number, children[1:])
    return _none(children) if low is None or high is None else _numeric((">=", low), ("<=", high))


def _equal(children: Sequence[Any]) -> Callable[[FieldValues], Codes | None]:
    right = children[1]
    if getattr(right, "type", "") == "TEXT":
        return _one_of([sql.value_of(right)])
    number = _number(right)
    return _none(children) if number is None else _numeric(("=", number))


def _in(children: Sequence[Any]) -> Callable[[FieldValues], Codes | None]:
    return _one_of([sql.value_of(one) for one in children[1:]])


def _searched(children: Sequence[Any], holds: bool = True) -> Callable[[FieldValues], Codes | None]:
    """What is missing is not found, and does not count as without it either."""
    sought, search = sql.value_of(children[2]), _SEARCHES[str(children[1]).upper()]
    if not sought:
        return _none(children)

    return _found(lambda texts: pc.equal(search(texts, sought), holds))


_COLUMN_OPERATIONS: Mapping[str, Callable[[Sequence[Any]], Callable[[FieldValues], Codes | None]]] = {
    "compared": _compared,
    "between": _between,
    "equal": _equal,
    "in": _in,
    "searched": _searched,
    "not_searched": lambda children: _searched([children[0], *children[-2:]], holds=False),
}


def _numeric(*comparisons: tuple[str, float]) -> Callable[[FieldValues], Codes | None]:
    def run(column: FieldValues) -> Codes | None:
        numbers = column.numbers
        if numbers is None:
            return None
        holds = _SIGNS[comparisons[0][0]](numbers, comparisons[0][1])
        for sign, value in comparisons[1:]:
            holds &= _SIGNS[sign](numbers, value)
        return _known(column, holds)

    return run


def _one_of(wanted: Sequence[str]) -> Callable[[FieldValues], Codes | None]:
    def run(column: FieldValues) -> Codes | None:
        if column.encoded is None:
            return None
        indices = column.encoded[1]
        holds = np.zeros(len(indices), dtype=np.bool_)
        for text in wanted:
            if (place := column.places.get(text)) is not None:
                holds |= indices == place
        return _known(column, holds)

    return run


def _known(column: FieldValues, holds: Flags) -> Codes:
    codes: Codes = holds.view(np.int8)
    if column.some_missing:
        codes[column.missing] = UNKNOWN
    return codes


def _found(search: Callable[[pa.Array], pa.Array]) -> Callable[[FieldValues], Codes | None]:
    """`search` is asked once of each different text. False for what is missing."""

    def run(column: FieldValues) -> Codes | None:
        if column.encoded is None:
            return None
        texts, indices = column.encoded
        found = search(texts).to_numpy(zero_copy_only=False).astype(np.int8)
        codes: Codes = np.append(found, np.int8(FALSE))[indices]
        return codes

    return run


def _is_name(part: Any) -> bool:
    return getattr(part, "type", "") == "NAME"


def _number(part: Any) -> float | None:
    """A constant that is a number, and the same as a floating-point number."""
    if names_in(part) or (hasattr(part, "data") and part.data != "negated"):
        return None
    value = sql.value_of(part)
    if isinstance(value, Whole):
        return float(value.value) if abs(value.value) <= _EXACT else None
    return value if isinstance(value, float) else None
