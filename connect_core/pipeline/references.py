"""What conditions and templates of rules name, as it is written. Pure.

    $.temp   $.readings[0].value   $['outer temp']    a place in the payload, which is JSON
    topic    topic[1]    topic[2:]                    the topic; its levels, counted from 1; those from one on
    header:x-tenant                                   a header (user property)
    TAGS     KEYS                                     the record's tags and its key

A place in the payload is a singular query of JSONPath (RFC 9535, section 2.3.5.1): names and indices only. In a
condition a header whose name is one word may stand without `header:`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from connect_core.pipeline import sql

Kind = Literal["payload", "topic", "level", "levels", "header", "tags", "key"]

_STEP = r"\.[^\W\d]\w*|\[-?\d+\]|\['[^']*'\]"
WRITTEN = rf"\$(?:{_STEP})+|topic(?:\[[1-9]\d*:?\])?(?![\w$])|header:[\w.$-]+|[a-z_$][a-z0-9_$]*"
"""All of them in a condition, as a regular expression without regard to case."""
ADVICE = "$.name of the payload, topic, topic[1], topic[2:], header:NAME, TAGS or KEYS"

_PAYLOAD = re.compile(rf"\$((?:{_STEP})+)")
_STEPS = re.compile(_STEP)
_LEVEL = re.compile(r"topic\[([1-9]\d*)(:?)\]")
_WORD = re.compile(r"[a-z_$][a-z0-9_$]*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Reference:
    """`steps` are names and indices into the payload, `level` counts from 1, of `levels` it is the first, `name` is a
    header's."""

    kind: Kind
    steps: tuple[str | int, ...] = ()
    level: int = 0
    name: str = ""


@cache
def reference(text: str, *, bare: bool = False) -> Reference:
    """`bare` allows a header by its name alone. Raises ValueError for what names nothing."""
    if found := _PAYLOAD.fullmatch(text):
        return Reference("payload", steps=tuple(map(_step, _STEPS.findall(found[1]))))
    if found := _LEVEL.fullmatch(text):
        return Reference("levels" if found[2] else "level", level=int(found[1]))
    if text == "topic":
        return Reference("topic")
    if text in ("TAGS", "KEYS"):
        return Reference("tags" if text == "TAGS" else "key")
    if text.startswith("header:") and len(text) > len("header:"):
        return Reference("header", name=text.removeprefix("header:"))
    if bare and _WORD.fullmatch(text):
        return Reference("header", name=text)
    raise ValueError(f"{text!r} names nothing: write {ADVICE}")


@cache
def read_condition(text: str) -> Any:
    """The tree of a rule's condition, as `sql.tree`. Raises ValueError with what is wrong with the text, and where."""
    tree = sql.tree(text, WRITTEN)
    sql.meaning(tree)
    names_in(tree)
    return tree


def names_in(part: Any) -> dict[str, Reference]:
    """What a part of such a tree names, by its text. Raises ValueError for what names nothing."""
    tokens = part.scan_values(lambda token: token.type == "NAME") if hasattr(part, "children") else [part]
    return {str(one): reference(str(one), bare=True) for one in tokens if one.type == "NAME"}


def _step(text: str) -> str | int:
    if text.startswith("."):
        return text[1:]
    return text[2:-2] if text.startswith("['") else int(text[1:-1])
