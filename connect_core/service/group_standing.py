"""Where a connector goes on that begins at the offsets of a consumer group, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connect_core import systems
from connect_core.config import ConnectorDocument, revealed
from connect_core.config.resolving import resolve_source
from connect_core.sdk.groups import GroupStanding, QueueStanding
from connect_core.sdk.values import Json
from connect_core.service.opened import surroundings
from connect_core.systems import SYSTEMS
from connect_core.work import Side


def _standing_of(source: Side) -> GroupStanding | None:
    """None where the source begins elsewhere. Raises as clients of its system do."""
    plugin = SYSTEMS.get(source.system)
    if plugin is None or plugin.groups is None or plugin.source_options is None:
        return None
    return plugin.groups.standing(systems.checked(plugin.source_options, revealed(source), "source"))


def told_of(document: ConnectorDocument, notes: Sequence[str]) -> Json:
    """Its `group`, the `offsets` that can be set, further `notes`, and the `problems` for which nothing of it can be.
    Empty where it begins elsewhere."""
    home, settings = surroundings()
    stands = _standing_of(resolve_source(document, home, settings))
    return {} if stands is None else _said(stands, notes)


def _said(stands: GroupStanding, notes: Sequence[str]) -> Json:
    if stands.connected:
        return {"problems": [f"consumers of its group {stands.group} are connected: stop its workers first"]}
    if stands.missing:
        named = ", ".join(stands.missing)
        return {"notes": [*notes, f"there is no topic {named} yet: it begins where {stands.group} is then"]}
    offsets = [{"partition": one.partition, "offset": one.begins} for one in stands.places if _is_there(one)]
    return {"group": stands.group, "offsets": offsets, "notes": [*notes, *_notes(stands)]}


def _is_there(place: QueueStanding) -> bool:
    """Else the first run says what was lost, which an offset that is set would hide."""
    return place.oldest <= place.begins <= place.end


def _notes(stands: GroupStanding) -> Iterator[str]:
    if stands.connected is None:
        yield f"we may not ask who is connected as {stands.group}: see that its workers are stopped"
    for one in stands.places:
        where = f"{one.partition}: the group {stands.group}"
        if one.committed is None:
            left_out = max(one.begins - one.oldest, 0)
            yield f"{where} has no offset; reading begins at {one.begins:,}, and leaves out {left_out:,} older messages"
        elif one.committed < one.oldest:
            yield (
                f"{where} is at {one.committed:,}, and {one.oldest - one.committed:,} messages that it had not "
                f"read have expired: {_TELLS}, and goes on at {one.oldest:,} with --accept-gaps"
            )
        elif one.committed > one.end:
            yield (
                f"{where} is at {one.committed:,}, beyond the end at {one.end:,}, since the topic was created again: "
                f"{_TELLS}, and reads all that is there with --accept-gaps"
            )


_TELLS = "the first run tells the gap"
