"""What Waybill knows of PostgreSQL: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from connect_core.sdk.plugin import Plugin, ProbeResult, Role
from connect_core.sdk.sink import Sink
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.guarantee import guarantee
from connect_core.systems.postgresql.options import PostgresSinkOptions, follows_changes


def _sink(options: PostgresSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.postgresql.sink import PostgresSink

    return PostgresSink(options)


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.postgresql.probing import probe

    return probe(role, options)


PLUGIN = Plugin(
    name="postgresql",
    title="Tables of PostgreSQL",
    sink_options=PostgresSinkOptions,
    open_sink=_sink,
    takes_rows=True,
    follows_changes=follows_changes,
    guarantee=guarantee,
    probe=_probe,
)
