"""Conditions for rows of a table that people give in the SQL of its server: whether one is a single expression. Pure.

A condition stands in parentheses in statements of ours. It cannot leave them where it closes each quote and parenthesis
that it opens, and none that it does not, and has no comment, which could swallow what follows. Whether it means
something the server itself says.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from connect_core.errors import ConfigError

CONDITION_S = 20.0
"""How long a statement with a condition may take: while it runs, nothing else of the connector comes."""
MOST = 10_000
"""Characters: each chunk of the rows names its condition in the log."""
_SUBQUERIES = frozenset({"SELECT", "TABLE"})


class Dialect(NamedTuple):
    """`refused` are signs that may begin a comment, end a statement, or begin a text whose end we do not know.
    `escaping` are words that directly before a text have it know backslashes."""

    token: re.Pattern[str]
    escaping: frozenset[str] = frozenset()


def _dialect(quoted: str, refused: str, *escaping: str) -> Dialect:
    token = rf"(?P<quoted>{quoted})|(?P<word>[^\W\d]\w*)|(?P<refused>--|/\*|[;\\\0{refused}])|(?P<sign>.)"
    return Dialect(re.compile(token, re.DOTALL), frozenset(escaping))


_DOUBLED = r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+["]"""
POSTGRESQL = _dialect(_DOUBLED, "$", "E")
"""Texts as with standard_conforming_strings. Those in dollars, and those that know backslashes, are refused."""
MYSQL = _dialect(f"{_DOUBLED}|`(?:[^`]|``)*+`", "#")
"""Texts as with NO_BACKSLASH_ESCAPES."""


def check_condition(condition: str, dialect: Dialect, where: str) -> None:
    """Raises ConfigError for one that is no single expression."""
    if fault := _fault(condition, dialect):
        step = "Give what follows WHERE: one expression of columns of the table, in the SQL of the server"
        raise ConfigError(f"The condition {fault}", where=where, next_step=step)


def _fault(condition: str, dialect: Dialect) -> str:
    """What is wrong with it; empty: nothing is."""
    if not condition.strip():
        return "is empty"
    if len(condition) > MOST:
        return f"has more than {MOST:,} characters"
    depth, word = 0, ""
    for found in dialect.token.finditer(condition):
        kind, text = found.lastgroup, found.group()
        if kind == "quoted" and word in dialect.escaping:
            return "has a text with backslash escapes: write the characters themselves"
        word = text.upper() if kind == "word" else ""
        depth += (text == "(") - (text == ")")
        if fault := _fault_of(kind, text, word, depth):
            return fault
    return "has a parenthesis that is not closed" if depth else ""


def _fault_of(kind: str | None, text: str, word: str, depth: int) -> str:
    if kind == "refused":
        return f"has {text!r} outside of a text: a comment, or the end of a statement, has no place in it"
    if kind == "sign" and text in "'\"`":
        return "has a quote that is not closed"
    if word in _SUBQUERIES:
        return "has a subquery: its answer may change without a change of the row"
    return "closes a parenthesis that it has not opened" if depth < 0 else ""
