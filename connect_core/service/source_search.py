"""Records of a source by what a person knows of them: their key, where the server has an index of keys; or a condition,
in a window of the source. Reads only: no lease is taken, and no position moves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from connect_core import clock
from connect_core.config import load_document, revealed
from connect_core.config.document import check_when
from connect_core.config.named_fields import impossible_in
from connect_core.errors import ConfigError, Fault
from connect_core.ledger import Connector
from connect_core.replication.backfill.searching import SearchFindings, SearchWindow, searched
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Keyed, PushSource, Source
from connect_core.sdk.values import LIVE
from connect_core.service.opened import Opened
from connect_core.systems import source as opened_source

__all__ = ["SearchFindings", "SearchWindow", "holding", "with_key"]

_WINDOW = "Search a window of the source: --when CONDITION --range PARTITION:BEGIN-END"


def with_key(opened: Opened, connector: Connector, key: str) -> Sequence[tuple[Partition, int]]:
    """Raises ConfigError where there is none, or the source has no index."""
    with ExitStack() as resources:
        source = _source(opened, connector, resources)
        if not isinstance(source, Keyed):
            raise ConfigError(f"The source of {connector.name} has no index of keys", next_step=_WINDOW)
        found = source.offsets_with_key(key)
    if not found:
        raise ConfigError(
            "The source has no record with this key",
            where=f"connector {connector.name}, key {key}",
            next_step=f"Brokers keep keys as long as messages. {_WINDOW}",
        )
    return found


def holding(opened: Opened, connector: Connector, condition: str, window: SearchWindow) -> SearchFindings:
    """Raises ConfigError for a condition or a window that is none, or a source that cannot be read again."""
    document = load_document(connector.document, f"connector {connector.name}")
    try:
        wrong = impossible_in(check_when(condition), document)
    except ValueError as error:
        wrong = [str(error)]
    if wrong:
        raise ConfigError("No record can be found by this", faults=tuple(Fault("when", words) for words in wrong))
    parse = document.parse.model_dump(exclude_defaults=True)
    with ExitStack() as resources:
        source = _source(opened, connector, resources)
        if isinstance(source, PushSource):
            raise ConfigError(
                f"The source of {connector.name} gives nobody a record again that was acknowledged",
                next_step="Name the record by its place in the target, or its key: --target, --key",
            )
        listed = source.partitions(list(opened.ledger.partitions(connector.uid)))
        committed = opened.ledger.positions(connector.uid, LIVE, listed)
        return searched(source, committed, window, condition, parse, clock.utc())


def _source(opened: Opened, connector: Connector, resources: ExitStack) -> Source:
    return opened_source(revealed(opened.resolved(connector).source), resources)
