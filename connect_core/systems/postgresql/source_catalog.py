"""What the database says of a table that is read: which one it is, its columns, and where its ids come from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from psycopg2.extensions import cursor

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.systems.postgresql.catalog import TableColumn, quoted, read_table
from connect_core.systems.postgresql.inheritance import numbered_apart
from connect_core.systems.postgresql.keyed_rows import key_columns
from connect_core.systems.postgresql.readable import is_readable
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.tables.probed_rows import POINT

OLDEST = 120000
"""The oldest version of which the catalog is known."""
WHOLE = ("smallint", "integer", "bigint")
_SERVER = """
SELECT pg_is_in_recovery(), current_setting('server_version_num')::int, current_setting('server_encoding'),
       (SELECT system_identifier FROM pg_control_system()),
       (SELECT oid FROM pg_database WHERE datname = current_database())
"""
MOMENT = re.compile(r"timestamp(\(\d\))? with(out)? time zone")
_CLASS = "SELECT oid, relkind, relhassubclass FROM pg_class WHERE oid = to_regclass(%s)"
_THERE = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' AND position('.' in n.nspname || c.relname) = 0
"""
"""Partitions of a table are part of it. A name with a point in it cannot be written in a document."""
_OTHERS = """
SELECT n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (c.relkind IN ('v', 'm', 'f') OR c.relkind IN ('r', 'p') AND position('.' in n.nspname || c.relname) > 0)
  AND NOT c.relispartition AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""
_KINDS = {"v": "no table but a view", "m": "no table but a materialized view", "f": "no table of this database"}
_COLUMN = "SELECT attnum, attnotnull FROM pg_attribute WHERE attrelid = %s AND attname = %s AND NOT attisdropped"
_INDEXES = """
SELECT indisunique AND indnkeyatts = 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam
WHERE indrelid = %s AND indkey[0] = %s AND indisvalid AND indpred IS NULL AND amname = 'btree'
"""
"""Those that begin with the column; of each whether it alone is unique."""
_SEQUENCES = """
SELECT s.seqrelid, s.seqrelid::regclass::text, s.seqcache, s.seqcycle, s.seqincrement,
       has_table_privilege(s.seqrelid, 'SELECT'), pg_relation_filenode(s.seqrelid)
FROM pg_sequence s JOIN pg_depend d ON
  (d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid AND d.refclassid = 'pg_class'::regclass
   AND d.refobjid = %(table)s AND d.refobjsubid = %(column)s AND d.deptype IN ('a', 'i'))
  OR (d.refclassid = 'pg_class'::regclass AND d.refobjid = s.seqrelid AND d.classid = 'pg_attrdef'::regclass
      AND d.objid IN (SELECT oid FROM pg_attrdef WHERE adrelid = %(table)s AND adnum = %(column)s))
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
"""The one that belongs to the column, and those that its default draws from."""


class IdSequence(NamedTuple):
    number: int
    name: str
    """As SQL names it."""
    cache: int
    cycles: bool
    step: int
    may_read: bool
    file: int
    """The number of its file: RESTART gives it another one, and so do most of ALTER SEQUENCE. `setval` does not."""


class SourceTable(NamedTuple):
    number: int
    """Its oid; 0 of a query."""
    relation: str
    """What stands behind FROM."""
    origin: str
    """Names this column of this table in this cluster, and nothing that replaces one of them (`sdk.values.ORIGIN`)."""
    columns: tuple[TableColumn, ...]
    id: str
    """The column that numbers rows: by it new ones are found, if `time` does not say more. Empty: their keys do."""
    key: tuple[TableColumn, ...]
    """Of its primary key."""
    sequences: tuple[IdSequence, ...]
    """None of a table that is read by `time`: in which order numbers are given out does not matter there."""
    time: TableColumn | None = None
    """The column with the time of a row's last change."""

    @property
    def is_query(self) -> bool:
        return not self.number

    @property
    def is_keyed(self) -> bool:
        return not self.id

    @property
    def numbering(self) -> str:
        """Another text when a sequence is another one, or was restarted."""
        return ",".join(sorted(f"{one.number}:{one.file}" for one in self.sequences))

    @property
    def watched(self) -> list[int]:
        """Relations on which a transaction that draws an id holds a lock; partitions of the table not counted."""
        return [self.number, *(one.number for one in self.sequences)]


def tables_there(asking: cursor) -> list[str]:
    """As SCHEMA.TABLE."""
    asking.execute(_THERE)
    return [name for (name,) in asking.fetchall()]


def others_there(asking: cursor) -> list[tuple[str, str, str]]:
    """Schema and name of what no pattern means, and why."""
    asking.execute(_OTHERS)
    return [(schema, name, _KINDS.get(kind, POINT)) for schema, name, kind in asking.fetchall()]


