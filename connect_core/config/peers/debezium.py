"""The transforms of Debezium: ExtractNewRecordState, which leaves the row of a change event. Pure.

https://debezium.io/documentation/reference/stable/transformations/event-flattening.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connect_core.config.peers.reading import PeerPart
from connect_core.config.peers.state import Chain, path, reference

PACKAGE = "io.debezium.transforms."
UNWRAP = "ExtractNewRecordState"
_MODE, _FORMER_MODE = "delete.tombstone.handling.mode", "delete.handling.mode"
_REWRITES = {"rewrite": True, "rewrite-with-tombstone": True, "drop": False, "tombstone": False, "": False}
"""By the mode whether a deleted row stays, with `__deleted`. Tombstones, which some modes keep, no topic has here."""
_CHANGE = 'record."change:operation"'
_DELETED = f"CASE WHEN {_CHANGE} = 'delete' THEN 'true' ELSE 'false' END"
_OP = f"CASE {_CHANGE} WHEN 'create' THEN 'c' WHEN 'update' THEN 'u' WHEN 'delete' THEN 'd' ELSE 'r' END"
_ELSEWHERE = {
    "ByLogicalTableRouter": "use org.apache.kafka.connect.transforms.RegexRouter",
    "ContentBasedRouter": "it runs a script: rules of a native document choose topics (when, to)",
    "Filter": "it runs a script: write filter.when in a native document, as change:operation = 'create'",
    "HeaderToValue": "write set: {name: '{header:NAME}'} in a native document",
    "outbox.EventRouter": "write rules in a native document, as to: 'outbox.event.{$.aggregatetype}' and keys",
}
"""What does the same here."""
_SWITCH = ("true", "false")


def _unwrap(part: PeerPart, chain: Chain) -> None:
    if chain.is_source or chain.single:
        raise part.refuse("is for change events in a topic, which a sink reads with value.converter: JsonConverter")
    if any("filter" not in step for step in chain.steps) or chain.changes:
        raise part.refuse("has to come first: waybill.fields are those of the row, which only it takes out of an event")
    rewrites = _rewrites(part)
    chain.changes = True
    if not rewrites:
        chain.add(part, {"filter": "change:operation <> 'delete'"})
    fields, headers = _added(part, "add.fields"), _added(part, "add.headers")
    columns = dict.fromkeys(fields, _OP) | ({"__deleted": _DELETED} if rewrites else {})
    if taken := next((name for name in columns if name in chain.fields(part)), None):
        raise part.refuse(f"there is a field {taken!r} already")
    helper = next(iter(fields), "waybill:op") if headers else ""
    worked_out = {helper: _OP} | columns if helper else columns
    if worked_out:
        words = ", ".join(f"{expression} AS {_quoted(name)}" for name, expression in worked_out.items())
        chain.add(part, {"sql": f"SELECT *, {words} FROM records"})
    if headers:
        chain.add(part, {"record": {"headers": dict.fromkeys(headers, reference(helper))}})
        if helper not in columns:
            chain.add(part, {"drop": [path(helper)]})
    _check_others(part, chain)


def _rewrites(part: PeerPart) -> bool:
    """Whether a deleted row stays."""
    option = _MODE if part.get(_MODE) else _FORMER_MODE
    mode = part.get(option).lower()
    part.get(_FORMER_MODE)
    part.one_of("drop.tombstones", *_SWITCH)
    if mode in ("none", "delete-to-tombstone"):
        words = "nothing here is a tombstone: rewrite keeps a deleted row, with __deleted"
        raise part.refuse(f"{words}; a native document with a table as its sink deletes it", option)
    if mode not in _REWRITES:
        raise part.refuse(f"{mode!r} is none of {', '.join(filter(None, _REWRITES))}", option)
    return _REWRITES[mode]


def _added(part: PeerPart, option: str) -> list[str]:
    """What the operation is called there."""
    prefix = part.get(f"{option}.prefix", "__")
    names = []
    for one in part.words(option):
        field, _, name = one.partition(":")
        if field != "op":
            words = "what an event says beside its row and op is not read by parse: {format: debezium}"
            fields = "fields: {after: {id: int64}, source: {table: text}}, unknown: drop"
            raise part.refuse(f"{field}: {words}; a native document does: {{format: json-schema, {fields}}}", option)
        names.append(prefix + (name or field))
    return names


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_others(part: PeerPart, chain: Chain) -> None:
    if part.get("drop.fields.header.name"):
        words = "which fields a record loses, a header of it would say: use ReplaceField$Value and exclude"
        raise part.refuse(words, "drop.fields.header.name")
    part.one_of("drop.fields.from.key", *_SWITCH)
    part.one_of("drop.fields.keep.schema.compatible", *_SWITCH)
    if part.one_of("replace.null.with.default", *_SWITCH) == "true":
        raise part.refuse("defaults of a schema are not filled in here: write false", "replace.null.with.default")
    if part.get("route.by.field"):
        chain.topics = None
        chain.notice(part, "accepted: the target of this sink does not depend on the topic")
    chain.notice(part, "what is no change of a row, such as a truncate, is rejected; Debezium drops it or leaves it")


def find(cls: str) -> Callable[[PeerPart, Chain], None] | None:
    """None for a class that is not Debezium's. Raises ValueError for one that is not kept."""
    name = cls.removeprefix(PACKAGE)
    if name == cls:
        return None
    if name in _ELSEWHERE:
        raise ValueError(f"is not kept: {_ELSEWHERE[name]}")
    return CLASSES.get(name)


CLASSES: Mapping[str, Callable[[PeerPart, Chain], None]] = {UNWRAP: _unwrap}
