"""Fields that runs have added to a document, or widened, under `parse.unknown: evolve`. Pure.

They are in `fields` like all others, and once more in `evolved`: so it is known which of them nobody has written. A
document that is applied again keeps those; once they are written in it, they are like all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connect_core.rows.types import Type, as_written, struct_of
from connect_core.rows.widening import MOST_EVOLVED, beyond, joined, leaves, parts
from connect_core.sdk.values import Json

_OF_RUNS = ("fields", "evolved", "schema_id")
"""What runs may change of `parse` and `encode`."""


def evolves(document: Json) -> bool:
    """Whether runs may change this document, as it is stored."""
    return bool(_parse(document).get("unknown") == "evolve" and isinstance(_parse(document).get("fields"), dict))


def evolved(document: Json, needs: Json) -> Json | None:
    """The document with what a record needs; itself where it has that. None where it cannot have it: its contract is
    another one now, a type does not join, or there would be too many fields that nobody has written."""
    if not evolves(document):
        return None
    parse = _parse(document)
    fields, known, more = struct_of(parse["fields"]), parse.get("evolved"), struct_of(needs)
    wider = joined(fields, more)
    lacks = wider and beyond(fields, wider)
    if wider is None:
        return None
    if lacks is None:
        return document
    marked = joined(struct_of(known), lacks) if known else lacks
    if marked is None or sum(1 for _ in leaves(marked)) > MOST_EVOLVED:
        return None
    return document | {"parse": parse | {"fields": as_written(wider), "evolved": as_written(marked)}}


def kept_fields(written: Json, stored: Json) -> Json:
    """What stands in `parse` of a `written` document for its `fields`, beside those that runs have evolved of the
    `stored` one: these are kept, but for those that are written as wide, or as another type."""
    of_runs = _parse(stored).get("evolved")
    if not (evolves(written) and evolves(stored) and of_runs):
        return {}
    fields = struct_of(_parse(written)["fields"])
    wider = fields
    for one in struct_of(of_runs).fields:
        wider = joined(wider, Type("struct", fields=(one,))) or wider
    lacks = beyond(fields, wider)
    return {"fields": as_written(wider), "evolved": as_written(lacks)} if lacks else {}


def added(one: Json, other: Json) -> Json:
    """The fields that a later revision has beside those of an earlier one, or wider."""
    fields, wider = (struct_of(_parse(document)["fields"]) for document in (one, other))
    lacks = beyond(fields, wider)
    return as_written(lacks) if lacks else {}


def differ_by_runs(one: Json, other: Json) -> bool:
    """Whether two revisions differ at most by what runs change."""
    return _without(one) == _without(other)


def told(needs: Json) -> str:
    """Fields and their types, for people."""
    return ", ".join(f"{place}: {one}" for place, one in leaves(struct_of(needs)))


def single(needs: Json) -> Iterator[tuple[str, str, Json]]:
    """Each field with its place and type, as needs of its own."""
    whole = struct_of(needs)
    both = zip(leaves(whole), parts(whole), strict=True)
    return ((place, str(one), as_written(part)) for (place, one), part in both)


def _parse(document: Mapping[str, Any]) -> Json:
    parse: Json = document.get("parse") or {}
    return parse


def _without(document: Json) -> Json:
    parts = {name: document.get(name) or {} for name in ("parse", "encode")}
    return document | {
        name: {key: value for key, value in part.items() if key not in _OF_RUNS} for name, part in parts.items()
    }
