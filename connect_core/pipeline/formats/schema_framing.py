"""What formats with a schema say of the number that it has in a Schema Registry. Pure, and light."""

from __future__ import annotations

from connect_core.rows.avro_frames import MAX_ID
from connect_core.sdk.values import Json

PLAIN = "plain"
FRAMED = ("framing", "schema_id", "registry")
"""The options of such a format."""


def check_framing(part: Json) -> None:
    """Of a `parse` or `encode` with what it leaves out. Raises ValueError."""
    framing, number, registry = part["framing"], part["schema_id"], part["registry"]
    for name, value in (("schema_id", number), ("registry", registry)):
        if value is not None and framing != "registry":
            raise ValueError(f"{name} goes with framing: registry")
    if framing == "registry" and number is None and registry is None:
        raise ValueError("framing: registry needs schema_id, the number of the schema there; or registry, to ask it")
    if number is not None and not 0 < number <= MAX_ID:
        raise ValueError(f"schema_id must be from 1 to {MAX_ID:,}")
