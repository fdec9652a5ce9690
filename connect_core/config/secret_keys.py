"""Keys that a document names by a reference, with an id that says which key is meant.

The id is no secret. So another key is another document, and a key that was replaced in its place is noticed before
anything is written with it. A key is read where workers run.
"""

from __future__ import annotations

from collections.abc import Iterator

from connect_core.config.references import REFERENCE, fault_in, reveal
from connect_core.errors import ConfigError
from connect_core.pipeline.key_ids import key_id_of

MIN_KEY = 16
"""Characters: what a short key has made is guessed, and the key with it."""
_MAKE_ONE = "openssl rand -hex 32"


def reference_faults(reference: str, key_id: str | None) -> Iterator[str]:
    """What is wrong with a key as a document names it. One that cannot be read here is judged where workers run."""
    if not REFERENCE.fullmatch(reference):
        yield "the key is a secret in plain text; write a reference: ${env:NAME} or ${file:PATH#KEY}"
    elif wrong := fault_in(reference):
        yield wrong
    elif reference.startswith("${stack:"):
        yield f"{reference} is no key; write ${{env:NAME}} or ${{file:PATH#KEY}}"
    else:
        yield from _judged(reference, key_id)


def _judged(reference: str, key_id: str | None) -> Iterator[str]:
    try:
        key = key_of(reference)
    except ConfigError as error:
        if not key_id:
            yield f"needs the key_id of {reference}, and it cannot be read here: {error.what}"
        return
    found = key_id_of(key)
    if len(key) < MIN_KEY:
        yield f"{reference} has less than {MIN_KEY} characters, which are found by trying; make one: {_MAKE_ONE}"
    elif not key_id:
        yield f"needs the id of its key, so that another key is another document; write key_id: {found}"
    elif found != key_id:
        yield f"{reference} is a key with the id {found}, and not {key_id}"


def key_of(reference: str) -> str:
    """Show nobody what it returns. Raises ConfigError for one that cannot be read."""
    key: str = reveal({"token": reference})["token"]
    return key
