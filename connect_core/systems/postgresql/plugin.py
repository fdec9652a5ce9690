"""What Waybill knows of PostgreSQL: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import ConfiguredEnd, Conflict, Plugin, ProbeResult, Role, RuleTarget
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.guarantee import guarantee
from connect_core.systems.postgresql.options import MARKERS, PostgresSinkOptions, checked_table, split_table
from connect_core.systems.postgresql.source_guarantee import source_guarantee
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.tables.jdbc_keys import jdbc_classes
from connect_core.systems.tables.named_tables import names_of
from connect_core.systems.tables.named_targets import unfit_target, unnamed_table
from connect_core.systems.tables.options import follows_changes

if TYPE_CHECKING:
    import pyarrow as pa


def _source(options: PostgresSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.postgresql.source import PostgresTables, rows_of

    return PostgresTables(options, resources) if options.tables else rows_of(options, resources)


def _sink(options: PostgresSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.postgresql.sink import PostgresSink

    return PostgresSink(options)


def _guarantee(role: Role, options: Json) -> Guarantee:
    return source_guarantee(options) if role == "source" else guarantee(role, options)


def _feeds(sink: Json, source: Json) -> bool:
    written = _whole_name(str(sink.get("table")))
    return _place(sink) == _place(source) and names_of(source, split_table).mean(written)


def _whole_name(table: str) -> str:
    return ".".join(split_table(table))


def _rule_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    markers = str(sink.options.get("markers", MARKERS))
    if wrong := unfit_target(target, checked_table, markers, _whole_name):
        return wrong
    own = sink.options | {"table": target.for_topic("")}
    return "is a table that the source reads" if source.name == sink.name and _feeds(own, source.options) else ""


def _rules_conflict(sink: Json) -> Conflict | None:
    return unnamed_table(sink, "postgresql", _whole_name)


def _place(options: Json) -> tuple[object, ...]:
    return options.get("host"), options.get("port", 5432), options.get("database")


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    if role == "source":
        from connect_core.systems.postgresql.source_probing import probe as probe_source

        return probe_source(options)
    from connect_core.systems.postgresql.probing import probe

    return probe(role, options)


def _peek_source(options: PostgresSourceOptions, last: int) -> pa.Table:
    from connect_core.systems.postgresql.source_peeking import newest_rows

    return newest_rows(options, last)


PLUGIN = Plugin(
    name="postgresql",
    title="Tables of PostgreSQL",
    source_options=PostgresSourceOptions,
    sink_options=PostgresSinkOptions,
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
    guarantee=_guarantee,
    probe=_probe,
    peek_source=_peek_source,
    unit="rows",
    flat=jdbc_classes(("postgresql",)),
)
