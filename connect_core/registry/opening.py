"""From what a document says of a registry, its references replaced, to a client of it."""

from __future__ import annotations

import ssl
from pathlib import Path

from connect_core.errors import ConfigError
from connect_core.registry.client import SchemaRegistry
from connect_core.sdk.values import Json

TIMEOUT_S = 3.0


def opened(options: Json) -> SchemaRegistry:
    """What is left out has its default. Opens no connection. Raises ConfigError for a file that is no certificate."""
    return SchemaRegistry(
        options["url"],
        options.get("username", ""),
        options.get("password", ""),
        float(options.get("timeout", TIMEOUT_S)),
        _context(options["tls_ca"]) if options.get("tls_ca") else None,
    )


def _context(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError):
        missing = "There is no such file" if not Path(path).is_file() else "It holds no certificates"
        step = "Set registry.tls_ca to a PEM file of this host"
        raise ConfigError(f"The authorities of a schema registry: {missing}", where=path, next_step=step) from None
