"""The publication of a connector and its tables, by SQL: what is there, made, altered, dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from psycopg2.extensions import cursor

from connect_core.errors import ConfigError, Failure, Unreachable
from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.tables.snapshots import Place

_NONE = "has no replica identity", "Give it a primary key, or ALTER TABLE … REPLICA IDENTITY FULL"
_GENERATED_PART = (
    "has a generated column in its replica identity, which is not published",
    "ALTER TABLE … REPLICA IDENTITY DEFAULT, with a primary key of other columns; or drop the generated column",
)
"""What is wrong with a replica identity, and what to do."""
_PUBLISHED = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"
"""Since PostgreSQL 15 the server opens all of these tables for that."""
_ENTRIES = """
SELECT n.nspname, c.relname
FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid JOIN pg_class c ON c.oid = r.prrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE pubname = %s
"""
"""Of a publication of ours, which has nothing else: no table is opened, whoever has locked one."""
_FORMS = """
SELECT '', concat_ws('.', p.oid, p.xmin) FROM pg_publication p WHERE pubname = %(publication)s
UNION ALL
SELECT concat_ws('.', n.nspname, c.relname), concat_ws('.', r.prrelid, r.oid)
FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid JOIN pg_class c ON c.oid = r.prrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE pubname = %(publication)s
  AND (n.nspname, c.relname) = ANY (SELECT * FROM unnest(%(schemas)s::text[], %(tables)s::text[]))
UNION ALL
SELECT concat_ws('.', n.nspname, c.relname), c.oid::text
FROM pg_publication p JOIN pg_class c ON p.puballtables JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE pubname = %(publication)s
  AND (n.nspname, c.relname) = ANY (SELECT * FROM unnest(%(schemas)s::text[], %(tables)s::text[]))
"""
"""Numbers that the publication, and its entry for each table, get when they are made or altered. One of all tables has
no entries: there a table itself has a number."""
_NARROWED = """
SELECT n.nspname, c.relname
FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid JOIN pg_class c ON c.oid = r.prrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname, c.relname) = ANY (SELECT * FROM unnest(%s::text[], %s::text[])) AND p.pubname = %s
  AND (to_jsonb(r) ->> 'prqual' IS NOT NULL OR to_jsonb(r) ->> 'prattrs' IS NOT NULL)
"""
"""There are such since PostgreSQL 15."""
WHOLE = "Publish the table without WHERE and without a list of columns"
_PUBLICATION = "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = %s"
_OF_OURS = """
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname, c.relname) = ANY (SELECT * FROM unnest(%s::text[], %s::text[]))
"""
_GENERATED = f"""
SELECT n.nspname, c.relname, a.attname {_OF_OURS.replace("WHERE", "JOIN pg_attribute a ON a.attrelid = c.oid WHERE")}
AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> ''
AND (a.attgenerated = 'v' OR NOT EXISTS (
  SELECT FROM pg_publication p WHERE p.pubname = %s AND to_jsonb(p) ->> 'pubgencols' = 's'))
ORDER BY 1, 2, a.attnum
"""
_UNREADABLE = f"SELECT n.nspname, c.relname {_OF_OURS} AND NOT has_table_privilege(c.oid, 'SELECT')"
_HIDDEN = f"SELECT n.nspname, c.relname {_OF_OURS} AND row_security_active(c.oid)"
_OF_OTHERS = f"SELECT n.nspname, c.relname {_OF_OURS} AND NOT pg_has_role(c.relowner, 'USAGE')"
_WITH_LARGE_VALUES = f"SELECT n.nspname, c.relname {_OF_OURS} AND c.reltoastrelid <> 0 AND c.relreplident <> 'f'"
_WITHOUT_IDENTITY = f"""
SELECT n.nspname, c.relname {_OF_OURS} AND (c.relreplident = 'n'
   OR c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))
"""
_NOT_LOGGED = f"SELECT n.nspname, c.relname {_OF_OURS} AND (c.relpersistence <> 'p' OR c.relkind NOT IN ('r', 'p'))"
_GENERATED_IDENTITY = f"""
SELECT n.nspname, c.relname {_OF_OURS} AND current_setting('server_version_num')::int >= 180000
AND EXISTS (
  SELECT FROM pg_attribute a LEFT JOIN pg_index i
    ON i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> ''
    AND (c.relreplident = 'f' OR a.attnum = ANY (i.indkey::int2[])))
