"""The slot and the log of a database, by SQL: what is there, made, moved on, counted, dropped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import psycopg2
from psycopg2.extensions import cursor

from connect_core import clock
from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.changes.holders import NEWEST, who_is_open
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.snapshots import CHUNK, REQUEST, counted, prefix
from connect_core.systems.postgresql.connecting import replicating
from connect_core.systems.postgresql.failures import understood

OLDEST = 140000
"""The oldest version that has all that is asked for here."""
PLUGIN = "pgoutput"
_BUSY_S, _AGAIN_S = 10.0, 0.1
"""How long a slot may be in use by a process of ours that is ending."""

_SERVER = """
SELECT pg_is_in_recovery(), current_setting('server_version_num')::int, current_setting('server_encoding'),
       current_setting('wal_level'), (SELECT system_identifier FROM pg_control_system()),
       (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_LOG = "SELECT pg_current_wal_flush_lsn()::text, substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8)"
_SLOT = """
SELECT plugin, database, temporary, wal_status, confirmed_flush_lsn::text, active_pid, restart_lsn IS NULL
FROM pg_replication_slots WHERE slot_name = %s
"""
_COUNT = """
SELECT coalesce(sum(CASE get_byte(data, 0) WHEN 73 THEN 1 WHEN 85 THEN 1 WHEN 68 THEN 1
                    WHEN 84 THEN get_byte(data, 3) * 256 + get_byte(data, 4)
                    WHEN 77 THEN (substr(data, 11, length(%(counted)s)) = %(counted)s)::int ELSE 0 END), 0), count(*),
       coalesce(bool_or(get_byte(data, 0) = 77 AND substr(data, 11, length(%(chunk)s)) = %(chunk)s), false),
       coalesce(bool_or(get_byte(data, 0) = 77 AND substr(data, 11, length(%(request)s)) = %(request)s), false)
FROM pg_logical_slot_peek_binary_changes(%(slot)s, %(upto)s::pg_lsn, %(most)s, 'proto_version', '1',
                                         'publication_names', %(publication)s, 'messages', 'true')
"""
"""Changes of rows by the first byte of each message (I, U, D; T has a number of tables; M may be for us),
how many messages, and whether a chunk of a snapshot and a request for one are among them."""


class ServerLog(NamedTuple):
    """Which log a database writes, and where it ends now."""

    cluster: str
    """A digest of cluster and database."""
    timeline: int
    end: int


class Slot(NamedTuple):
    confirmed: int
    """Changes that were committed before it are not given again."""
    is_lost: bool
    """Whether the server has removed what it kept for it."""
    active_pid: int | None


class Counted(NamedTuple):
    changes: int
    more: bool
    """Whether there may be more behind them."""
    has_chunk: bool
    """Whether a chunk of a snapshot begins among them."""
    has_request: bool
    """Whether a snapshot is asked for among them."""


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def look_at_log(asking: cursor, where: str) -> ServerLog:
    """Raises ConfigError where nothing of its changes can be read."""
    asking.execute(_SERVER)
    standby, version, encoding, level, cluster, database = _row(asking)
    if standby:
        raise Unreachable("The server is a standby", where=where, next_step="Name the primary, or wait for it")
    if version < OLDEST:
        raise ConfigError("The server is older than PostgreSQL 14", where=where, next_step="Use a newer one")
    if encoding != "UTF8":
        raise ConfigError(f"The database is in {encoding}", where=where, next_step="Its encoding must be UTF8")
    if level != "logical":
        step = "Set wal_level = logical and restart the server"
        raise ConfigError(f"The server's wal_level is {level}", where=where, next_step=step)
    end, timeline = end_of_log(asking)
    digest = hashlib.blake2b(f"{cluster}.{database}".encode(), digest_size=8).hexdigest()
    return ServerLog(digest, timeline, end)


def end_of_log(asking: cursor) -> tuple[int, int]:
    """And its timeline."""
    asking.execute(_LOG)
    end, timeline = _row(asking)
    return lsn_of(end), int(timeline, 16)


def left_timeline(options: PostgresChangesOptions, where: str, known: int, now: int) -> int | None:
    """Where the log of timeline `now` has left that of `known`; None where it does not come from it."""
    with closing(replicating(options, where)) as database, understood(where), database.cursor() as asking:
        asking.execute(f"TIMELINE_HISTORY {now}")
        _, content = _row(asking)
    text = content if isinstance(content, str) else bytes(content).decode()
    lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return next((lsn_of(line[1]) for line in lines if int(line[0]) == known), None)


def look_at_slot(asking: cursor, options: PostgresChangesOptions, where: str) -> Slot | None:
    """None where there is none. Raises ConfigError for one that is no slot of ours."""
    asking.execute(_SLOT, (options.slot_name,))
    found = asking.fetchone()
    if found is None:
        return None
    plugin, database, temporary, status, confirmed, pid, nothing_kept = found
    if database is not None and database != options.database:
        raise ConfigError(
            f"Slot {options.slot_name} is one of database {database}",
            where=where,
            next_step=f"Name another slot, or drop it there, if this connector made it: {dropping(options.slot_name)}",
        )
    if plugin != PLUGIN or temporary:
        raise ConfigError(
            f"Slot {options.slot_name} is not a lasting one of {PLUGIN}",
            where=where,
            next_step="Name another slot",
        )
    return Slot(lsn_of(confirmed or "0/0"), status == "lost" or nothing_kept, pid)


def make_slot(asking: cursor, options: PostgresChangesOptions, where: str) -> None:
    """Waits until transactions end that are open now: as for a lock, and for longer than for one. Raises Unreachable
    where they do not."""
    asking.execute("SET lock_timeout = 0")
    try:
        asking.execute("SELECT pg_create_logical_replication_slot(%s, %s)", (options.slot_name, PLUGIN))
    except psycopg2.errors.QueryCanceled:
        asking.execute(NEWEST)
        who = who_is_open(asking, *(asking.fetchone() or (0,)))
        raise Unreachable(
            f"No slot was made within {options.statement_timeout_s:g} s: {who}",
            where=where,
            next_step="End it, or wait: a slot begins where no transaction is open that had begun before",
        ) from None
    asking.execute("RESET lock_timeout")


def dropping(name: str) -> str:
    """The statement by which a person drops a slot, in its database."""
    return f"SELECT pg_drop_replication_slot('{name}')"


def drop_slot(asking: cursor, options: PostgresChangesOptions, where: str) -> None:
    wait_until_free(asking, options, where)
    asking.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
        (options.slot_name,),
    )


