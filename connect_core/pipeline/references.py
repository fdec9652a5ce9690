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


def names_in(part: Any) -> dict[str, Reference]:
    """What a part of such a tree names, by its text. Raises ValueError for what names nothing."""
    tokens = part.scan_values(lambda token: token.type == "NAME") if hasattr(part, "children") else [part]
    return {str(one): reference(str(one), bare=True) for one in tokens if one.type == "NAME"}