AND NOT EXISTS (SELECT FROM pg_publication p WHERE p.pubname = %s AND to_jsonb(p) ->> 'pubgencols' = 's')
"""
"""Since PostgreSQL 18; before that the old row was logged without such columns."""
_BY_ANOTHER_KEY = f"""
SELECT n.nspname, c.relname {_OF_OURS} AND c.relreplident = 'i' AND EXISTS (
  SELECT FROM pg_index k JOIN pg_index i ON i.indrelid = k.indrelid AND i.indisreplident
  WHERE k.indrelid = c.oid AND k.indisprimary
    AND NOT (k.indkey::int2[])[0:k.indnkeyatts - 1] <@ (i.indkey::int2[])[0:i.indnkeyatts - 1])
"""
_MISSING_TABLES = """
SELECT * FROM unnest(%s::text[], %s::text[]) t (s, t)
WHERE NOT EXISTS (SELECT FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE (nspname, relname) = (s, t))
"""


def keep_publication(
    asking: cursor, options: PostgresChangesOptions, where: str, gone: Collection[Place] = ()
) -> list[Place]:
    """Makes ours, or makes it one of the tables that the document names now: those that join one that was there. Raises
    ConfigError for tables that cannot be published, and for a publication of somebody else that leaves something out.
    Where some are gone that were there before, it loses nothing: they may only have another name."""
    missing = unpublished(asking, options, where, gone)
    if options.publication is not None:
        return []
    name, named = quoted_name(options.publication_name), [one for one in options.named() if one not in gone]
    published = _published(asking, options)
    if published is None:
        require_tables(asking, gone, where)
    those = missing if gone else named
    tables = ", ".join(f"ONLY {quoted_name(schema)}.{quoted_name(table)}" for schema, table in those)
    if published is None:
        asking.execute(
            f"CREATE PUBLICATION {name} FOR TABLE {tables}"
            " WITH (publish = 'insert, update, delete, truncate', publish_via_partition_root = true)"
        )
        return []
    if gone:
        if missing:
            asking.execute(f"ALTER PUBLICATION {name} ADD TABLE {tables}")
    elif missing or published != {*named}:
        asking.execute(f"ALTER PUBLICATION {name} SET TABLE {tables}")
    return missing


def publication_forms(asking: cursor, options: PostgresChangesOptions) -> dict[str, str]:
    """By table, and by "" of the publication itself: another one once it was taken away and put back, or altered. What
    changed in between the server gives to nobody, and says nothing (since PostgreSQL 18 also where the publication was
    not there)."""
    schemas, tables = _columns(options.named())
    asking.execute(_FORMS, {"publication": options.publication_name, "schemas": schemas, "tables": tables})
    return dict(asking.fetchall())


def is_published(asking: cursor, options: PostgresChangesOptions) -> bool:
    return _published(asking, options) is not None


def unpublished(
    asking: cursor, options: PostgresChangesOptions, where: str, gone: Collection[Place] = ()
) -> list[Place]:
    """The tables that our publication must still be given."""
    named = [one for one in options.named() if one not in gone]
    require_tables(asking, named, where)
    published = _published(asking, options)
    left_out = sorted({*named} - (published or set()))
    if options.publication is not None:
        _require_publication(asking, options.publication, left_out, where)
        return left_out
    asking.execute(_NOT_LOGGED, _columns(left_out))
    if unlogged := asking.fetchall():
        what = f"{words(unlogged)} has no changes in the log: it is an unlogged table, or none"
        raise ConfigError(what, where=where, next_step="ALTER TABLE … SET LOGGED, or take it out of `tables`")
    for unfit, (why, step) in _unfit_identities(asking, options, left_out):
        what = f"Table {words(unfit)} {why}: if it were published, its updates and deletes would fail"
        raise ConfigError(what, where=where, next_step=step)
    return left_out


def missing_tables(asking: cursor, named: Collection[Place]) -> list[Place]:
    """Those that are not there."""
    asking.execute(_MISSING_TABLES, _columns(named))
    return [(schema, table) for schema, table in asking.fetchall()]


def without_identity(asking: cursor, named: Collection[Place]) -> list[Place]:
    """Tables whose updates and deletes fail while they are published: those of others' publications may be such."""
    asking.execute(_WITHOUT_IDENTITY, _columns(named))
    return [(schema, table) for schema, table in asking.fetchall()]


def with_generated_identity(asking: cursor, options: PostgresChangesOptions, named: Collection[Place]) -> list[Place]:
    """The same, because of a generated column."""
    asking.execute(_GENERATED_IDENTITY, (*_columns(named), options.publication_name))
    return [(schema, table) for schema, table in asking.fetchall()]


