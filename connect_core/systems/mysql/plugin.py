"""What Waybill knows of MySQL: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from connect_core.sdk.plugin import Plugin, ProbeResult, Role
from connect_core.sdk.sink import Sink
from connect_core.sdk.values import Json
from connect_core.systems.mysql.guarantee import sink_guarantee
from connect_core.systems.mysql.options import MysqlSinkOptions
from connect_core.systems.tables.options import follows_changes


def _sink(options: MysqlSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.mysql.sink import MysqlSink

    return MysqlSink(options)


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.mysql.probing import probe_sink

    return probe_sink(options)


PLUGIN = Plugin(
    name="mysql",
    title="Tables of MySQL and MariaDB",
    sink_options=MysqlSinkOptions,
    open_sink=_sink,
    takes_rows=True,
    follows_changes=follows_changes,
    guarantee=sink_guarantee,
    probe=_probe,
    unit="rows",
)
