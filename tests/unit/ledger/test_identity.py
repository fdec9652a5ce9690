"""What a PostgreSQL answers that cannot say which server it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
from sqlalchemy.exc import DBAPIError

from connect_core.ledger.identity import Identity


class Refusal(psycopg2.Error):
    """With a code, which psycopg2 lets nobody set."""

    pgcode: str = ""


def refused(kind: type[psycopg2.Error], code: str, words: str) -> DBAPIError:
    error = type("Answered", (Refusal, kind), {"pgcode": code})(words)
    made: Any = DBAPIError.instance("SELECT", {}, error, psycopg2.Error)
    assert isinstance(made, DBAPIError)
    return made


class Answering(Identity):
    """A ledger on a server that answers the question with an error."""

    def __init__(self, error: DBAPIError) -> None:
        self._engine = SimpleNamespace(dialect=SimpleNamespace(name="postgresql"))  # type: ignore[assignment]
        self._error = error

    @contextmanager
    def _read(self) -> Iterator[Any]:  # type: ignore[override]
        yield self

    def scalar(self, _query: object) -> str:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        refused(psycopg2.ProgrammingError, "42501", "permission denied for function pg_control_system"),
        refused(psycopg2.NotSupportedError, "0A000", "Function pg_current_wal_lsn() is currently not supported"),
        refused(psycopg2.OperationalError, "55000", "wal_level must be set to 'logical'"),
    ],
    ids=["denied", "not-supported", "wal-level"],
)
def test_a_server_that_cannot_say_who_it_is_stops_nobody(error: DBAPIError) -> None:
    assert Answering(error)._server() == ""


@pytest.mark.parametrize(
    "error",
    [
        refused(psycopg2.OperationalError, "55000", "recovery is in progress"),
        refused(psycopg2.OperationalError, "57P01", "terminating connection due to administrator command"),
    ],
    ids=["recovery", "gone"],
)
def test_a_server_that_does_not_serve_now_is_not_taken_for_one_that_cannot_say(error: DBAPIError) -> None:
    with pytest.raises(DBAPIError):
        Answering(error)._server()