def narrowed(asking: cursor, options: PostgresChangesOptions, named: Collection[Place]) -> list[str]:
    """Tables of which the publication has some rows or columns alone, each as what is wrong."""
    asking.execute(_NARROWED, (*_columns(named), options.publication_name))
    publication = f"Publication {options.publication_name} has some rows or columns of table"
    return [f"{publication} {words([one])} alone: rows that are there would come whole" for one in asking.fetchall()]


def _unfit_identities(
    asking: cursor, options: PostgresChangesOptions, named: Collection[Place]
) -> Iterator[tuple[list[Place], tuple[str, str]]]:
    if unfit := without_identity(asking, named):
        yield unfit, _NONE
    if unfit := with_generated_identity(asking, options, named):
        yield unfit, _GENERATED_PART


def unfit_identity(asking: cursor, options: PostgresChangesOptions, where: str) -> Failure | None:
    """Of a table that is published already: all of its changes that there are come."""
    for unfit, (why, step) in _unfit_identities(asking, options, options.named()):
        what = f"Table {words(unfit)} {why}: while it is published, its updates and deletes fail"
        return Failure.of(ConfigError(what, where=where, next_step=step))
    return None


def _published(asking: cursor, options: PostgresChangesOptions) -> set[tuple[str, str]] | None:
    """None where there is no such publication."""
    asking.execute(_PUBLICATION, (options.publication_name,))
    if asking.fetchone() is None:
        return None
    asking.execute(_PUBLISHED if options.publication else _ENTRIES, (options.publication_name,))
    return {(schema, table) for schema, table in asking.fetchall()}


def tables_of(asking: cursor, options: PostgresChangesOptions) -> list[tuple[str, str]]:
    """Those that the document names, and those of the publication that its patterns mean."""
    published = sorted(_published(asking, options) or ())
    return [*dict.fromkeys((*options.named(), *(one for one in published if options.wants(*one))))]


def generated_columns(asking: cursor, options: PostgresChangesOptions) -> list[str]:
    """Of the tables: the log does not have them."""
    asking.execute(_GENERATED, (*_columns(tables_of(asking, options)), options.publication_name))
    return [".".join(one) for one in asking.fetchall()]


def with_large_values(asking: cursor, options: PostgresChangesOptions) -> list[str]:
    """Tables that may keep values apart from their rows, and log no whole old row."""
    return _those(asking, _WITH_LARGE_VALUES, options)


def with_another_key(asking: cursor, options: PostgresChangesOptions) -> list[str]:
    """Tables whose replica identity lacks columns of their primary key."""
    return _those(asking, _BY_ANOTHER_KEY, options)


def unreadable(asking: cursor, options: PostgresChangesOptions) -> list[str]:
    """Tables whose rows the user may not read."""
    return _those(asking, _UNREADABLE, options)


def with_hidden_rows(asking: cursor, options: PostgresChangesOptions) -> list[str]:
    """Tables with a policy that holds for the user."""
    return _those(asking, _HIDDEN, options)


def of_others(asking: cursor, options: PostgresChangesOptions) -> list[str]:
    """Tables that the user does not own."""
    return _those(asking, _OF_OTHERS, options)


def _those(asking: cursor, query: str, options: PostgresChangesOptions) -> list[str]:
    """Of the tables of the document."""
    asking.execute(query, _columns(tables_of(asking, options)))
    return [words([one]) for one in asking.fetchall()]


def _columns(named: Collection[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [one for one, _ in named], [one for _, one in named]


def require_tables(asking: cursor, named: Collection[Place], where: str) -> None:
    """Raises Unreachable for those that are not there."""
    if missing := missing_tables(asking, named):
        step = "Create it, or name another one; the next attempt looks again"
        raise Unreachable(f"There is no table {words(missing)}", where=where, next_step=step)


def _require_publication(asking: cursor, name: str, left_out: Collection[tuple[str, str]], where: str) -> None:
    asking.execute(_PUBLICATION, (name,))
    found = asking.fetchone()
    if found is None:
        raise ConfigError(f"There is no publication {name}", where=where, next_step="Create it, or name another one")
    if left_out:
        step = f"ALTER PUBLICATION {name} ADD TABLE …"
        raise ConfigError(f"Publication {name} does not have {words(left_out)}", where=where, next_step=step)
    if not found[0]:
        step = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')"
        raise ConfigError(f"Publication {name} leaves out kinds of changes", where=where, next_step=step)


def drop_publication(asking: cursor, options: PostgresChangesOptions) -> None:
    asking.execute(f"DROP PUBLICATION IF EXISTS {quoted_name(options.publication_name)}")


def words(tables: Collection[tuple[str, str]]) -> str:
    return ", ".join(f"{schema}.{table}" for schema, table in tables)
