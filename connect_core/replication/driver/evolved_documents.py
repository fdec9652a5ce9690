"""Whether a document can be stored that a run has evolved: checked as `apply` checks it, and beyond that by whoever
takes the new fields, a Schema Registry or a table."""

from __future__ import annotations

from pathlib import Path

from connect_core.config import Checked, ConnectorDocument, Settings, resolve, reveal
from connect_core.config.checking import check, load_document
from connect_core.config.row_types import registered_schema
from connect_core.config.written import Written
from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.replication.driver.schema_ids import with_schema_ids
from connect_core.sdk.values import Json
from connect_core.systems import SYSTEMS


def checked_evolved(old: Connector, data: Json, home: Path, settings: Settings, *, register: bool) -> Json:
    """See `context.CheckEvolved`. Raises also what a registry or a target fails with that does not answer."""
    where = f"connector {old.name}"
    checked = check(Written(_numbered_anew(old.document, data, where), where), home, settings)
    [checked] = with_schema_ids([checked], register=register)
    _require_room(load_document(old.document, where), checked, home, settings)
    return checked.data


def _numbered_anew(former: Json, data: Json, where: str) -> Json:
    """Without the number that a registry gave to the schema of before, where it is another one now."""
    if not data.get("encode", {}).get("registry"):
        return data
    bare = _without_number(data)
    before, now = (registered_schema(load_document(one, where)) for one in (_without_number(former), bare))
    return data if now == before else bare


def _without_number(data: Json) -> Json:
    return data | {"encode": {name: value for name, value in data["encode"].items() if name != "schema_id"}}


def _require_room(former: ConnectorDocument, checked: Checked, home: Path, settings: Settings) -> None:
    """Raises ConfigError where the target lacks something for the new fields that it had for those of before."""
    if not SYSTEMS[former.sink.system].takes_rows:
        return
    lacked = _lacks(former, home, settings)
    if new := [what for what in _lacks(checked.document, home, settings) if what not in lacked]:
        raise ConfigError("; ".join(new))


def _lacks(document: ConnectorDocument, home: Path, settings: Settings) -> list[str]:
    sink = resolve(document, home, settings, "").sink
    return [what for ok, what in SYSTEMS[sink.system].probe("sink", reveal(sink.options)) if not ok]
