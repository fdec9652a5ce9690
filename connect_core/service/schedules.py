"""What a scheduler makes its jobs from: the connectors, their documents, and the kind of engine that each asks for.

Read at every parse of a DAG file: one query of the ledger, and nothing of the network or of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connect_core.config import (
    ConnectorDocument,
    database_url,
    engine_for,
    find_home,
    load_document,
    load_settings,
    masked,
)
from connect_core.config.document_parts import Endpoint
from connect_core.config.schedule import Schedule
from connect_core.errors import ConfigError
from connect_core.ledger import Connector, Ledger
from connect_core.sdk.values import Json

__all__ = ["Connector", "ConnectorDocument", "Endpoint", "Schedule", "connectors", "document_of", "kinds", "masked"]


def connectors(name: str | None = None) -> Sequence[Connector]:
    """All that there are, or the one of a name: none when it was deleted."""
    with Ledger.glance(database_url(find_home())) as ledger:
        if name is None:
            return ledger.connectors()
        try:
            return [ledger.connector(name)]
        except ConfigError:
            return []


def document_of(connector: Connector) -> ConnectorDocument:
    """Raises ConfigError for one that cannot be used."""
    return load_document(connector.document, f"connector {connector.name}")


def kinds() -> Callable[[Json], str]:
    """Gives the kind of engine for a document: what it asks for, else the settings."""
    home = find_home()
    settings = load_settings(home)
    return lambda document: engine_for(document, settings, home).kind
