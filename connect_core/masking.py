"""What this process has resolved of references (`${env:…}`, `${file:…}`), and texts without it.

Whoever resolves a reference remembers the value here (`config.references`), in the driver and in each worker. Errors,
failures, gaps and rejects mask their texts when they are made, so that whatever is shown, logged or stored of them is
masked. A value is recognised as it is, and as it is written in a URL, in JSON, in HTML and XML, for a shell and by
Python's `repr` and `ascii`, also when one of these holds another. What a system makes of it otherwise (base64, a
digest, a part of it) is not.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import cache
from threading import Lock
from urllib.parse import quote, quote_plus

MASKED = "***"
LEAST_CHARACTERS = 4
"""A shorter value stands in too many words: it would be masked where it says nothing, and not be hidden by that."""

_QUOTED_BY_PYDANTIC = re.compile(r"(?<=input_value=).*?(?=, input_type=)", re.DOTALL)
"""In the text of a `ValidationError`. Pydantic cuts long values in the middle, and a part is not recognised."""


_remembering = Lock()


class _Known:
    """Replaced as a whole with each new value: threads read it while others resolve."""

    def __init__(self, values: frozenset[str] = frozenset(), secrets: frozenset[str] = frozenset()) -> None:
        self.values, self.secrets = values, secrets
        self.forms, self.secret_forms = _forms_of(values), _forms_of(secrets)


def remember(value: str, *, secret: bool) -> None:
    """`value` is masked in texts from now on. `secret`: nothing may be named with it either (`names_secret`)."""
    global _known
    found = frozenset(one for one in (value, value.strip()) if len(one) >= LEAST_CHARACTERS)
    with _remembering:  # what two threads remember at once is known afterwards, both of it
        if not found <= (_known.secrets if secret else _known.values):
            _known = _Known(_known.values | found, _known.secrets | found if secret else _known.secrets)


def mask_secrets(text: str) -> str:
    """The text with `***` for each value that a reference stands for, and for what pydantic quotes."""
    forms = _known.forms
    for form in forms:
        text = text.replace(form, MASKED)
    return _QUOTED_BY_PYDANTIC.sub(MASKED, text) if forms else text


def knows_secrets() -> bool:
    """Whether any value was remembered as a secret."""
    return bool(_known.secrets)


def names_secret(text: str) -> bool:
    """Whether the text holds a value that was remembered as a secret."""
    return any(form in text for form in _known.secret_forms)


def _forms_of(values: frozenset[str]) -> list[str]:
    """The longest first, for one may be a part of another one."""
    return sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)


@cache
def _forms(value: str) -> frozenset[str]:
    """The value, as each of `_ENCODINGS` writes it, and as each writes that again."""
    once = {value} | {encode(value) for encode in _ENCODINGS}
    return frozenset(once | {encode(form) for form in once for encode in _ENCODINGS})


def _lower(encode: Callable[[str], str]) -> Callable[[str], str]:
    """`%2f` for `%2F`."""
    return lambda text: re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), encode(text))


def _fully_quoted(text: str) -> str:
    return quote(text, safe="")


_BOTH_QUOTES = "'\""
"""Python escapes the first in a text that holds both, so what else the text holds decides how a value is written. The
literal of a text with these at its end closes with four characters: these, a backslash and its own quote."""

_IN_URLS: tuple[Callable[[str], str], ...] = (quote, _fully_quoted, quote_plus)
_ENCODINGS: tuple[Callable[[str], str], ...] = (
    *_IN_URLS,
    *map(_lower, _IN_URLS),
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: repr(text + _BOTH_QUOTES)[1:-4],
    lambda text: ascii(text)[1:-1],
    lambda text: ascii(text + _BOTH_QUOTES)[1:-4],
    lambda text: repr(text.encode())[2:-1],
    lambda text: repr((text + _BOTH_QUOTES).encode())[2:-4],
    html.escape,
    lambda text: html.escape(text, quote=False),
    lambda text: text.replace("'", "'\"'\"'"),  # as `shlex.quote` writes it
)

_known = _Known()
