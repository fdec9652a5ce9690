"""Fields that a document has inferred: `fields: infer` becomes those that `apply` has found.

So the stored document has the fields themselves: nothing is guessed when a range is finished, or a second time when the
same document is applied again (delivery rule 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from connect_core.pipeline.formats.known import INFER
from connect_core.sdk.values import Json

_FOUND = ("fields", "inferred", "evolved")


def with_fields(data: Json, found: Mapping[str, Json]) -> Json:
    """The document with what was found for its name, in place of `infer`, or beside fields that evolve; as it is where
    nothing was."""
    parse, name = data.get("parse"), data.get("name")
    if not isinstance(parse, dict) or not isinstance(name, str):
        return data
    if parse.get("fields") != INFER and parse.get("unknown") != "evolve":
        return data
    return data | {"parse": parse | found.get(name, {})}


def stored_fields(document: Json) -> Json | None:
    """What was found for a stored document; None where a person has written its fields, or it has none."""
    parse: Any = document.get("parse") or {}
    return {key: parse[key] for key in _FOUND if key in parse} if parse.get("inferred") else None


def described(inferred: Json) -> str:
    """Where inferred fields are from, for people."""
    at = datetime.fromisoformat(str(inferred["at"]))
    records, others = inferred["records"], inferred.get("others", 0)
    words = f"inferred on {at:%Y-%m-%d %H:%M:%S} UTC from {records:,} {'record' if records == 1 else 'records'}"
    return f"{words}, beside {others:,} that {'was' if others == 1 else 'were'} no JSON object" if others else words
