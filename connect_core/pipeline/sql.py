"""Conditions as RocketMQ's brokers read them (filter type SQL92): from a text to a function of a record's properties.

The grammar and the meaning are those of RocketMQ 5, its oddities included, so that a filter lets the same records pass
here as it would at a broker. Properties are texts. One that is missing makes what it stands in unknown, and a text that
should be a number and is none makes the whole condition fail: in neither case the record passes.

Rules (`conditions`) use the same with names of their own, and with values that know what they are: numbers and truth
values of a payload. A truth value may stand alone as a condition, and is not compared by size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from connect_core.pipeline.comparing import (
    LONG,
    Incomparable,
    Whole,
    equals,
    is_truth,
    ordered,
    ordered_as_numbers,
    written,
)

Properties = Mapping[str, Any]
Evaluate = Callable[[Properties], Any]
"""The value of an expression: a text, a number, True, False, or None for unknown."""

_GRAMMAR = r"""
start: _either
_either: or | _both
or: _either "OR"i _both
_both: and | _equality
and: _both "AND"i _equality
_equality: equal | unequal | is_null | is_not_null | _comparison
equal: _equality "=" _comparison
unequal: _equality "<>" _comparison
is_null: _equality "IS"i "NULL"i
is_not_null: _equality "IS"i "NOT"i "NULL"i
_comparison: compared | between | not_between | in | not_in | searched | not_searched | _unary
compared: _comparison COMPARISON _unary
between: _comparison "BETWEEN"i _unary "AND"i _unary
not_between: _comparison "NOT"i "BETWEEN"i _unary "AND"i _unary
in: _comparison "IN"i "(" TEXT ("," TEXT)* ")"
not_in: _comparison "NOT"i "IN"i "(" TEXT ("," TEXT)* ")"
searched: _comparison SEARCH TEXT
not_searched: _comparison "NOT"i SEARCH TEXT
_unary: "+" _unary | negated | not | _primary
negated: "-" _unary
not: "NOT"i _unary
_primary: TEXT | WHOLE | FRACTION | TRUE | FALSE | nothing | NAME | "(" _either ")"
nothing: "NULL"i
COMPARISON: /[<>]=|>|<(?!>)/
SEARCH: "CONTAINS"i | "STARTSWITH"i | "ENDSWITH"i
TRUE: "TRUE"i
FALSE: "FALSE"i
NAME: /{names}/i
FRACTION.2: /([0-9]+\.[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+)/i
WHOLE: /0|[1-9][0-9]*l?/i
TEXT: /'(''|[^'])*'/
%ignore /[ \t\n\r\f]+/
%ignore /--[^\n\r]*/
%ignore /\/\*.*?\*\//s
"""
_PROPERTY = "[a-z_$][a-z0-9_$]*"
_IN_NUMBERS = re.compile(r"\bIN\s*\(\s*[-+.0-9]", re.IGNORECASE)
_LEAST_FRACTION = 5e-324


@dataclass(frozen=True)
class _Node:
    """`kind` is what a grammar rule asks about: constant, property, condition, or value."""

    kind: str
    run: Evaluate
    constant: Any = None


def condition(text: str) -> Callable[[Properties], bool]:
    """Whether a record with these properties passes. Raises ValueError with what is wrong with the text, and where."""
    run = _compiled(text)

    def passes(properties: Properties) -> bool:
        try:
            return run(properties) is True
        except Incomparable:
            return False

    return passes


@cache
def _compiled(text: str) -> Evaluate:
    return meaning(tree(text))


def tree(text: str, names: str = _PROPERTY) -> Any:
    """The condition as lark has it: a tree or a token. `names` is the regular expression of a name. Raises ValueError
    for what cannot be read."""
    from lark.exceptions import UnexpectedInput

    try:
        return _parser(names).parse(text).children[0]
    except UnexpectedInput as error:
        ended = getattr(getattr(error, "token", None), "type", "") == "$END"
        place = "at its end" if ended else f"at character {error.column}"
        hint = "; IN takes texts in quotes, as ('1', '3')" if _IN_NUMBERS.search(text) else ""
        raise ValueError(f"is not a condition: it cannot be read {place}{hint}") from None


def meaning(part: Any) -> Evaluate:
    """Of a tree, or of a part of one where something must hold or not: True, False, None, or it raises Incomparable.
    Raises ValueError for what does not fit together."""
    return _as_condition(_node(part)).run


def value_of(part: Any) -> Any:
    """Of a part that names nothing. Raises ValueError."""
    return _node(part).run({})


@cache
def _parser(names: str) -> Any:
    from lark import Lark

    return Lark(_GRAMMAR.replace("{names}", names), parser="lalr", maybe_placeholders=False)


# --------------------------------------------------------------------------------------------------- the tree's meaning


def _node(part: Any) -> _Node:
    if not hasattr(part, "children"):
        return _leaf(part.type, str(part))
    return _MEANINGS[part.data](part.children)


def _leaf(kind: str, text: str) -> _Node:
    if kind == "NAME":
        return _Node("property", lambda properties: properties.get(text))
    value: Any
    if kind == "TEXT":
        value = _unquoted(text)
    elif kind == "WHOLE":
        value = Whole(int(text.rstrip("lL")))
        if value.value >= LONG:
            raise ValueError(f"{text} is too large a number")
    elif kind == "FRACTION":
        value = float(text)
        if not _LEAST_FRACTION <= value < math.inf:
            raise ValueError(f"{text} is no number that RocketMQ compares with: write 0 without a fraction")
    else:
        value = kind == "TRUE"
    return _Node("constant", lambda properties: value, value)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _as_condition(node: _Node) -> _Node:
    """What stands alone, or beside AND, OR and NOT. A property that is there is no truth value: it does not hold."""
    if node.kind == "property":
        return _condition(lambda properties: None if (value := node.run(properties)) is None else value is True)
    if node.kind == "condition" or (node.kind == "constant" and is_truth(node.constant)):
        return node
    raise ValueError("is not a condition: it has a text or a number where a comparison is needed")


def _condition(run: Evaluate) -> _Node:
    return _Node("condition", run)


def _or(parts: Sequence[Any]) -> _Node:
    return _any_of(*(_as_condition(_node(part)).run for part in parts))


def _any_of(left: Evaluate, right: Evaluate) -> _Node:
    def run(properties: Properties) -> bool | None:
        first = left(properties)
        if first is True:
            return True
        second = right(properties)
        return True if second is True else None if first is None or second is None else False

    return _condition(run)


def _and(parts: Sequence[Any]) -> _Node:
    return _all_of(*(_as_condition(_node(part)).run for part in parts))


def _all_of(left: Evaluate, right: Evaluate) -> _Node:
    def run(properties: Properties) -> bool | None:
        first = left(properties)
        if first is False:
            return False
        second = right(properties)
        return False if second is False else None if first is None or second is None else True

    return _condition(run)


def _negation(run: Evaluate) -> _Node:
    def negated(properties: Properties) -> bool | None:
        value = run(properties)
        return None if value is None else not value

    return _condition(negated)


def _equal(parts: Sequence[Any]) -> _Node:
    left, right = map(_node, parts)
    for node in (left, right):
        if node.kind == "constant" and node.constant is None:
            raise ValueError("compares with NULL: write IS NULL")
    if left.kind == right.kind == "constant" and is_truth(left.constant) and not is_truth(right.constant):
        raise ValueError("compares a truth value with something else")
    return _condition(lambda properties: equals(left.run(properties), right.run(properties)))


def _is_null(parts: Sequence[Any]) -> _Node:
    run = _node(parts[0]).run
    return _condition(lambda properties: run(properties) is None)


def _compared(parts: Sequence[Any]) -> _Node:
    left, sign, right = parts
    return _comparing(_node(left), str(sign), _node(right))


def _comparing(left: _Node, sign: str, right: _Node) -> _Node:
    for node in (left, right):
        truth = node.kind == "condition" or (node.kind == "constant" and not isinstance(node.constant, (Whole, float)))
        if truth:
            raise ValueError(f"{sign} compares numbers only")
    holds = _SIGNS[sign]

    def run(properties: Properties) -> bool | None:
        first = left.run(properties)
        second = None if first is None else right.run(properties)
        if is_truth(first) or is_truth(second):
            return None
        if isinstance(first, str) and isinstance(second, str):
            return holds(ordered_as_numbers(first, second))
        return holds(ordered(first, second))

    return _condition(run)


_SIGNS: dict[str, Callable[[int], bool]] = {
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
}


def _between(parts: Sequence[Any]) -> _Node:
    value, low, high = map(_node, parts)
    numbers = [one.constant for one in (low, high) if isinstance(one.constant, (Whole, float))]
    if len(numbers) == 2 and ordered(*numbers) > 0:
        raise ValueError("BETWEEN takes the lower number first")
    return _all_of(_comparing(value, ">=", low).run, _comparing(value, "<=", high).run)


def _not_between(parts: Sequence[Any]) -> _Node:
    value, low, high = map(_node, parts)
    return _any_of(_comparing(value, "<", low).run, _comparing(value, ">", high).run)


def _in(parts: Sequence[Any]) -> _Node:
    first, *texts = parts
    node = _node(first)
    if node.kind != "property":
        raise ValueError("IN needs the name of a property before it")
    wanted = frozenset(_unquoted(text) for text in texts)

    def run(properties: Properties) -> bool | None:
        value = node.run(properties)
        return None if value is None else written(value) in wanted

    return _condition(run)


def _searched(parts: Sequence[Any], *, wanted: bool = True) -> _Node:
    """False as well, with NOT and without, for what is missing, is no text, or is searched for nothing."""
    subject, how, text = parts
    node, sought, found = _node(subject), _unquoted(text), _SEARCHES[str(how).upper()]

    def run(properties: Properties) -> bool:
        value = node.run(properties)
        return isinstance(value, str) and bool(sought) and found(value, sought) is wanted

    return _condition(run)


_SEARCHES: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": lambda value, sought: sought in value,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


def _negated(parts: Sequence[Any]) -> _Node:
    node = _node(parts[0])

    def run(properties: Properties) -> Whole | float | None:
        value = node.run(properties)
        if isinstance(value, Whole):
            return Whole(-value.value)
        return -value if isinstance(value, float) else None

    return _Node("value", run)


_MEANINGS: dict[str, Callable[[Sequence[Any]], _Node]] = {
    "or": _or,
    "and": _and,
    "equal": _equal,
    "unequal": lambda parts: _negation(_equal(parts).run),
    "is_null": _is_null,
    "is_not_null": lambda parts: _negation(_is_null(parts).run),
    "compared": _compared,
    "between": _between,
    "not_between": _not_between,
    "in": _in,
    "not_in": lambda parts: _negation(_in(parts).run),
    "searched": _searched,
    "not_searched": lambda parts: _searched(parts, wanted=False),
    "negated": _negated,
    "not": lambda parts: _negation(_as_condition(_node(parts[0])).run),
    "nothing": lambda parts: _Node("constant", lambda properties: None),
}
