"""Tables of a source that a changed document names in other capitals.

A partition is a table by its name as it is written, so a database to which capitals make no difference has the rows of
one such table twice: they come again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from connect_core.config import Checked
from connect_core.sdk.values import Json
from connect_core.systems import SYSTEMS

_ROWS = "rows"
"""What a source of tables counts. A log of their changes has one partition, however they are written."""


def with_respelled(checked: Sequence[Checked], standing: Mapping[str, Json]) -> list[Checked]:
    """With notices of those that have a document of before."""
    return [_with_notices(one, standing.get(one.document.name, {})) for one in checked]


def _with_notices(one: Checked, former: Json) -> Checked:
    before, now = ([*document.get("source", {})] for document in (former, one.data))
    plugin = SYSTEMS.get(now[0])  # of another package, it may be gone
    if before != now or plugin is None or plugin.unit != _ROWS:
        return one
    return replace(one, notices=(*one.notices, *respelled(former, one.data)))


def respelled(former: Json, document: Json) -> Iterator[str]:
    """What a person should know, by table of the `former` document."""
    before, now = _named(former), _named(document)
    for table in before:
        alike = next((one for one in now if fnmatchcase(table.lower(), one.lower())), None)
        if alike is not None and not any(fnmatchcase(table, one) for one in now):
            yield (
                f"source: {table} was named in other capitals before, now it is {alike}. Where both are one table to"
                " the database, and `waybill plan` has a new partition for it, all its rows come again: keep the former"
                " spelling, or delete the connector, apply it again, and set the offset before its first run"
            )


def _named(document: Json) -> Sequence[str]:
    """Names and patterns; empty of another source than one of tables."""
    [options] = document.get("source", {}).values() or [{}]
    if not isinstance(options, dict):
        return []
    return [str(one) for one in (options.get("table"), *(options.get("tables") or ())) if one]
