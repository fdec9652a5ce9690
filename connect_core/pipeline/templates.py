"""Texts with places that each record fills: `{topic[2]}-{$.id}`. Pure.

A place holds what `references` can name; what a record does not have leaves it empty. `{{` and `}}` stand for braces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from connect_core.pipeline.references import Reference, reference

_PIECE = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<name>(?:'[^']*'|[^{}'])*)\}|(?P<plain>[^{}]+)|(?P<wrong>[{}])")


@dataclass(frozen=True)
class FieldTemplate:
    pieces: tuple[str | Reference, ...]

    @property
    def fixed(self) -> str | None:
        """The text, where it has no places."""
        return None if self.names() else "".join(str(piece) for piece in self.pieces)

    def names(self) -> frozenset[Reference]:
        return frozenset(piece for piece in self.pieces if isinstance(piece, Reference))


@cache
def template(text: str) -> FieldTemplate:
    """Raises ValueError for a place that names nothing, and for a brace that stands alone."""
    pieces: list[str | Reference] = []
    for found in _PIECE.finditer(text):
        if found["wrong"]:
            raise ValueError(f"the brace at character {found.start() + 1} is not part of a pair: write {{{{ or }}}}")
        if found["name"] is not None:
            pieces.append(reference(found["name"]))
        else:
            pieces.append(found["brace"][0] if found["brace"] else found["plain"])
    return FieldTemplate(tuple(pieces))
