"""Where a server of RocketMQ Connect is, as the properties file of its command line says."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from connect_core.config import read_text
from connect_core.errors import ConfigError


class PeerServer(NamedTuple):
    address: str = "127.0.0.1"
    port: int = 8082


def text_of(path: Path) -> str:
    """Raises ConfigError for a file that cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"The file cannot be read: {words}", where=str(path)) from None


def server_in(path: Path) -> PeerServer:
    """By its keys `httpAddr` and `httpPort`. Raises ConfigError for what is no number of a port."""
    [written] = read_text(text_of(path), where=str(path), suffix=".properties")
    port = str(written.data.get("httpPort", PeerServer().port))
    if not port.isdecimal():
        raise ConfigError(f"The httpPort {port!r} is no number", where=str(path))
    return PeerServer(str(written.data.get("httpAddr", PeerServer().address)), int(port))
