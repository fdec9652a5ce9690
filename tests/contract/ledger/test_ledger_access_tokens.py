"""Tokens of callers: only their digests are kept, a name is given once, and each change is in the audit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
import sqlalchemy as sa

from connect_core.errors import ConfigError
from connect_core.ledger import AccessToken, Ledger
from connect_core.ledger.tables import AUDIT

DIGEST = sha256(b"one").hexdigest()
LATER = datetime.now(UTC) + timedelta(days=90)


def add(ledger: Ledger, name: str = "ci", digest: str = DIGEST, **other: Any) -> AccessToken:
    given: dict[str, Any] = {"role": "operator", "connectors": ("team-a-*", "b"), "expires_at": LATER, "who": "ann"}
    return ledger.add_token(name, digest, **given | other)


def deeds(ledger: Ledger) -> list[tuple[Any, ...]]:
    """Of no connector: what was done, by whom, with which detail."""
    with ledger._read() as connection:
        query = sa.select(AUDIT.c.action, AUDIT.c.who, AUDIT.c.detail).where(AUDIT.c.uid.is_(None)).order_by(AUDIT.c.id)
        return [tuple(row) for row in connection.execute(query)]


def test_a_token_is_found_by_its_digest_with_all_that_it_may(ledger: Ledger) -> None:
    assert ledger.access_token(DIGEST) is None
    before = datetime.now(UTC)
    made = add(ledger)
    assert ledger.access_token(DIGEST) == made
    assert (made.name, made.role, made.connectors, made.made_by) == ("ci", "operator", ("team-a-*", "b"), "ann")
    assert before <= made.made_at <= datetime.now(UTC)
    assert (made.expires_at, made.revoked_at) == (LATER, None)
    assert ledger.access_token(sha256(b"another").hexdigest()) is None


def test_they_are_listed_by_name(ledger: Ledger) -> None:
    add(ledger, "b", "2" * 64, expires_at=None)
    add(ledger, "a", "1" * 64)
    assert [(one.name, one.expires_at) for one in ledger.access_tokens()] == [("a", LATER), ("b", None)]


def test_a_name_is_given_once(ledger: Ledger) -> None:
    made = add(ledger)
    for _ in ("while it is there", "when it is revoked"):
        with pytest.raises(ConfigError, match="There is a token ci already, or was"):
            add(ledger, digest="2" * 64)
        ledger.revoke_token("ci", who="bea")
    assert [one.made_at for one in ledger.access_tokens()] == [made.made_at]
    assert ledger.access_token("2" * 64) is None


def test_one_that_is_revoked_is_so_once(ledger: Ledger) -> None:
    add(ledger)
    revoked = ledger.revoke_token("ci", who="bea")
    assert revoked.revoked_at is not None
    assert ledger.access_token(DIGEST) == ledger.revoke_token("ci", who="cy") == revoked
    with pytest.raises(ConfigError, match="There is no token cd"):
        ledger.revoke_token("cd", who="bea")


def test_who_made_and_who_revoked_it_is_in_the_audit_and_no_digest(ledger: Ledger) -> None:
    add(ledger)
    ledger.revoke_token("ci", who="bea")
    ledger.revoke_token("ci", who="cy")
    made = {"token": "ci", "role": "operator", "connectors": ["team-a-*", "b"], "expires_at": LATER.isoformat()}
    assert deeds(ledger) == [("create token", "ann", made), ("revoke token", "bea", {"token": "ci"})]
    assert DIGEST not in str(deeds(ledger))
