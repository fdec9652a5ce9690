"""The second target of dead letters in a document, `errors.sink`: read as the sink is, and beside both ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connect_core.config.compatibility import conflict
from connect_core.config.endpoints import End, Surroundings, read_end
from connect_core.config.written import Place, Written
from connect_core.sdk.plugin import Conflict
from connect_core.sdk.values import Json

PLACE: Place = ("errors", "sink")
PINNED = "errors"
"""Its name among connections that are pinned, beside those of the ends."""

_BY_OFFSET = (
    "tells by offsets which of two records is newer, and dead letters are numbered in another order. Choose a topic, or"
    " a file"
)


def written_in(data: Mapping[str, Any]) -> Any:
    """What stands there; None for nothing."""
    errors = data.get("errors")
    return errors.get("sink") if isinstance(errors, Mapping) else None


def with_errors_sink(data: Json, end: End) -> Json:
    """The document that keeps this of it."""
    return {**data, "errors": {**data["errors"], "sink": {end.system: end.own}}}


def read_errors_sink(
    system: str, own: Json, around: Surroundings, injected: Mapping[str, Any], written: Written
) -> End:
    """`injected` as for the sink; rules name no topic of it."""
    known = {**injected, "rule_topics": None, "rule_patterns": [], "only_rule_topics": False, "row_fields": {}}
    return read_end("sink", system, own, around, known, written, at=PLACE, pinned_as=PINNED)


def unfit_errors_sink(source: End, end: End) -> Iterator[Conflict]:
    """What is wrong with one that is sound by itself: it must not feed the source, nor need an order of its own."""
    if end.configured().plugin.takes_rows:
        yield Conflict((*PLACE, end.system), f"{end.system} takes rows with fields, which dead letters do not have")
    elif "by_offset" in end.configured().plugin.abilities:
        yield Conflict((*PLACE, end.system), _BY_OFFSET)
    elif wrong := conflict(source, end):
        place = (*PLACE, *wrong.place[1:]) if wrong.place[0] == "sink" else wrong.place
        yield Conflict(place, wrong.words)
