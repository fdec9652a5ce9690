"""The topic of a publish, made of a record: `devices/{key}/cmd`. Pure.

`{topic}`, `{tags}`, `{key}` and `{header:NAME}` stand for what a record has; `{header:MQTT_TOPIC|topic}` for the first
of these that it has. `[2]` behind one of them is its second level, `[2:]` all from there on: `{header:MQTT_TOPIC[2:]}`
takes a first level off. What a topic name may be: MQTT 5, section 4.7 (3.1.1: the same).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from connect_core.sdk.topics import levels_of
from connect_core.systems.topic_filters import CONTROL, MAX_BYTES

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_COLUMNS = ("topic", "tags", "key")
_HEADER = "header:"
_LEVELS = re.compile(r"(?P<name>.+)\[(?P<level>[1-9]\d*)(?P<onward>:?)\]")


class Unfit(NamedTuple):
    """Why a record can never be published: a class and a sentence, without anything of the record in it."""

    kind: str
    message: str


class Named(NamedTuple):
    """What a record can be addressed by."""

    topic: str | None
    tags: str | None
    key: str | None
    headers: Mapping[str, str]


@dataclass(frozen=True)
class TopicTemplate:
    """`parts` are texts and, in between, lists of names of which the first that a record has is taken."""

    text: str
    parts: tuple[str | tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: str) -> TopicTemplate:
        """Raises ValueError for what cannot be a topic whatever records are like."""
        pieces = _PLACEHOLDER.split(text)
        texts, names = pieces[::2], [tuple(one.split("|")) for one in pieces[1::2]]
        if any("{" in one or "}" in one for one in texts):
            raise ValueError("has a brace that belongs to no placeholder")
        for one in (name for choice in names for name in choice):
            if not _is_name(_LEVELS.sub(r"\g<name>", one)):
                raise ValueError(f"{{{one}}} is none of {{topic}}, {{tags}}, {{key}} and {{header:NAME}}")
        if wrong := _wrong("x".join(texts)):
            raise ValueError(wrong)
        parts: list[str | tuple[str, ...]] = [texts[0]]
        for choice, behind in zip(names, texts[1:], strict=True):
            parts += [choice, behind]
        return cls(text, tuple(one for one in parts if one))

    @property
    def fixed(self) -> bool:
        """Whether every record goes to the same topic."""
        return all(isinstance(one, str) for one in self.parts)

    def fill(self, record: Named) -> str | Unfit:
        made = []
        for part in self.parts:
            value = part if isinstance(part, str) else _first(part, record)
            if value is None:
                return Unfit("NoTopic", f"The record has no {' or '.join(part)}, and its topic is made of that")
            made.append(value)
        topic = "".join(made)
        wrong = _wrong(topic)
        return Unfit("IllegalTopic", f"The topic made of the record {wrong}") if wrong else topic


def _first(names: tuple[str, ...], record: Named) -> str | None:
    values = (_value(name, record) for name in names)
    return next((value for value in values if value), None)


def _is_name(text: str) -> bool:
    return text in _COLUMNS or (text.startswith(_HEADER) and text != _HEADER)


def _value(name: str, record: Named) -> str | None:
    if found := _LEVELS.fullmatch(name):
        whole = _value(found["name"], record)
        return whole and levels_of(whole, int(found["level"]), onward=bool(found["onward"]))
    if name.startswith(_HEADER):
        return record.headers.get(name.removeprefix(_HEADER))
    value: str | None = getattr(record, name)
    return value


def _wrong(topic: str) -> str:
    """What keeps this from being the name of a topic; empty when nothing does."""
    if not topic:
        return "is empty"
    if "+" in topic or "#" in topic:
        return "holds a wildcard, + or #"
    if CONTROL.search(topic):
        return "holds a control character, at which a broker may end the connection"
    if topic.startswith("$"):
        return "begins with $: such topics are the broker's own"
    if len(topic.encode(errors="replace")) > MAX_BYTES:
        return f"has more than {MAX_BYTES} bytes"
    return ""
