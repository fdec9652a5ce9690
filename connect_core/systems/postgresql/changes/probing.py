"""Whether a database gives its changes, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from psycopg2.extensions import cursor

from connect_core.errors import ConfigError, Unreachable
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.changes import publications, slots
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood


def probe(options: Json) -> Iterator[ProbeResult]:
    given = PostgresChangesOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        asking.execute("SELECT current_setting('server_version')")
        [version] = asking.fetchone() or ("",)
        yield ProbeResult(True, f"{where} answers, PostgreSQL {version}")
        try:
            slots.look_at_log(asking, where)
            yield ProbeResult(True, "its log can be decoded")
            yield from _tables(asking, given, where)
            yield from _slot(asking, given, where)
        except (ConfigError, Unreachable) as error:
            yield ProbeResult(False, f"{error.what}: {error.next_step}")
        yield from _rights(asking, given)
        if given.snapshot == "initial":
            yield from _rows(asking, given)


def _tables(asking: cursor, given: PostgresChangesOptions, where: str) -> Iterator[ProbeResult]:
    missing = publications.unpublished(asking, given, where)
    name = given.publication_name
    if given.publication is not None or not missing:
        yield ProbeResult(True, f"publication {name} has the tables")
    else:
        yield ProbeResult(True, f"publication {name} will be made of {publications.words(missing)}")
    for one in publications.without_identity(asking, publications.tables_of(asking, given)):
        table = publications.words([one])
        words = f"table {table} has no primary key and no replica identity: its updates fail while it is published"
        yield ProbeResult(False, f"{words}: ALTER TABLE {table} REPLICA IDENTITY FULL")
    for one in publications.with_generated_identity(asking, given, publications.tables_of(asking, given)):
        table = publications.words([one])
        words = f"table {table} has a generated column in its replica identity: its updates fail while it is published"
        yield ProbeResult(False, f"{words}: ALTER TABLE {table} REPLICA IDENTITY DEFAULT, with a primary key")
    for table in publications.with_another_key(asking, given):
        words = f"table {table}: events say which row by its REPLICA IDENTITY, an index without the primary key"
        yield ProbeResult(True, f"{words}: write them into a table by the columns of that index")
    for column in publications.generated_columns(asking, given):
        yield ProbeResult(True, f"column {column} is generated: the log does not have it, so events do not")
    for table in publications.with_large_values(asking, given):
        yield ProbeResult(
            True,
            f"table {table}: an update leaves out large values that do not change; with REPLICA IDENTITY FULL they are"
            " there (since PostgreSQL 18 not for a table with generated columns)",
        )


def _slot(asking: cursor, given: PostgresChangesOptions, where: str) -> Iterator[ProbeResult]:
    slot = slots.look_at_slot(asking, given, where)
    if slot is None:
        yield ProbeResult(True, f"slot {given.slot_name} will be made: what changes from then on is read")
    elif slot.is_lost:
        yield ProbeResult(False, f"slot {given.slot_name} has lost its log: the next run says what is lost")
    else:
        yield ProbeResult(True, f"slot {given.slot_name} is there")


def _rights(asking: cursor, given: PostgresChangesOptions) -> Iterator[ProbeResult]:
    asking.execute("SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user")
    [may_replicate] = asking.fetchone() or (False,)
    if not may_replicate:
        yield ProbeResult(False, f"{given.user} may not read the log: ALTER ROLE {given.user} REPLICATION")
    if given.publication is None:
        asking.execute("SELECT has_database_privilege(current_database(), 'CREATE')")
        [may_create] = asking.fetchone() or (False,)
        if not may_create:
            words = f"{given.user} may make no publication: GRANT CREATE ON DATABASE {given.database}"
            yield ProbeResult(False, f"{words}, or name one as publication")
        for table in publications.of_others(asking, given):
            words = f"{given.user} does not own table {table}, and may not publish it"
            yield ProbeResult(False, f"{words}: name a publication that its owner makes")


def _rows(asking: cursor, given: PostgresChangesOptions) -> Iterator[ProbeResult]:
    """What keeps those that are there from coming."""
    for table in publications.unreadable(asking, given):
        words = f"{given.user} may not read the rows of table {table}: GRANT SELECT ON {table}"
        yield ProbeResult(False, f"{words}; or write snapshot: never")
    for table in publications.with_hidden_rows(asking, given):
        words = f"row-level security hides rows of table {table} from {given.user}: ALTER ROLE {given.user} BYPASSRLS"
        yield ProbeResult(False, f"{words}; or write snapshot: never")
    for part in publications.narrowed(asking, given, publications.tables_of(asking, given)):
        yield ProbeResult(False, f"{part}. {publications.WHOLE}; or write snapshot: never")
