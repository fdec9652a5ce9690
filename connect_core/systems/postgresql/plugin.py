"""What Waybill knows of PostgreSQL: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Plugin, ProbeResult, Role
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.guarantee import guarantee
from connect_core.systems.postgresql.options import PostgresSinkOptions, split_table
from connect_core.systems.postgresql.source_guarantee import source_guarantee
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.tables.jdbc_keys import jdbc_classes
from connect_core.systems.tables.named_tables import names_of
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
    written = ".".join(split_table(str(sink.get("table"))))
    return _place(sink) == _place(source) and names_of(source, split_table).mean(written)


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
    source_fields=frozenset({"payload", "text", "topic", "key"}),
    follows_changes=follows_changes,
    feeds=_feeds,
    guarantee=_guarantee,
    probe=_probe,
    peek_source=_peek_source,
    unit="rows",
    flat=jdbc_classes(("postgresql",)),
)
