"""What the world says of a document: are the servers and paths of its ends there? Writes nothing."""

from __future__ import annotations

from pathlib import Path

from connect_core.config import ConnectorDocument, load_settings, resolve, reveal
from connect_core.errors import WaybillError
from connect_core.masking import mask_secrets
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json
from connect_core.systems import SYSTEMS
from connect_core.work import Side


def probe(document: ConnectorDocument, home: Path | None) -> list[Json]:
    """Source first: whether it is `ok`, and in words `what` was seen. A system that does not answer is told, not
    raised."""
    try:
        resolved = resolve(document, home, load_settings(home), "0" * 12)
    except WaybillError as error:
        return [_seen(False, str(error))]
    return [*probe_side("source", resolved.source), *probe_side("sink", resolved.sink)]


def probe_side(role: Role, side: Side) -> list[Json]:
    """One for each thing looked at; an end whose system has nothing to look at has none."""
    told: list[Json] = []
    try:
        for ok, what in SYSTEMS[side.system].probe(role, reveal(side.options)):
            told.append(_seen(ok, f"{role}: {what}"))
    except WaybillError as error:
        told.append(_seen(False, f"{role}: {error}"))
    return told


def _seen(ok: bool, what: str) -> Json:
    return {"ok": ok, "what": mask_secrets(what)}
