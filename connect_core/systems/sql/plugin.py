"""What Waybill knows of databases that SQLAlchemy reaches: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import ConfiguredEnd, Conflict, Plugin, ProbeResult, Role, RuleTarget
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.database_urls import file_of
from connect_core.systems.sql.guarantee import sink_guarantee
from connect_core.systems.sql.options import MARKERS, SqlSinkOptions, checked_table
from connect_core.systems.sql.source_guarantee import source_guarantee
from connect_core.systems.sql.source_options import SqlSourceOptions, named_tables
from connect_core.systems.tables.jdbc_keys import jdbc_classes_of_files
from connect_core.systems.tables.named_targets import unfit_target, unnamed_table
from connect_core.systems.tables.options import follows_changes

if TYPE_CHECKING:
    import pyarrow as pa


def _source(options: SqlSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.sql.source import SqlTables, rows_of

    return SqlTables(options, resources) if options.tables else rows_of(options, resources)


def _sink(options: SqlSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.sql.sink import SqlSink

    return SqlSink(options)


def _guarantee(role: Role, options: Json) -> Guarantee:
    return source_guarantee(options) if role == "source" else sink_guarantee(options)


def _feeds(sink: Json, source: Json) -> bool:
    """Names of tables are compared without regard to capitals, as SQLite does."""
    if sink.get("url") != source.get("url"):
        return False
    read = {name: [str(one).lower() for one in source.get(name, ())] for name in ("tables", "exclude")}
    named = named_tables("", {**read, "table": str(source.get("table") or "").lower()})
    return named.mean(str(sink.get("table")).lower())


def _conflict(source: ConfiguredEnd, sink: ConfiguredEnd) -> Conflict | None:
    if source.name != sink.name or not _feeds(sink.options, source.options):
        return None
    return Conflict(("sink", "sql", "table"), "is the table that the source reads: every row would come again")


def _rule_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    if wrong := unfit_target(target, checked_table, str(sink.options.get("markers", MARKERS)), str.lower):
        return wrong
    own = sink.options | {"table": target.for_topic("")}
    return "is a table that the source reads" if source.name == sink.name and _feeds(own, source.options) else ""


def _rules_conflict(sink: Json) -> Conflict | None:
    return unnamed_table(sink, "sql", str)


def _peek_source(options: SqlSourceOptions, last: int) -> pa.Table:
    from connect_core.systems.sql.source_peeking import newest_rows

    return newest_rows(options, last)


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    if role == "source":
        from connect_core.systems.sql.source_probing import probe_source

        return probe_source(options)
    from connect_core.systems.sql.probing import probe_sink

    return probe_sink(options)


def _on_this_host(options: Json) -> str:
    return "url" if file_of(str(options.get("url"))) else ""


PLUGIN = Plugin(
    name="sql",
    title="Tables of SQLite, and of what else SQLAlchemy reaches",
    source_options=SqlSourceOptions,
    sink_options=SqlSinkOptions,
    open_source=_source,
    open_sink=_sink,
    abilities=frozenset({"topics"}),
    takes_rows=True,
    rule_targets="any",
    rules_conflict=_rules_conflict,
    rule_target=_rule_target,
    source_fields=frozenset({"payload", "text", "topic", "key"}),
    follows_changes=follows_changes,
    feeds=_feeds,
    conflict=_conflict,
    on_this_host=_on_this_host,
    guarantee=_guarantee,
    probe=_probe,
    peek_source=_peek_source,
    unit="rows",
    flat=jdbc_classes_of_files("sqlite"),
)
