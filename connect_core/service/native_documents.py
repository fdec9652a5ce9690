"""Documents for the routes of Waybill's own API: judged, and several applied at once; and what they may name. Each
function asks what the caller may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect_core import __version__
from connect_core.config import Written, WrittenDocuments
from connect_core.errors import ConfigError, Fault, Retriable
from connect_core.ledger import schema
from connect_core.sdk.values import Json
from connect_core.service import callers, connectors, documents
from connect_core.service import health as service_health
from connect_core.service.native_connectors import WHY, in_words_of_documents, refuse_masks, stale
from connect_core.service.opened import Say, ledger_exists, reading
from connect_core.service.visible import NotFound, may_write, visible, visible_one
from connect_core.version import code_version


def check(given: Sequence[Any], say: Say, *, probe: bool = False) -> list[Json]:
    """What each document means; nothing is stored. With `probe` each end is asked. Raises ConfigError with every fault
    of all of them, and NotAllowed where the caller may not apply them."""
    written = _written(given)
    with in_words_of_documents(_names(written), several=True):
        return documents.check_written(written, say, probe=probe)


def apply(
    given: Sequence[Any],
    say: Say,
    *,
    why: str = WHY,
    preview: bool = False,
    made_from: Mapping[str, int] | None = None,
) -> list[Json]:
    """Creates or changes connectors, all of them or none: the changes. With `preview` what would change. `made_from`
    has by name the revision that a document was made from, 0 for one that is to be new: raises Stale where one of them
    is another now. Raises as `check` does."""
    written = _written(given)
    with in_words_of_documents(_names(written), several=True):
        if preview:
            return documents.written_would_change(written, say)
        try:
            return documents.apply_written(written, why, say, made_from=made_from)
        except Retriable:
            for name, revision in (made_from or {}).items():
                found = visible_one(name)
                if (now := found.revision if found else 0) != revision:
                    raise stale(name, now) from None
            raise


def _written(given: Sequence[Any]) -> WrittenDocuments:
    names = [one.get("name") if isinstance(one, dict) else None for one in given] or [None]
    for name in names:
        if isinstance(name, str):
            may_write(name)
        else:
            callers.require("admin")
    if not given:
        raise ConfigError("There is no document", faults=(Fault("documents", "is empty"),))
    refuse_masks({"documents": list(given)})
    return WrittenDocuments([Written(one, f"documents[{number}]") for number, one in enumerate(given)])


def _names(written: WrittenDocuments) -> list[str]:
    return [one.where for one in written.documents]


# ------------------------------------------------------------------------------------------------------- of the server


def options(system: str) -> list[Json]:
    """The options of a system, or those of `connector`, the document itself. Raises NotFound."""
    from connect_core.systems import SYSTEMS

    callers.require("viewer")
    if system not in (*SYSTEMS, "connector"):
        raise NotFound(f'There is no system "{system}"', next_step="GET /api/v1/plugins")
    return documents.options(system)


def health(say: Say) -> Json:
    """How many connectors are in which state. Raises what the ledger raises."""
    callers.require("viewer")
    there = list(visible().values())
    counts: dict[str, int] = {}
    if there:
        with reading() as opened:
            for status in connectors.states(opened, there, say).values():
                counts[status.state] = counts.get(status.state, 0) + 1
    return {"ledger": "there" if ledger_exists() else "none yet", "connectors": dict(sorted(counts.items()))}


def status(say: Say) -> Json:
    """Of this code and its ledger, and what each connector does now. Raises what the ledger raises."""
    callers.require("viewer")
    there = list(visible().values())
    told: Json = {"version": __version__, "ledger": "there" if ledger_exists() else "none yet", "connectors": []}
    if there:
        with reading() as opened:
            told["connectors"] = service_health.connectors_told(opened, there, say)
    return told


def version() -> Json:
    """Of this code, and of the ledger's tables that it works with."""
    callers.require("viewer")
    return {"version": __version__, "code": code_version(), "ledger": schema.VERSION}
