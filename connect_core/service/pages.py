"""Lists in pages: a page says where the next one begins, in a word that only this module reads. Pure."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from connect_core.errors import ConfigError, Fault
from connect_core.sdk.values import Json

MOST = 500
"""Entries of a page."""
_One = TypeVar("_One")


@dataclass(frozen=True)
class ListPage(Generic[_One]):
    """`after` is where the next page begins; None on the last one."""

    items: list[_One] = field(default_factory=list)
    after: str | None = None

    def told(self, name: str) -> Json:
        """With its entries as `name`."""
        return {name: self.items, "after": self.after}


def page(found: Sequence[_One], limit: int, place: Callable[[_One], Sequence[object]]) -> ListPage[_One]:
    """Of what was found, one more than `limit` where there are more; `place` is where an entry is in the list."""
    items = list(found[:limit])
    return ListPage(items, _word(place(items[-1])) if len(found) > limit else None)


def place_of(after: str, *kinds: type) -> tuple[Any, ...] | None:
    """What `place` gave for the last entry of the page before; None for the first page. Raises ConfigError for what is
    no such word of this list."""
    if not after:
        return None
    try:
        said = json.loads(urlsafe_b64decode(after.encode("ascii")))
        if not isinstance(said, list) or len(said) != len(kinds):
            raise ValueError
        return tuple(map(_read, said, kinds))
    except (ValueError, RecursionError):
        raise ConfigError(
            "The list has no such page",
            faults=(Fault("after", "is none that an earlier page of this list has given"),),
            next_step="Leave `after` out to begin with the first page",
        ) from None


def _word(place: Sequence[object]) -> str:
    said = [one.isoformat() if isinstance(one, datetime) else one for one in place]
    return urlsafe_b64encode(json.dumps(said).encode()).decode()


def _read(said: object, kind: type) -> object:
    if kind is datetime and isinstance(said, str):
        moment = datetime.fromisoformat(said)
        if moment.tzinfo is None:
            raise ValueError
        return moment
    if type(said) is not kind or (isinstance(said, int) and abs(said) >= 1 << 63):
        raise ValueError
    return said
