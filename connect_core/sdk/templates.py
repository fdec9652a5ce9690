"""Texts with places that each record fills: `{topic[2]}-{$.id}`; and what these places, and conditions, name. Pure.

    $.temp   $.readings[0].value   $['outer temp']    a place in the payload, which is JSON
    topic                                             the topic
    header:x-tenant                                   a header (user property)
    TAGS     KEYS                                     the record's tags and its key; in a template also: tags, key
    payload:text                                      the whole payload, as text: of a file, the line
    file:path    file:name    file:offset             the file that a line is from, and its first byte's place there
    change:operation                                  create, update, delete or snapshot, of what happened to a row
    change:table                                      the table that the row is of

`[2]` behind any of these but the payload and a place in a file is its second level, between slashes, `[2:]` all from
there on. In a template `{header:MQTT_TOPIC|topic}` is the first of these that the record has, and `{{` and `}}` are
braces.

One language for the rules of a document and for the topic of a sink. Who fills a template says what `topic` is, and
what becomes of a record that has none of what a place names. A place in the payload is a singular query of JSONPath
(RFC 9535, section 2.3.5.1): names and indices only. In a condition only the topic has levels, and a header whose name
is one word may stand without `header:`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, get_args

from connect_core.sdk.topics import levels_of

Kind = Literal["payload", "text", "topic", "header", "tags", "key", "file", "change"]
OF_MESSAGES: frozenset[Kind] = frozenset(get_args(Kind)) - {"file", "change"}
OF_LINES: frozenset[Kind] = frozenset({"payload", "text", "file"})

_STEP = r"\.[^\W\d]\w*|\[-?\d+\]|\['[^']*'\]"
WRITTEN = (
    rf"\$(?:{_STEP})+|topic(?:\[[1-9]\d*:?\])?(?![\w$])|header:[\w.$-]+|(?:payload|file|change):\w+|[a-z_$][a-z0-9_$]*"
)
"""All that a condition may name, as a regular expression without regard to case."""
ADVICE = (
    "$.name of the payload, payload:text, topic, topic[1], topic[2:], header:NAME, TAGS, KEYS, file:path, file:name,"
    " file:offset, change:operation or change:table"
)

_PAYLOAD = re.compile(rf"\$((?:{_STEP})+)")
_STEPS = re.compile(_STEP)
_LEVELS = re.compile(r"(?P<whole>[^$].*)\[(?P<level>[^\[\]]*)\]", re.DOTALL)
_LEVEL = re.compile(r"([1-9]\d*)(:?)")
_WORD = re.compile(r"[a-z_$][a-z0-9_$]*", re.IGNORECASE | re.ASCII)
_OWN: dict[str, Kind] = {
    "topic": "topic",
    "TAGS": "tags",
    "KEYS": "key",
    "payload:text": "text",
    "change:operation": "change",
}
_OF_FILE = ("path", "name", "offset")
_WITHOUT_LEVELS = ("payload:text", "file:offset", "change:operation", "change:table")
_PIECE = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<names>(?:'[^']*'|[^{}'])*)\}|(?P<plain>[^{}]+)|(?P<wrong>[{}])")
_NEXT_NAME = re.compile(r"\|(?=(?:[^']*'[^']*')*[^']*$)")
"""Between two names: not within quotes."""


@dataclass(frozen=True)
class Reference:
    """`steps` are names and indices into the payload, `name` is a header's, or what is meant of a file or a change; of
    a change it is empty for the operation. `level` counts
    from 1, 0: the whole; `onward`: all from there on."""

    kind: Kind
    steps: tuple[str | int, ...] = ()
    name: str = ""
    level: int = 0
    onward: bool = False

    def level_of(self, whole: str) -> str | None:
        """What it names of the whole; None where that has fewer levels."""
        return levels_of(whole, self.level, onward=self.onward) if self.level else whole


@cache
def reference(text: str, *, bare: bool = False) -> Reference:
    """`bare`: in a condition. Raises ValueError for what names nothing."""
    if found := _PAYLOAD.fullmatch(text):
        return Reference("payload", steps=tuple(map(_step, _STEPS.findall(found[1]))))
    if found := _LEVELS.fullmatch(text):
        return _with_level(text, found["whole"], found["level"])
    if text in _OWN:
        return Reference(_OWN[text])
    if text.startswith("file:") and text.removeprefix("file:") in _OF_FILE:
        return Reference("file", name=text.removeprefix("file:"))
    if text == "change:table":
        return Reference("change", name="table")
    if text.startswith("header:") and len(text) > len("header:"):
        return Reference("header", name=text.removeprefix("header:"))
    if bare and _WORD.fullmatch(text):
        return Reference("header", name=text)
    if text in ("tags", "key"):
        return Reference("tags" if text == "tags" else "key")
    raise ValueError(f"{text!r} names nothing: write {ADVICE}")


def _with_level(text: str, whole: str, level: str) -> Reference:
    if whole in _WITHOUT_LEVELS:
        raise ValueError(f"{text!r} names nothing: {whole} has no levels")
    named, found = reference(whole), _LEVEL.fullmatch(level)
    if found is None or named.level:
        raise ValueError(f"{text!r} names nothing: levels count from 1, [2] is the second and [2:] all from there on")
    return replace(named, level=int(found[1]), onward=bool(found[2]))


def _step(text: str) -> str | int:
    if text.startswith("."):
        return text[1:]
    return text[2:-2] if text.startswith("['") else int(text[1:-1])


class NothingNamed(LookupError):
    """A record has nothing of what a place of the template names; says what was named."""


@dataclass(frozen=True)
class Placeholder:
    """What is filled in: the first of these that a record has. `text` is how it is written."""

    text: str
    names: tuple[Reference, ...]


@dataclass(frozen=True)
class Template:
    pieces: tuple[str | Placeholder, ...]

    @property
    def fixed(self) -> str | None:
        """The text, where it has no places."""
        return None if self.names() else "".join(str(piece) for piece in self.pieces)

    def places(self) -> list[Placeholder]:
        """What is filled in, in order."""
        return [piece for piece in self.pieces if isinstance(piece, Placeholder)]

    def names(self) -> frozenset[Reference]:
        return frozenset(name for place in self.places() for name in place.names)

    def fill(self, value_of: Callable[[Reference], str | None]) -> str:
        """`value_of` says what a record has as a whole, without regard to levels. Raises NothingNamed."""
        return "".join(piece if isinstance(piece, str) else _first(piece, value_of) for piece in self.pieces)


def _first(place: Placeholder, value_of: Callable[[Reference], str | None]) -> str:
    for one in place.names:
        if (whole := value_of(one)) and (value := one.level_of(whole)):
            return value
    raise NothingNamed(" or ".join(_NEXT_NAME.split(place.text)))


@cache
def template(text: str) -> Template:
    """Raises ValueError for a place that names nothing, and for a brace that stands alone."""
    pieces: list[str | Placeholder] = []
    for found in _PIECE.finditer(text):
        if found["wrong"]:
            raise ValueError(f"the brace at character {found.start() + 1} is not part of a pair: write {{{{ or }}}}")
        if (names := found["names"]) is not None:
            pieces.append(Placeholder(names, tuple(map(reference, _NEXT_NAME.split(names)))))
        else:
            pieces.append(found["brace"][0] if found["brace"] else found["plain"])
    return Template(tuple(pieces))
