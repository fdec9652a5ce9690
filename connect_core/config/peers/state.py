"""What a chain of transforms has made so far: the fields, the topics, the steps. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connect_core.config.peers.reading import PeerPart
from connect_core.pipeline.formats.patterns import TEXT_FORMAT
from connect_core.pipeline.transforms.paths import written
from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.types import Type
from connect_core.sdk.values import Json

EXACT_TEXTS = frozenset({"text", "bool", "int8", "int16", "int32", "int64"})
"""Types of which Java writes the same text as JSON has."""


@dataclass
class Chain:
    """`rows` are the fields; `single`: the value is no object but the one field that there is. `topics` says by the
    topic that a record has which one the transforms see, None once that depends on more. `key` are the fields of a key
    that is an object still, with the place among the steps where it was made; `single_key` is one that is none.
    `changes`: the values in the topic are change events, and the fields those of their rows."""

    rows: Type
    single: bool
    topics: Mapping[str, str] | None
    is_source: bool
    steps: list[Json] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)
    key: tuple[dict[str, Type], int] | None = None
    single_key: Type | None = None
    changes: bool = False

    def add(self, part: PeerPart, step: Json) -> None:
        """Refuses what cannot be done with the fields that there are."""
        try:
            self.rows = step_of(step).after(self.rows)
        except ValueError as why:
            raise part.refuse(str(why)) from None
        self.steps.append(step)

    def notice(self, part: PeerPart, words: str) -> None:
        self.notices.append((part.key, words))

    def fields(self, part: PeerPart) -> dict[str, Type]:
        """Those of the value, which must be an object."""
        if self.single:
            raise part.refuse(
                "the value is one text here, without fields: HoistField$Value makes an object of it first"
                if self.rows.field(TEXT_FORMAT)
                else "the value is one value by then, and no object"
            )
        return dict(self.rows.fields)

    def field(self, part: PeerPart, name: str, option: str) -> Type:
        fields = self.fields(part)
        if name not in fields:
            raise part.refuse(f"there is no field {name!r} (there are: {', '.join(fields)})", option)
        return fields[name]


def path(name: str) -> str:
    """A top-level field as steps write it."""
    return written((name,))


def reference(name: str) -> str:
    """As templates write it."""
    return f"{{$['{name}']}}"


def literal(text: str) -> str:
    """A text in which templates find no place."""
    return text.replace("{", "{{").replace("}", "}}")
