"""Conditions of rules as trees, and what they name (`sdk.templates`). Pure, and light: documents are checked by it."""

from __future__ import annotations

from functools import cache
from typing import Any

from connect_core.pipeline import sql
from connect_core.sdk.templates import WRITTEN, Reference, reference


@cache
def read_condition(text: str) -> Any:
    """The tree of a rule's condition, as `sql.tree`. Raises ValueError with what is wrong with the text, and where."""
    tree = sql.tree(text, WRITTEN)
    sql.meaning(tree)
    names_in(tree)
    return tree


def properties_in(text: str) -> dict[str, Reference]:
    """What a filter's condition names, by its text: properties, which are headers but for TAGS and KEYS."""
    own = {"TAGS": Reference("tags"), "KEYS": Reference("key")}
    return {one: own.get(one, Reference("header", name=one)) for one in _written_in(sql.tree(text))}


def names_in(part: Any) -> dict[str, Reference]:
    """What a part of such a tree names, by its text. Raises ValueError for what names nothing."""
    return {one: reference(one, bare=True) for one in _written_in(part)}


def _written_in(part: Any) -> list[str]:
    tokens = part.scan_values(lambda token: True) if hasattr(part, "children") else [part]
    return [str(one) for one in tokens if one.type == "NAME"]
