"""Tokens for callers of the server: made, listed, revoked, and looked up."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import cast

from connect_core import clock
from connect_core.config import database_url, find_home
from connect_core.errors import ConfigError, Fault
from connect_core.ledger import AccessToken, Ledger
from connect_core.sdk.values import Json
from connect_core.service.callers import ROLES, AccessRole, Caller
from connect_core.service.opened import Opened

EVERY = ("*",)
"""The patterns of a token that is for all connectors."""
_log = logging.getLogger(__name__)
_BEGINS = "wb_"
"""By which programs that look for secrets in files know one."""
_TOKEN = re.compile(_BEGINS + r"[A-Za-z0-9_-]{43}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", re.ASCII)
_PATTERN = re.compile(r"[A-Za-z0-9._*?!\[\]-]{1,100}", re.ASCII)
_LONGEST_S = 36_500 * 86_400.0
_SHOWN = ("name", "role", "connectors", "made_at", "made_by", "expires_at", "revoked_at")


def create(
    opened: Opened, name: str, role: str, *, connectors: Sequence[str] = EVERY, expires_s: float | None = None
) -> Json:
    """The result has the `token`: nobody can show it again. Raises ConfigError with every fault, and for a name that
    was given before."""
    if faults := tuple(_faults(name, role, connectors, expires_s)):
        raise ConfigError("No token is made", faults=faults)
    token = _BEGINS + secrets.token_urlsafe(32)
    until = None if expires_s is None else clock.utc() + timedelta(seconds=expires_s)
    made = opened.ledger.add_token(
        name, _digest(token), role=role, connectors=connectors, expires_at=until, who=opened.settings.user
    )
    return {"token": token, **_told(made)}


def listed(opened: Opened) -> list[Json]:
    """All that were ever made, by name."""
    return [_told(one) for one in opened.ledger.access_tokens()]


def revoke(opened: Opened, name: str) -> Json:
    """From now on it is refused. Raises ConfigError for a name that is not there."""
    return _told(opened.ledger.revoke_token(name, who=opened.settings.user))


def caller_of(token: str, address: str) -> Caller | None:
    """Who shows this token; None, with a line in the log, for one that does not hold. Asked at each request, and never
    remembered: what is revoked is refused at once. Raises Unreachable where the ledger does not answer."""
    found = None
    if _TOKEN.fullmatch(token):
        with Ledger.glance(database_url(find_home())) as ledger:
            found = ledger.access_token(_digest(token))
    if found is None or (why := _unfit(found)):
        _log.warning("Refused a caller from %s: %s", address, why if found else "the token is unknown")
        return None
    return Caller(found.name, cast(AccessRole, found.role), found.connectors, address)


def _unfit(found: AccessToken) -> str:
    """Why it does not hold; empty where it does."""
    if found.revoked_at is not None:
        return f"token {found.name} is revoked"
    if found.expires_at is not None and found.expires_at <= clock.utc():
        return f"token {found.name} has expired"
    if found.role not in ROLES:
        return f"token {found.name} has a role of another version"
    return ""


def _faults(name: str, role: str, connectors: Sequence[str], expires_s: float | None) -> Iterator[Fault]:
    if not _NAME.fullmatch(name):
        yield Fault("name", f"{name!r} cannot name a token: use 1 to 100 of A-Z a-z 0-9 . _ -")
    if role not in ROLES:
        yield Fault("role", f"{role!r} is none of {', '.join(ROLES)}")
    if not connectors:
        yield Fault("connectors", "name one pattern at least: * is for all")
    for pattern in connectors:
        if not _PATTERN.fullmatch(pattern):
            yield Fault("connectors", f"{pattern!r} is no pattern of names: use A-Z a-z 0-9 . _ - with *, ? and [abc]")
    if expires_s is not None and not 0 < expires_s <= _LONGEST_S:
        yield Fault("expires", "is above nothing and 100 years at most; a token without it never expires")


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _told(one: AccessToken) -> Json:
    """Without its digest."""
    return {key: getattr(one, key) for key in _SHOWN} | {"connectors": list(one.connectors)}