def read_source_table(asking: cursor, options: PostgresSourceOptions) -> SourceTable:
    """Raises Unreachable where it is not there, Refused by a server that shows no locks where these matter, and
    ConfigError with the first thing for which rows of it could be lost or changed."""
    where = f"{options.address}/{options.table}"
    cluster = cluster_of(asking, where, locks_matter=not options.bulk)
    table, (number, kind, has_parts) = read_table(asking.connection, options.table), _class(asking, options, where)
    if kind not in "rp":
        raise ConfigError("This is no table", where=where, next_step="Name a table; views have no rows of their own")
    if table is None:
        raise _missing(where)
    place = _Place(number, kind, has_parts, where)
    ids = options.incrementing or _whole_key(table.columns, table.key)
    if not ids and not (options.timestamp or options.bulk):
        words = "The primary key of the table is not one column of whole numbers"
        step = "Write incrementing: COLUMN, a column whose numbers ascend; or timestamp, or bulk, which take any key"
        raise ConfigError(words, where=where, next_step=step)
    for wrong, step in _misfits_of_columns(table.columns, ids):
        raise ConfigError(wrong, where=where, next_step=step)
    by_name = {column.name: column for column in table.columns}
    told = _told_by_column(asking, options, place, ids) if ids else _told_by_key(asking, place)
    if options.timestamp and (misfit := _misfit_of_time(by_name.get(options.timestamp), options.timestamp)):
        raise ConfigError(misfit[0], where=where, next_step=misfit[1])
    named = f"{cluster}/{number}/{told.by}" + (f"/{options.timestamp}" if options.timestamp else "")
    return SourceTable(
        number,
        quoted(options.table),
        hashlib.blake2b(named.encode(), digest_size=8).hexdigest(),
        table.columns,
        ids,
        tuple(by_name[name] for name in told.key or table.key),
        told.sequences,
        by_name[options.timestamp] if options.timestamp else None,
    )


class _Place(NamedTuple):
    number: int
    kind: str
    has_parts: bool
    where: str

    @property
    def is_inherited(self) -> bool:
        """No index says anything of such a table's children."""
        return self.kind == "r" and self.has_parts


class _Told(NamedTuple):
    """How rows are distinguished."""

    by: str
    """Another text where it is by something else."""
    sequences: tuple[IdSequence, ...] = ()
    key: tuple[str, ...] = ()
    """The primary key, where it is by this."""


def _told_by_column(asking: cursor, options: PostgresSourceOptions, place: _Place, ids: str) -> _Told:
    asking.execute(_COLUMN, (place.number, ids))
    [attribute, required] = asking.fetchone() or (0, False)
    asking.execute(_INDEXES, (place.number, attribute))
    uniques = [bool(unique) for (unique,) in asking.fetchall()]
    drawn = sequences_of(asking, place.number, attribute)
    numbers = [one.number for one in drawn]
    if place.is_inherited and (child := numbered_apart(asking, place.number, ids, numbers)):
        raise _numbered_twice(child, ids, place.where)
    sequences = () if options.timestamp or options.bulk else drawn
    misfits = (*_misfits_of_index(ids, required, uniques, place.has_parts), *misfits_of_sequences(sequences))
    for wrong, step in misfits:
        raise ConfigError(wrong, where=place.where, next_step=step)
    return _Told(str(attribute), sequences)


def _told_by_key(asking: cursor, place: _Place) -> _Told:
    """Where the key gets another type or collation its rows have other numbers, or come in another order."""
    columns = key_columns(asking, place.number)
    if not columns:
        words = "The table has no primary key, by which its rows could be distinguished"
        step = "Give it one, or write incrementing: COLUMN, a column of whole numbers with a unique index"
        raise ConfigError(words, where=place.where, next_step=step)
    if place.is_inherited:
        words = "Other tables inherit from the table, and may have rows with keys that its own rows have"
        step = (
            "Read the children without this one, or write incrementing: COLUMN, whose numbers all draw from a sequence"
        )
        raise ConfigError(words, where=place.where, next_step=step)
    if unfit := [one.name for one in columns if not one.compares_all]:
        words = f"Column {unfit[0]} of the primary key has a collation that is not deterministic"
        step = "Write incrementing: COLUMN, a column of whole numbers with a unique index"
        raise ConfigError(words, where=place.where, next_step=step)
    by = ",".join(f"{one.number} {one.kind} {one.size} {one.collation}" for one in columns)
    return _Told(f"key {by}", key=tuple(one.name for one in columns))


