"""What Waybill knows of MySQL: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import ConfiguredEnd, Conflict, Plugin, ProbeResult, Role, RuleTarget
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.mysql.guarantee import sink_guarantee
from connect_core.systems.mysql.options import MARKERS, MysqlSinkOptions, checked_table
from connect_core.systems.mysql.source_guarantee import source_guarantee
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.tables.jdbc_keys import jdbc_classes
from connect_core.systems.tables.named_tables import names_of
from connect_core.systems.tables.named_targets import unfit_target, unnamed_table
from connect_core.systems.tables.options import follows_changes

if TYPE_CHECKING:
    import pyarrow as pa


def _source(options: MysqlSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.mysql.source import MysqlTables, rows_of

    return MysqlTables(options, resources) if options.tables else rows_of(options, resources)


def _sink(options: MysqlSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.mysql.sink import MysqlSink

    return MysqlSink(options)


def _guarantee(role: Role, options: Json) -> Guarantee:
    return source_guarantee(options) if role == "source" else sink_guarantee(options)


def _feeds(sink: Json, source: Json) -> bool:
    written = ".".join(_lowered(sink)(str(sink.get("table"))))
    return _place(sink) == _place(source) and names_of(source, _lowered(source)).mean(written)


def _rule_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    markers, lowered = str(sink.options.get("markers", MARKERS)), _lowered(sink.options)
    if wrong := unfit_target(target, checked_table, markers, lambda table: ".".join(lowered(table))):
        return wrong
    own = sink.options | {"table": target.for_topic("")}
    return "is a table that the source reads" if source.name == sink.name and _feeds(own, source.options) else ""


def _rules_conflict(sink: Json) -> Conflict | None:
    def whole_name(table: str) -> str:
        return table if "." in table else f"{sink.get('database')}.{table}"

    return unnamed_table(sink, "mysql", whole_name) or _of_one_name(sink, whole_name)


def _of_one_name(sink: Json, whole_name: Callable[[str], str]) -> Conflict | None:
    """Two spellings of what some servers take for one table."""
    spelt: dict[str, str] = {}
    for table in (str(sink.get("table")), *sink["rule_topics"]):
        name = whole_name(table)
        if spelt.setdefault(name.lower(), name) != name:
            words = f"and {table}, which a rule names, differ in capitals alone: some servers take them for one table"
            return Conflict(("sink", "mysql", "table"), words)
    return None


def _place(options: Json) -> tuple[object, ...]:
    return options.get("host"), options.get("port", 3306)


def _lowered(options: Json) -> Callable[[str], tuple[str, str]]:
    """Names of tables are compared without regard to capitals, as some servers do."""

    def split(table: str) -> tuple[str, str]:
        database, _, name = table.lower().rpartition(".")
        return database or str(options.get("database")).lower(), name

    return split


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    if role == "source":
        from connect_core.systems.mysql.source_probing import probe_source

        return probe_source(options)
    from connect_core.systems.mysql.probing import probe_sink

    return probe_sink(options)


def _peek_source(options: MysqlSourceOptions, last: int) -> pa.Table:
    from connect_core.systems.mysql.source_peeking import newest_rows

    return newest_rows(options, last)


PLUGIN = Plugin(
    name="mysql",
    title="Tables of MySQL and MariaDB",
    source_options=MysqlSourceOptions,
    sink_options=MysqlSinkOptions,
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
    flat=jdbc_classes(("mysql", "mariadb")),
)
