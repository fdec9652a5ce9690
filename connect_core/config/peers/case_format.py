"""Names from one case to another, as Guava's CaseFormat does it for RocketMQ Connect. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Format(NamedTuple):
    separator: str
    upper: bool = False
    camel: bool = False
    first_is_upper: bool = False

    def word(self, word: str, *, first: bool) -> str:
        if not self.camel:
            return word.upper() if self.upper else word.lower()
        return word.lower() if first and not self.first_is_upper else word[:1].upper() + word[1:].lower()


FORMATS = {
    "LOWER_HYPHEN": _Format("-"),
    "LOWER_UNDERSCORE": _Format("_"),
    "LOWER_CAMEL": _Format("", camel=True),
    "UPPER_CAMEL": _Format("", camel=True, first_is_upper=True),
    "UPPER_UNDERSCORE": _Format("_", upper=True),
}


def converted(name: str, given: str, wanted: str) -> str:
    """`given` and `wanted` are names of FORMATS."""
    if given == wanted:
        return name
    before, behind = FORMATS[given], FORMATS[wanted]
    words = [one for one in re.split("(?=[A-Z])", name) if one] if before.camel else name.split(before.separator)
    return behind.separator.join(behind.word(word, first=not place) for place, word in enumerate(words))
