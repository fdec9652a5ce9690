"""What an answer of PostgreSQL means to a run, by its SQLSTATE. Nothing of a row goes into a message: the server quotes
values, so its own words are not passed on where they may hold some.

https://www.postgresql.org/docs/15/errcodes-appendix.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg2

from connect_core.errors import ConfigError, Missing, Refused, Retriable, Unreachable, WaybillError
from connect_core.sdk.kits.refused import RowsRefused

_OF_ROWS = ("21", "22", "23", "44", "54")
"""Classes: cardinality, data, constraints, WITH CHECK OPTION, limits (of an index, of a row); and what triggers raise
(P0001)."""
_BY_TRIGGER = "P0001"
_MISSING = {
    "42P01": "There is no such table",
    "42703": "The table has no such column",
    "3F000": "There is no such schema",
}
_ACCESS = {"28000": "The login was refused", "28P01": "The login was refused", "3D000": "There is no such database"}
_NO_LOGIN = ("authentication failed", "no password supplied", "no pg_hba.conf entry", 'FATAL:  role "')
_NO_DATABASE = 'FATAL:  database "'
_NO_TLS = ("SSL", "certificate", "private key file")
_POOLER = "unsupported startup parameter"
_NO_POOLER = "Name host and port of the server itself, behind the pooler: sessions are kept, and few"
_FORBIDDEN, _UNSUPPORTED = "42501", ("0A000", "42809")
_FOREIGN_KEY = "23503"
_NOT_THERE = ": a row that it needs is not there, or is in a part of its batch that was refused, too"
_BUSY = {
    "40001": "Another transaction was in the way",
    "40P01": "Two transactions waited for each other",
    "42P10": "The table was altered while it was written: none of its unique indexes has the columns of the key",
    "55P03": "Another session held a lock for longer than lock_timeout_s",
    "57014": "A statement took longer than statement_timeout_s",
    "25006": "The server takes no writes: it is a standby, or read-only",
    "53100": "The server's disk is full",
    "53300": "The server takes no more connections",
}


@contextmanager
def understood(where: str) -> Iterator[None]:
    """Raises what driver and worker know instead of what the driver of the database raises."""
    try:
        yield
    except psycopg2.Error as error:
        raise meaning(error, where) from None


@contextmanager
def reached(where: str) -> Iterator[None]:
    """The same where a connection is made: the driver has no SQLSTATE of that, only words, and no row is in them."""
    try:
        yield
    except psycopg2.Error as error:
        raise meaning(error, where) if error.pgcode else _out_of_reach(str(error), where) from None


def left_out(settings: Sequence[str], where: str) -> ConfigError:
    """Values would be read and written in other forms than the ones that are documented."""
    words = f"The session does not have the settings that it was begun with ({', '.join(settings)})"
    return ConfigError(f"{words}: a connection pooler leaves them out", where=where, next_step=_NO_POOLER)


def _out_of_reach(said: str, where: str) -> WaybillError:
    words = " ".join(said.split())
    if _POOLER in said:
        return ConfigError(f"A connection pooler answers: {words}", where=where, next_step=_NO_POOLER)
    if any(one in said for one in _NO_LOGIN):
        step = "Correct user or password, or what pg_hba.conf of the server lets in"
        return ConfigError(f"The login was refused: {words}", where=where, next_step=step)
    if _NO_DATABASE in said and "does not exist" in said:
        return ConfigError(_ACCESS["3D000"], where=where, next_step="Make it, or correct its name")
    if any(one in said for one in _NO_TLS):
        step = "Look at tls, tls_ca, tls_certificate and tls_key, and at the names in the server's certificate"
        return Unreachable(f"There is no encrypted connection: {words}", where=where, next_step=step)
    step = "See whether the server runs, and whether host and port lead to it"
    return Unreachable(f"The database cannot be reached: {words}", where=where, next_step=step)


@contextmanager
def made(where: str) -> Iterator[None]:
    """The same where a table is made or altered, and no row is at fault. Raises ConfigError for what the database does
    not take."""
    try:
        yield
    except psycopg2.Error as error:
        state = error.pgcode or ""
        if state in _MEANWHILE or (state == _UNIQUE and (error.diag.table_name or "").startswith("pg_")):
            raise Retriable("Another session made it meanwhile", where=where, next_step="Try again") from None
        if state != _FORBIDDEN and state not in _MISSING and state[:2] in (*_OF_STATEMENTS, *_OF_ROWS):
            step = "Make the table or its columns by hand, or rename or drop the fields"
            raise ConfigError(f"The database does not take it: {_kind(error)}", where=where, next_step=step) from None
        raise meaning(error, where) from None


_MEANWHILE, _UNIQUE = ("42P07", "42701", "42710", "42P06"), "23505"
"""There is such a table, column, type, schema. The catalog itself says so, too, to who is a moment later."""
_OF_STATEMENTS = ("42", "0A")


def meaning(error: psycopg2.Error, where: str) -> WaybillError:
    state = error.pgcode or ""
    if state[:2] in _OF_ROWS or state == _BY_TRIGGER:
        return RowsRefused(_kind(error), _refusal(error))
    if state in _MISSING:
        step = "Create it, or name another one; the next attempt looks again"
        return Missing(_MISSING[state], where=where, next_step=step)
    if state in _ACCESS:
        return ConfigError(_ACCESS[state], where=where, next_step="Correct host, database, user or password")
    if state == _FORBIDDEN:
        step = "Grant what `waybill check --probe` names; it also says whether row-level security hides rows"
        return Refused("The user may not do that", where=where, next_step=step)
    if state in _UNSUPPORTED:
        step = "A view, and a table with row-level security, take no COPY: name a table, or a role that bypasses it"
        return Refused("The server does not do that with this table", where=where, next_step=step)
    if state in _BUSY:
        return Unreachable(_BUSY[state], where=where)
    if not state and isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError):
        step = "See whether the server runs; the next attempt finishes what was begun"
        return Unreachable("The connection to the database was lost", where=where, next_step=step)
    named = f": {_kind(error)}" if state else ""
    return Unreachable(f"The database does not answer as it should{named}", where=where)


def _kind(error: psycopg2.Error) -> str:
    return type(error).__name__


def _refusal(error: psycopg2.Error) -> str:
    said = error.diag
    if said.constraint_name:
        why = _NOT_THERE if error.pgcode == _FOREIGN_KEY else ""
        return f"Constraint {said.constraint_name} of table {said.table_name} forbids the row{why}"
    if said.column_name:
        return f"Column {said.column_name} of table {said.table_name} does not take its value"
    return "The table does not take one of its values"
