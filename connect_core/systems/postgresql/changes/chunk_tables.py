"""Tables whose rows are to come chunk by chunk: what the catalog says of one, and why one cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from psycopg2.extensions import cursor

from connect_core.errors import ConfigError, Refused
from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.changes.messages import LoggedColumn, Relation
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.publications import WHOLE, narrowed
from connect_core.systems.tables.snapshots import Key, Place, SnapshotProgress

_COLUMNS = """
SELECT a.attname, coalesce(a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]), false), a.atttypid, a.atttypmod,
       format_type(a.atttypid, a.atttypmod),
       CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype <> 'd' THEN ''
            ELSE coalesce(b.typname, t.typname) END, a.attcollation, c.relkind, c.oid, coalesce(i.indnkeyatts, 0),
       has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE'), row_security_active(c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index i
  ON i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  AND (a.attgenerated = '' OR a.attgenerated = 's' AND EXISTS (
    SELECT FROM pg_publication p WHERE p.pubname = %s AND to_jsonb(p) ->> 'pubgencols' = 's'))
LEFT JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE n.nspname = %s AND c.relname = %s ORDER BY a.attnum
"""
"""Of each column whether it is of the key, and its type's name where that is none of the server's own. Of
generated columns those that the log has: since PostgreSQL 18 a publication may ask for the ones that are stored."""
_THERE = """
SELECT n.nspname, c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname, c.relname) = ANY (SELECT * FROM unnest(%s::text[], %s::text[]))
"""
_KEY = "key of "
_ROWS = """
SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""


class ChunkTable(NamedTuple):
    """`names` are those of types that are not the server's own, `kinds` the whole types of columns."""

    relation: Relation
    names: dict[int, str]
    kinds: dict[str, str]
    from_: str
    """As SQL names where its own rows are: those of tables that inherit from it come under their own names, those of
    its partitions under its own."""
    key: str
    """Of which table it is, and of which columns: what its rows are in the order of."""

    @property
    def key_columns(self) -> list[str]:
        return [one.name for one in self.relation.columns if one.of_key]

    def up_to(self, values: Key) -> Key:
        """How far rows have come, as the log says it."""
        return (self.key, *values)

    def behind(self, after: Key | None) -> Key | None:
        """Values of the key behind which rows are to come. None where all are: also where that was another table of
        the name, or it had another key then. Earlier versions wrote the values alone."""
        if after is None or after[0].startswith(_KEY):
            return after[1:] if after and after[0] == self.key else None
        return after if len(after) == len(self.key_columns) else None


def described(asking: cursor, options: PostgresChangesOptions, place: Place, where: str) -> ChunkTable | None:
    """None where there is none. Raises ConfigError and Refused for one whose rows cannot be read chunk by chunk.
    Locks nothing."""
    asking.execute(_COLUMNS, (options.publication_name, *place))
    found = asking.fetchall()
    if not found:
        return None
    (schema, table), named = place, ".".join(place)
    *_, kind, oid, key_columns, may_read, hides = found[0]
    if not may_read:
        step = f"GRANT SELECT ON {named}, and USAGE ON SCHEMA {schema}; or take the table out of `tables`"
        raise Refused(f"The user may not read the rows of table {named}", where=where, next_step=step)
    if hides:
        step = "ALTER ROLE … BYPASSRLS: its changes come whole, too; or take the table out of `tables`"
        raise Refused(f"Row-level security hides rows of table {named} from the user", where=where, next_step=step)
    if parts := narrowed(asking, options, [place]):
        step = f"{WHOLE}, or take the table out of `tables`; before the first run also snapshot: never will do"
        raise ConfigError(parts[0], where=where, next_step=step)
    if not key_columns or sum(one[1] for one in found) < key_columns:
        raise ConfigError(
            f"Rows of table {named} cannot be read chunk by chunk: it has no primary key of columns that are stored",
            where=where,
            next_step="Give it one, or take it out of `tables`; before the first run also snapshot: never will do",
        )
    at = f"{quoted_name(schema)}.{quoted_name(table)}"
    columns = (f"{name} {column[2]} {column[6]}" for column in found if column[1] for name in column[:1])
    return ChunkTable(
        Relation(oid, schema, table, 0, tuple(LoggedColumn(*one[:4]) for one in found)),
        names={one[2]: one[5] for one in found if one[5]},
        kinds={one[0]: one[4] for one in found},
        from_=at if kind == "p" else f"ONLY {at}",
        key=f"{_KEY}{oid}: {', '.join(columns)}",
    )


def check_tables(asking: cursor, options: PostgresChangesOptions, places: Iterable[Place], where: str) -> None:
    """Raises ConfigError and Refused for the first one whose rows cannot be read."""
    for place in places:
        described(asking, options, place, where)


def gone_of(asking: cursor, progress: SnapshotProgress) -> list[Place]:
    """Tables whose rows are still to come, and that are not there any more; also the one that is being read, when
    another one has its name."""
    if not progress.tables:
        return []
    places = [*dict.fromkeys(one.place for one in progress.tables)]
    asking.execute(_THERE, ([one for one, _ in places], [one for _, one in places]))
    there = {(schema, table): f"{_KEY}{oid}:" for schema, table, oid in asking.fetchall()}
    after = progress.after
    replaced = after is not None and after[0].startswith(_KEY) and not after[0].startswith(there.get(places[0], _KEY))
    return [one for one in places if one not in there or (replaced and one == places[0])]


def about_rows(asking: cursor, place: Place) -> int | None:
    """As the server counted them last; None where there is no such table."""
    asking.execute(_ROWS, place)
    found = asking.fetchone()
    return None if found is None else int(found[0])
