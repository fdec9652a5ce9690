"""What Waybill knows of the change stream of MySQL: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Plugin, ProbeResult, Role, RowsLeft, SnapshotWish
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.mysql.binlog.flat_keys import CLASSES
from connect_core.systems.mysql.binlog.guarantee import GUARANTEE
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions


def _source(options: MysqlChangesOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.mysql.binlog.source import MysqlChangesSource

    return MysqlChangesSource(options, resources)


def _guarantee(role: Role, options: Json) -> Guarantee:
    return GUARANTEE


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.mysql.binlog.probing import probe

    return probe(options)


def _snapshot(options: Json, wish: SnapshotWish) -> list[str]:
    from connect_core.systems.mysql.binlog.snapshot_requests import request_snapshot

    return request_snapshot(MysqlChangesOptions.model_validate(options), wish)


def _cancel_snapshot(options: Json, evidence: Json, tables: Sequence[str]) -> list[str]:
    from connect_core.systems.mysql.binlog.snapshot_requests import cancel_snapshot
    from connect_core.systems.mysql.binlog.source import progress_of

    return cancel_snapshot(MysqlChangesOptions.model_validate(options), progress_of(evidence), tables)


def _conditions(evidence: Json) -> list[str]:
    from connect_core.systems.mysql.binlog.source import progress_of

    return progress_of(evidence).conditions


def _rows_left(options: Json, evidence: Json | None) -> list[RowsLeft]:
    from connect_core.systems.mysql.binlog.source import progress_of

    given, progress = MysqlChangesOptions.model_validate(options), progress_of(evidence or {})
    if not progress.tables and (evidence is not None or given.snapshot == "never"):
        return []
    from connect_core.systems.mysql.binlog.chunks import rows_left

    return rows_left(given, None if evidence is None else progress)


PLUGIN = Plugin(
    name="mysql_changes",
    title="Changes of tables of MySQL and MariaDB",
    source_options=MysqlChangesOptions,
    open_source=_source,
    remote_state=("source",),
    source_fields=frozenset({"payload", "text", "topic", "key"}),
    guarantee=_guarantee,
    probe=_probe,
    snapshot=_snapshot,
    cancel_snapshot=_cancel_snapshot,
    rows_left=_rows_left,
    conditions=_conditions,
    flat=CLASSES,
    unit="bytes of log (4 GiB a file)",
)
