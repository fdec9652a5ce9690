"""The keys of transforms and predicates in a flat document, read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


class NotKept(ValueError):
    """What cannot be kept: the key, and what to write instead."""

    def __init__(self, key: str, words: str) -> None:
        super().__init__(words)
        self.key = key


@dataclass(frozen=True)
class PeerPart:
    """One transform or predicate. `cls` is its class; `options` are its own keys, without what stands before them."""

    name: str
    prefix: str
    cls: str
    options: Mapping[str, str]
    predicate: PeerPart | None = None
    negate: bool = False
    known: set[str] = field(default_factory=set)
    """The options that were asked for."""

    @property
    def key(self) -> str:
        """Where its class is said."""
        return f"{self.prefix}.{'type' if 'type' in self.options else 'class'}"

    def get(self, option: str, otherwise: str = "") -> str:
        self.known.add(option)
        return self.options.get(option, otherwise).strip()

    def need(self, option: str) -> str:
        value = self.get(option)
        if not value:
            raise NotKept(f"{self.prefix}.{option}", f"is missing: {_short(self.cls)} needs it")
        return value

    def one_of(self, option: str, *allowed: str) -> str:
        """One of these words, in small letters; empty where the option is not there."""
        given = self.get(option).strip().lower()
        if given and given not in allowed:
            raise self.refuse(f"{given!r} is none of {', '.join(allowed)}", option)
        return given

    def words(self, option: str, *others: str) -> list[str]:
        """A list with commas, under the first of these names that is there."""
        text = next((found for one in (option, *others) if (found := self.get(one))), "")
        return [one.strip() for one in text.split(",") if one.strip()]

    def refuse(self, words: str, option: str = "") -> NotKept:
        return NotKept(f"{self.prefix}.{option}" if option else self.key, words)


def transforms_in(flat: Mapping[str, Any]) -> Iterator[PeerPart]:
    """In order. Raises NotKept."""
    predicates = dict(_parts(flat, "predicates"))
    for name, part in _parts(flat, "transforms"):
        predicate = part.get("predicate")
        if predicate and predicate not in predicates:
            there = ", ".join(predicates) or "none"
            raise part.refuse(f"there is no predicate {predicate!r} in predicates (there are: {there})", "predicate")
        negate = part.get("negate", "false").lower()
        if negate not in ("true", "false"):
            raise part.refuse(f"{negate!r} is neither true nor false", "negate")
        found = predicates.get(predicate)
        yield PeerPart(name, part.prefix, part.cls, part.options, found, negate == "true", part.known)


def unknown_options(part: PeerPart) -> Iterator[str]:
    """Keys of a transform that its translation did not ask for."""
    yield from (f"{part.prefix}.{name}" for name in part.options if name not in part.known)


def _parts(flat: Mapping[str, Any], key: str) -> Iterator[tuple[str, PeerPart]]:
    names = [one.strip() for one in str(flat.get(key) or "").split(",") if one.strip()]
    if twice := next((one for one in names if names.count(one) > 1), None):
        raise NotKept(key, f"{twice!r} is there twice")
    for written in flat:
        if written.startswith(f"{key}.") and not any(written.startswith(f"{key}.{name}.") for name in names):
            raise NotKept(written, f"belongs to no name in {key} (there are: {', '.join(names) or 'none'})")
    for name in names:
        prefix = f"{key}.{name}"
        options = {
            re.sub(rf"^{re.escape(prefix)}\.", "", one): _text(value)
            for one, value in flat.items()
            if one.startswith(f"{prefix}.")
        }
        cls = options.get("type", options.get("class", "")).strip()
        if not cls:
            raise NotKept(f"{prefix}.type", f"is missing: {name!r} in {key} needs a class")
        yield name, PeerPart(name, prefix, cls, options, known={"type", "class"})


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(cls: str) -> str:
    return cls.rpartition(".")[2]
