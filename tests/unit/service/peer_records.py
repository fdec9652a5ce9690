"""Records of the topics of RocketMQ Connect, as its `JsonConverter` and `BrokerBasedLog` write them: key and value."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

Record = tuple[str, bytes]
_TEXT, _NUMBER = {"type": "string", "optional": False}, {"type": "int64", "optional": False}
_OPTIONAL = {"type": "string", "optional": True}
_PROPERTIES = {"type": "map", "keys": _OPTIONAL, "values": _OPTIONAL, "optional": False}


def _struct(**fields: Any) -> dict[str, Any]:
    return {
        "type": "struct",
        "optional": False,
        "fields": [{**kind, "field": name} for name, kind in fields.items()],
    }


def record(key: str, schema: Any, payload: Any) -> Record:
    return b64encode(key.encode()).decode(), json.dumps({"schema": schema, "payload": payload}).encode()


def configured(name: str, epoch: int, properties: dict[str, str], state: str = "STARTED") -> Record:
    schema = _struct(state=_TEXT, epoch=_NUMBER, properties=_PROPERTIES)
    return record(f"connector-{name}", schema, {"state": state, "epoch": epoch, "properties": properties})


def wished(name: str, epoch: int, state: str) -> Record:
    return record(f"target-state-{name}", _struct(state=_TEXT, epoch=_NUMBER), {"state": state, "epoch": epoch})


def deleted(name: str, epoch: int) -> Record:
    schema = _struct(epoch=_NUMBER, deleted={"type": "boolean", "optional": False})
    return record(f"target-state-{name}", schema, {"epoch": epoch, "deleted": True})


def positioned(
    name: str | None, partition: dict[str, Any], offset: dict[str, Any], kind: str = "POSITION_CHANG"
) -> Record:
    key = json.dumps({"schema": None, "payload": [kind, name, partition]})
    return record(key, None, offset)
