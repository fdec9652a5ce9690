"""Attributes of CloudEvents in headers, as the bindings to protocols name them, and RocketMQ's SDK. Pure.

kafka      ce_id, content-type      header names of the Kafka binding
http       ce-id, content-type      those of HTTP and NATS, percent-encoded; read, not written
rocketmq   CE_id, CE_contenttype    properties, as the SDK of CloudEvents for Java has them
mqtt       id, content type         user properties of MQTT 5, which are headers with a prefix here
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.event_attributes import CONTENT_TYPE, SPECVERSION, STANDARD

STRUCTURED = "application/cloudevents+json"
_EVENT = "application/cloudevents"
_FORMATS = ("", "+json")
_USER, _ALL_USER = "MQTT_USER_", "MQTT_USER_PROPERTIES"
_STANDARD = frozenset((*STANDARD, SPECVERSION))
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BY_ITSELF = "content-type"

Pairs = Sequence[tuple[str, str]]


class Binding(NamedTuple):
    prefix: str
    """Before the name of an attribute."""
    content_type: str


BINDINGS: Mapping[str, Binding] = {
    "kafka": Binding("ce_", _BY_ITSELF),
    "http": Binding("ce-", _BY_ITSELF),
    "rocketmq": Binding("CE_", "CE_contenttype"),
    "mqtt": Binding(_USER, "MQTT_CONTENT_TYPE"),
}
_CONTENT_TYPES = frozenset(one.content_type for one in BINDINGS.values())


class InHeaders(NamedTuple):
    """Of an event of binary mode."""

    attributes: dict[str, str]
    """Without `specversion`; with the content type of the data, where there is one."""
    version: str
    rocketmq: bool
    """Whether its SDK wrote it, which has a body of one zero byte for no data."""


def is_structured(headers: Pairs) -> bool:
    """Whether a content type says that the payload is a whole event. Raises Misfit for a batch, or not JSON."""
    for name, value in headers:
        if _content_type_name(name) and value.lower().startswith(_EVENT):
            form = value.lower().removeprefix(_EVENT).partition(";")[0].strip()
            if form not in _FORMATS:
                what = "a batch of events" if form.startswith("-batch") else "an event that is not in JSON"
                raise Misfit(f"{what}, says the content type")
            return True
    return False


def in_headers(headers: Pairs, extensions: Collection[str], *, drop: bool) -> InHeaders | None:
    """None where no `specversion` is among the headers. Raises Misfit; `drop`: not for what is not declared."""
    found = {name: pairs for name in BINDINGS if SPECVERSION in dict(pairs := _of(name, headers))}
    if not found:
        return None
    if len(found) > 1:
        raise Misfit("specversion: in headers of several bindings")
    [(binding, pairs)] = found.items()
    known = _STANDARD | frozenset(extensions)
    others = [name for name, _ in pairs if name not in known]
    if others and not drop and binding != "mqtt":  # where any user property may stand beside them
        raise Misfit("an attribute that is not declared (unknown: drop leaves such out)")
    attributes: dict[str, str] = {}
    for name, value in pairs:
        if name in known:
            if name in attributes:
                raise Misfit(f"{name}: given more than once")
            attributes[name] = value
    if binding == "rocketmq":  # its SDK writes extensions without a prefix, and reads them with one
        attributes = {name: value for name, value in headers if name in extensions} | attributes
    content_type = BINDINGS[binding].content_type
    attributes |= [(CONTENT_TYPE, value) for name, value in headers if _content_type_name(name) == content_type]
    return InHeaders(attributes, attributes.pop(SPECVERSION), binding == "rocketmq")


def _content_type_name(name: str) -> str:
    """Of a header that is a content type, how its binding calls it; empty for others."""
    return name if name in _CONTENT_TYPES else _BY_ITSELF if name.lower() == _BY_ITSELF else ""


def _of(binding: str, headers: Pairs) -> Pairs:
    """Attributes by their own names."""
    prefix = BINDINGS[binding].prefix
    if binding == "mqtt":
        return user_properties(headers)
    if binding == "http":
        return [
            (name.lower().removeprefix(prefix), _decoded(value))
            for name, value in headers
            if name.lower().startswith(prefix)
        ]
    return [
        (name.removeprefix(prefix), value)
        for name, value in headers
        if name.startswith(prefix) and name not in _CONTENT_TYPES
    ]


def user_properties(headers: Pairs) -> Pairs:
    """Of MQTT 5, without their prefix."""
    whole = next((value for name, value in headers if name == _ALL_USER), None)
    if whole is None:
        return [(name.removeprefix(_USER), value) for name, value in headers if name.startswith(_USER)]
    try:
        pairs = [(name, value) for name, value in json.loads(whole)]
    except (ValueError, TypeError, RecursionError):
        pairs = [("", None)]
    if not all(isinstance(one, str) for pair in pairs for one in pair):
        raise Misfit(f"header {_ALL_USER}: not a JSON list of pairs")
    return pairs


def _decoded(value: str) -> str:
    """Of HTTP: a quoted text, or not; then percent-encoded."""
    if quoted := _QUOTED.fullmatch(value):
        value = re.sub(r"\\(.)", r"\1", quoted[1])
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        raise Misfit("a header of the event: percent-encoded, but not UTF-8") from None


def without_event(headers: Pairs, into: str, extensions: Collection[str]) -> list[tuple[str, str]]:
    """The headers of a record that becomes an event: not those of the event, or of the content, that it was. `into`:
    the binding in which it will have new ones, which are not mistaken for others then. Raises Misfit."""
    if not headers:
        return []
    own = _STANDARD | frozenset(extensions)
    of_mqtt, of_rocketmq = (SPECVERSION in dict(_of(one, headers)) for one in ("mqtt", "rocketmq"))
    user = own if of_mqtt or into == "mqtt" else frozenset()
    plain = own if into == "mqtt" else frozenset(extensions) if of_rocketmq else frozenset()
    gone = plain | {f"{_USER}{name}" for name in user}
    kept = [(name, value) for name, value in headers if not _is_of_event(name) and name not in gone]
    if not any(name == _ALL_USER for name, _ in kept):
        return kept
    listed = _listed([pair for pair in user_properties(headers) if pair[0] not in user])
    return [(name, listed if name == _ALL_USER else value) for name, value in kept]


def _is_of_event(name: str) -> bool:
    return bool(_content_type_name(name)) or name.startswith(("ce_", "CE_")) or name.lower().startswith("ce-")


def _listed(pairs: Pairs) -> str:
    return json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))


def with_event(
    kept: list[tuple[str, str]], attributes: Iterable[tuple[str, str]], content_type: str | None, binding: str
) -> list[tuple[str, str]]:
    """Behind the others, which are those that `without_event` has left. Raises Misfit."""
    prefix, name_of_type = BINDINGS[binding]
    typed = [] if content_type is None else [(name_of_type, content_type)]
    if binding == "mqtt" and any(name == _ALL_USER for name, _ in kept):  # these are all, whatever else there is
        pairs = _listed([*user_properties(kept), *attributes])
        return [(name, pairs if name == _ALL_USER else value) for name, value in kept] + typed
    return [*kept, *((f"{prefix}{name}", value) for name, value in attributes), *typed]
