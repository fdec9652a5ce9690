"""Which server is called, and with what: judged before anything is sent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from connect_core.errors import ConfigError

_PREFIX = "/api/v1"
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class RemoteServer:
    """`url` is what all its addresses begin with. `token` is sent with each request where there is one; it came from
    `token_file`."""

    url: str
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    ca_file: Path | None = None

    @property
    def encrypted(self) -> bool:
        return self.url.startswith("https:")


def server_of(url: str, token_file: Path | None, ca_file: Path | None) -> RemoteServer:
    """Raises ConfigError for an address that is none, a file that cannot be read, and a token that anybody could read
    on its way."""
    parts = _parts(url)
    token = _token_in(token_file) if token_file else ""
    if token and parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise ConfigError(
            "A token is not sent in plain text: anybody who reads it on its way can use it",
            where=_shown(parts),
            next_step=f"Name the server as https://{parts.netloc}; it does TLS with `waybill serve --tls-certificate"
            " FILE --tls-key FILE`, or a proxy in front of it does",
        )
    if ca_file and not ca_file.is_file():
        raise ConfigError("There is no file with certificates", where=str(ca_file), next_step="Name one with --ca FILE")
    return RemoteServer(_shown(parts).removesuffix(_PREFIX), token, token_file, ca_file)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or re.search(r"[\s\\]", url):
        raise ConfigError("This is no address of a server", next_step="Write it as --server https://HOST:8082")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError(
            "An address has no user, no password and no question mark",
            where=f"{parts.scheme}://{parts.hostname}",
            next_step="Write it as --server https://HOST:8082, with the token in a file: --token-file FILE",
        )
    return parts


def _shown(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _token_in(path: Path) -> str:
    """Raises ConfigError where there is none; its words are no part of any message."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "it is no token"
        raise ConfigError(
            f"The file of the token cannot be read: {words}", where=str(path), next_step="Name one with --token-file"
        ) from None
    if not _TOKEN.fullmatch(token):
        raise ConfigError(
            "The file has no token",
            where=str(path),
            next_step="Its only line is what `waybill tokens create` has printed on the host of the server",
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
