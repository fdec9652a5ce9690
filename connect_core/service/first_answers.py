"""A request with a key is worked on once: the same request of the same caller gets the first answer again.

The key is taken before anything is done. A process that is killed in between leaves it taken: the next request takes it
over once that process is gone for sure, and is worked on again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from connect_core.errors import ConfigError, Retriable
from connect_core.ledger import FirstAnswer
from connect_core.sdk.values import Json
from connect_core.service import callers
from connect_core.service.opened import storing
from connect_core.service.serving_process import is_gone, this_process

_HALF = 4
"""Bytes: the first half of an attempt is that of the first attempt with its key."""


class KeyReused(ConfigError):
    """Another request of this caller had the key."""


class KeyInUse(Retriable):
    """The request with this key is worked on."""


@dataclass(frozen=True)
class KeptAnswer:
    status: int
    headers: Json
    body: str


@dataclass(frozen=True)
class TakenKey:
    """A key whose request is to be worked on now."""

    caller: str
    key: str
    attempt: str


def take(key: str, digest: str) -> TakenKey | KeptAnswer:
    """The first answer where there is one. Raises KeyReused for a request with another `digest`, and KeyInUse while the
    first one is worked on."""
    caller, attempt = callers.name(), secrets.token_hex(2 * _HALF)
    with storing() as opened:
        assert opened.home is not None  # `storing` makes one
        server = this_process(opened.home)
        found = opened.ledger.take_key(caller, key, digest=digest, server=server, attempt=attempt)
        if found.digest != digest:
            raise KeyReused("Another request had this Idempotency-Key", next_step="Take a new key for a new request")
        if found.attempt == attempt:
            return TakenKey(caller, key, attempt)
        if found.status is not None:
            return KeptAnswer(found.status, found.headers or {}, found.body or "")
        next_one = _first_half(found) + attempt[2 * _HALF :]
        if is_gone(opened.home, found.server) and opened.ledger.take_over_key(
            caller, key, found, server=server, attempt=next_one
        ):
            return TakenKey(caller, key, next_one)
    raise KeyInUse("The request with this Idempotency-Key is still worked on", next_step="Wait a moment, and repeat it")


def keep(taken: TakenKey, answer: KeptAnswer) -> None:
    with storing() as opened:
        opened.ledger.keep_answer(
            taken.caller,
            taken.key,
            taken.attempt,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
        )


def forget(taken: TakenKey) -> None:
    """Of a request that came to nothing: the same again is worked on."""
    with storing() as opened:
        opened.ledger.forget_key(taken.caller, taken.key, taken.attempt)


_working: ContextVar[TakenKey | None] = ContextVar("request key", default=None)


@contextmanager
def working_on(taken: TakenKey) -> Iterator[None]:
    """Everything inside the block is done for this request."""
    before = _working.set(taken)
    try:
        yield
    finally:
        _working.reset(before)


def request_key() -> str:
    """The same for every attempt at the request that is worked on; empty for one without a key."""
    taken = _working.get()
    return taken.attempt[: 2 * _HALF] if taken else ""


def _first_half(found: FirstAnswer) -> str:
    return found.attempt[: 2 * _HALF]