def move_slot(asking: cursor, options: PostgresChangesOptions, lsn: int) -> None:
    """The server may remove what was before."""
    asking.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (options.slot_name, lsn_text(lsn)))


def wait_until_free(asking: cursor, options: PostgresChangesOptions, where: str) -> None:
    """Of a reader of ours that has ended the server knows in a moment; of one on a host that is gone within a minute.
    Raises Unreachable where somebody still reads it."""
    until = clock.monotonic() + _BUSY_S
    while (slot := look_at_slot(asking, options, where)) is not None and slot.active_pid is not None:
        if clock.monotonic() >= until:
            raise Unreachable(
                f"Slot {options.slot_name} is read by process {slot.active_pid} of the server",
                where=where,
                next_step="If that is no earlier run of this connector, stop it: only one may read a slot",
            )
        clock.sleep(_AGAIN_S)


@contextmanager
def publication_known(options: PostgresChangesOptions, where: str) -> Iterator[None]:
    """Around the reading of changes: the server looks for the publication as it was when they were made."""
    try:
        yield
    except psycopg2.errors.UndefinedObject:
        raise ConfigError(
            f"Publication {options.publication_name} was not there when the next changes were made, so they cannot be"
            " read",
            where=where,
            next_step=f"Drop slot {options.slot_name}: the next run says what is lost, and a new slot begins behind it",
        ) from None


def count_changes(asking: cursor, options: PostgresChangesOptions, where: str, upto: int, most: int) -> Counted:
    """Of the published tables from the slot's place to `upto`: whole transactions, until there are about so many
    messages."""
    given = {
        "counted": counted(options.slot_name).encode(),
        "chunk": f"{prefix(options.slot_name, CHUNK)}\0".encode(),
        "request": f"{prefix(options.slot_name, REQUEST)}\0".encode(),
        "slot": options.slot_name,
        "upto": lsn_text(upto),
        "most": most,
        "publication": quoted_name(options.publication_name),
    }
    with publication_known(options, where):
        asking.execute(_COUNT, given)
    changes, messages, has_chunk, has_request = _row(asking)
    return Counted(int(changes), messages >= most, has_chunk, has_request)


def say(asking: cursor, named: str, text: str) -> None:
    """A message in the log, with the transaction that is open."""
    asking.execute("SELECT pg_logical_emit_message(true, %s, %s)", (named, text))


def _row(asking: cursor) -> tuple[Any, ...]:
    found: tuple[Any, ...] | None = asking.fetchone()
    if found is None:
        raise Refused("The database gives no answer", next_step="Try again")
    return found
