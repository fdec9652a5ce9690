"""What Waybill knows of databases that SQLAlchemy reaches: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import ConfiguredEnd, Conflict, Plugin, ProbeResult, Role, RuleTarget
from connect_core.sdk.sink import Sink
from connect_core.sdk.values import Json
from connect_core.systems.database_urls import file_of
from connect_core.systems.sql.guarantee import sink_guarantee
from connect_core.systems.sql.options import MARKERS, SqlSinkOptions, checked_table
from connect_core.systems.tables.named_targets import unfit_target, unnamed_table
from connect_core.systems.tables.options import follows_changes


def _sink(options: SqlSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.sql.sink import SqlSink

    return SqlSink(options)


def _guarantee(role: Role, options: Json) -> Guarantee:
    return sink_guarantee(options)


def _rule_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    return unfit_target(target, checked_table, str(sink.options.get("markers", MARKERS)), str.lower)


def _rules_conflict(sink: Json) -> Conflict | None:
    return unnamed_table(sink, "sql", str)


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.sql.probing import probe_sink

    return probe_sink(options)


def _on_this_host(options: Json) -> str:
    return "url" if file_of(str(options.get("url"))) else ""


PLUGIN = Plugin(
    name="sql",
    title="Tables of SQLite, and of what else SQLAlchemy reaches",
    sink_options=SqlSinkOptions,
    open_sink=_sink,
    takes_rows=True,
    rule_targets="any",
    rules_conflict=_rules_conflict,
    rule_target=_rule_target,
    follows_changes=follows_changes,
    on_this_host=_on_this_host,
    guarantee=_guarantee,
    probe=_probe,
    unit="rows",
)
