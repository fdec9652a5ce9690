"""Snapshots that somebody asks for, and cancels, in words that the log of the tables' changes has at their place
(`snapshots`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import psycopg2
from psycopg2.extensions import cursor

from connect_core.errors import ConfigError
from connect_core.sdk.plugin import SnapshotWish
from connect_core.systems.postgresql.changes.chunk_rows import behind, rows_of, time_limit
from connect_core.systems.postgresql.changes.chunk_tables import check_tables, described
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.publications import require_tables, tables_of, words
from connect_core.systems.postgresql.changes.slots import look_at_slot, say
from connect_core.systems.postgresql.changes.snapshots import REQUEST, ROW, prefix
from connect_core.systems.postgresql.connecting import connected, transaction
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.options import split_table
from connect_core.systems.tables.row_conditions import POSTGRESQL, check_condition
from connect_core.systems.tables.snapshots import (
    DueTable,
    Place,
    SnapshotProgress,
    SnapshotRequest,
    asked_of,
    to_cancel,
)

_NO_ANSWER = ("08", "53", "57", "58", "XX")
"""Classes of what says nothing of the condition: connection, resources, an operator, the system. But for a statement
that took too long."""
_TOO_LONG = "57014"


def request_snapshot(options: PostgresChangesOptions, wish: SnapshotWish) -> list[str]:
    """Says in the log that rows of these tables are to come, of all that the document names where none is given here.
    Who reads the log hears of it at this place. Raises ConfigError for one that cannot be read, and for a condition
    that the server does not take."""
    where = options.address
    asked = _asked(options, wish.tables)
    with _at_the_log(options) as asking:
        known = tables_of(asking, options)
        asked = [*dict.fromkeys(asked)] or known
        require_tables(asking, asked, where)
        if beside := [one for one in asked if one not in known]:
            what = f"Publication {options.publication_name} does not have table {words(beside[:1])}"
            raise ConfigError(what, where=where, next_step="Publish it: rows would come, and no changes")
        check_tables(asking, options, asked, where)
        if wish.where is not None:
            for one in asked:
                _check_condition(asking, options, one, wish.where)
        asked_for = [DueTable(one, wish.where or "") for one in asked]
        with transaction(asking):
            say_request(asking, options, SnapshotRequest(tuple(asked_for)))
    return [f"{schema}.{table}" for schema, table in asked]


def cancel_snapshot(options: PostgresChangesOptions, progress: SnapshotProgress, tables: Sequence[str]) -> list[str]:
    """Says in the log that nothing is to come of what somebody has asked for of these tables, of all where none is
    named. Whether they are there does not matter. `progress` is how far rows have come."""
    asked = _asked(options, tables)
    with _at_the_log(options) as asking:
        chosen = to_cancel(progress, asked, tables_of(asking, options), options.address)
        with transaction(asking):
            say_request(asking, options, SnapshotRequest(cancelled=tuple(chosen)))
    return [f"{schema}.{table}" for schema, table in chosen]


def say_request(asking: cursor, options: PostgresChangesOptions, request: SnapshotRequest) -> None:
    """With the transaction that is open."""
    say(asking, prefix(options.slot_name, REQUEST), json.dumps(request.as_json()))


def _asked(options: PostgresChangesOptions, tables: Sequence[str]) -> list[Place]:
    return asked_of(tables, split_table, options.wants, options.address, ", ".join(options.tables))


@contextmanager
def _at_the_log(options: PostgresChangesOptions) -> Iterator[cursor]:
    """Raises ConfigError where nobody would hear of a request."""
    where = options.address
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        if look_at_slot(asking, options, where) is None:
            raise ConfigError("The connector has not begun yet", where=where, next_step="Run it once")
        yield asking


def _check_condition(asking: cursor, options: PostgresChangesOptions, place: Place, condition: str) -> None:
    """Raises ConfigError where the server does not take the statement by which rows are read with it. Runs nothing."""
    where = f"{options.address}, table {'.'.join(place)}"
    check_condition(condition, POSTGRESQL, where)
    try:
        with transaction(asking, "READ ONLY"):
            if table := described(asking, options, place, where):
                within = behind(table, None).with_condition(condition)
                statement, given = rows_of(table, prefix(options.slot_name, ROW), within)
                asking.execute(time_limit(options.statement_timeout_s))
                asking.execute(f"EXPLAIN {statement}", given)
    except psycopg2.Error as error:
        state = error.pgcode or ""
        if not state or (state[:2] in _NO_ANSWER and state != _TOO_LONG):
            raise
        said = error.diag.message_primary or type(error).__name__
        step = "Correct the condition: it is an expression of the table's columns, true or false"
        raise ConfigError(f"The server does not take the condition: {said}", where=where, next_step=step) from None