def sequences_of(asking: cursor, number: int, attribute: int) -> tuple[IdSequence, ...]:
    asking.execute(_SEQUENCES, {"table": number, "column": attribute})
    return tuple(IdSequence(*row) for row in asking.fetchall())


def _numbered_twice(child: str, ids: str, where: str) -> ConfigError:
    step = "Let its numbers come from the sequence of this table (SET DEFAULT), or read the children without this one"
    words = f"{child} inherits from the table, and may give its rows numbers in {ids} that others have"
    return ConfigError(words, where=where, next_step=step)


def _misfit_of_time(column: TableColumn | None, name: str) -> tuple[str, str] | None:
    if column is None:
        return f"The table has no column {name}", "Name the column with the time of the last change as timestamp"
    if not MOMENT.fullmatch(column.kind):
        step = "Name a column of type timestamp with time zone, or without that and written in UTC"
        return f"Column {name} is {column.kind}, which says no time of a change", step
    if not column.required:
        step = f"UPDATE … SET {name} = now() WHERE {name} IS NULL; ALTER TABLE … ALTER {name} SET NOT NULL"
        return f"Column {name} takes NULL, and such rows would never be read", step
    return None


def cluster_of(asking: cursor, where: str, *, locks_matter: bool) -> str:
    asking.execute(_SERVER)
    is_standby, version, encoding, system, database = asking.fetchone() or (True, 0, "", 0, 0)
    if is_standby and locks_matter:
        words = "The server is a standby: it does not show which transactions still write"
        step = "Name the primary server as host; or write bulk: true, and each run reads all rows"
        raise Refused(words, where=where, next_step=step)
    if version < OLDEST:
        raise Refused("The server is older than PostgreSQL 12", where=where, next_step="Upgrade it")
    if encoding == "SQL_ASCII":
        step = "Make a database with ENCODING UTF8, and move the table there"
        raise Refused("The database does not say how its texts are encoded (SQL_ASCII)", where=where, next_step=step)
    return f"{system}/{database}"


def _class(asking: cursor, options: PostgresSourceOptions, where: str) -> tuple[int, str, bool]:
    asking.execute(_CLASS, (quoted(options.table),))
    if (found := asking.fetchone()) is None:
        raise _missing(where)
    number, kind, has_parts = found
    return number, kind, has_parts


def _missing(where: str) -> Unreachable:
    step = "Create it, or name another one; the next attempt looks again"
    return Unreachable("There is no such table", where=where, next_step=step)


def _whole_key(columns: tuple[TableColumn, ...], key: tuple[str, ...]) -> str:
    """The primary key, if that is one column of whole numbers; else empty."""
    kinds = {column.name: column.kind for column in columns}
    return key[0] if len(key) == 1 and kinds[key[0]] in WHOLE else ""


def _misfits_of_columns(columns: tuple[TableColumn, ...], ids: str) -> Iterator[tuple[str, str]]:
    kinds = {column.name: column.kind for column in columns}
    if ids and ids not in kinds:
        yield f"The table has no column {ids}", "Name the column whose numbers ascend as incrementing"
    elif ids and kinds[ids] not in WHOLE:
        yield f"Column {ids} is {kinds[ids]}", f"Name one of {', '.join(WHOLE)} as incrementing"
    for column in columns:
        if not is_readable(column):
            step = "docs/tables.md has the types that are kept exactly. Change the column, or copy the table without it"
            yield f"Column {column.name} is {column.kind}, which is not kept exactly", step


def _misfits_of_index(ids: str, required: bool, uniques: list[bool], has_parts: bool) -> Iterator[tuple[str, str]]:
    if not required:
        yield f"Column {ids} takes NULL, and such rows would never be read", f"ALTER TABLE … ALTER {ids} SET NOT NULL"
    if not uniques:
        yield f"No index of the table begins with column {ids}", f"CREATE UNIQUE INDEX CONCURRENTLY ON … ({ids})"
    elif not any(uniques) and not has_parts:
        words = f"No index of the table says that column {ids} alone is unique"
        yield words, f"CREATE UNIQUE INDEX CONCURRENTLY ON … ({ids})"


def misfits_of_sequences(sequences: tuple[IdSequence, ...]) -> Iterator[tuple[str, str]]:
    for one in sequences:
        if one.cache > 1:
            words = f"Sequence {one.name} has CACHE {one.cache}: sessions keep ids, and insert them after higher ones"
            yield words, f"ALTER SEQUENCE {one.name} CACHE 1"
        if one.cycles:
            yield f"Sequence {one.name} begins again at its end (CYCLE)", f"ALTER SEQUENCE {one.name} NO CYCLE"
        if one.step < 0:
            yield f"Sequence {one.name} counts down", "Name another column as incrementing, whose numbers ascend"
