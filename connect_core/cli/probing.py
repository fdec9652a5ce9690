"""What the world says of one end of a document, for `check --probe`: are the servers and paths there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connect_core.errors import WaybillError

if TYPE_CHECKING:
    from connect_core.sdk.plugin import Role
    from connect_core.work import Side

Seen = dict[str, Any]
"""`ok` and, in words, `what` was seen."""


def probe_side(role: Role, side: Side) -> list[Seen]:
    """A line for each thing looked at; an end whose system nothing is known of has none."""
    from connect_core.config import reveal
    from connect_core.systems import SYSTEMS

    told: list[Seen] = []
    try:
        for ok, what in SYSTEMS[side.system].probe(role, reveal(side.options)):
            told.append({"ok": ok, "what": f"{role}: {what}"})
    except WaybillError as error:
        told.append({"ok": False, "what": f"{role}: {error}"})
    return told
