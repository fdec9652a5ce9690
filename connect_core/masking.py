"""What this process has resolved of references (`${env:…}`, `${file:…}`), and texts without it.

Whoever resolves a reference remembers the value here (`config.references`), in the driver and in each worker. Errors,
failures, gaps and rejects mask their texts when they are made, so that whatever is shown, logged or stored of them is
masked. A value is recognised as it is, and as it stands in a URL, in JSON and in Python's `repr`; what a system makes
of it otherwise (base64, a digest, a part of it) is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

MASKED = "***"
LEAST_CHARACTERS = 4
"""A shorter value stands in too many words: it would be masked where it says nothing, and not be hidden by that."""


class _Known:
    """Replaced as a whole with each new value: threads read it while others resolve."""

    def __init__(self, values: frozenset[str] = frozenset(), secrets: frozenset[str] = frozenset()) -> None:
        self.values, self.secrets = values, secrets
        self.any_value, self.any_secret = _pattern(values), _pattern(secrets)


def remember(value: str, *, secret: bool) -> None:
    """`value` is masked in texts from now on. `secret`: nothing may be named with it either (`names_secret`)."""
    global _known
    found = frozenset(one for one in (value, value.strip()) if len(one) >= LEAST_CHARACTERS)
    if not found <= (_known.secrets if secret else _known.values):
        _known = _Known(_known.values | found, _known.secrets | found if secret else _known.secrets)


def mask_secrets(text: str) -> str:
    """The text with `***` for each value that a reference stands for."""
    return _known.any_value.sub(MASKED, text)


def knows_secrets() -> bool:
    """Whether any value was remembered as a secret."""
    return bool(_known.secrets)


def names_secret(text: str) -> bool:
    """Whether the text holds a value that was remembered as a secret."""
    return _known.any_secret.search(text) is not None


def _pattern(values: frozenset[str]) -> re.Pattern[str]:
    """Matches any of them; the longest first, for one may begin with another one. Of none it matches nothing."""
    forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, forms)) or r"(?!)")


def _forms(value: str) -> Iterator[str]:
    yield value
    yield from (quote(value), quote(value, safe=""), quote_plus(value))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield from (repr(value)[1:-1], repr(value.encode())[2:-1])


_known = _Known()
