"""The PEM files of a TLS connection: options of several systems, and what is made of them."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from connect_core.errors import ConfigError


def _absolute(path: str) -> str:
    if path and not path.startswith("/"):
        raise ValueError("must be an absolute path")
    return path


_PemFile = Annotated[str, AfterValidator(_absolute)]
TlsCa = Annotated[
    _PemFile,
    Field(description="PEM file of the authorities to trust; empty: the system's", examples=["/etc/tls/ca.pem"]),
]
TlsCertificate = Annotated[
    _PemFile,
    Field(description="PEM file of our own certificate, where the server asks for one", examples=["/etc/tls/me.pem"]),
]
TlsKey = Annotated[
    _PemFile,
    Field(description="PEM file of its key; empty: in the same file", examples=["/etc/tls/me.key"]),
]


class TlsFiles(NamedTuple):
    """Of the authorities to trust, of our own certificate and of its key; empty: none."""

    ca: str
    certificate: str
    key: str

    def check(self, *, tls: bool) -> None:
        """Raises ValueError for files that mean nothing."""
        if not tls and any(self):
            raise ValueError("tls_… means nothing without tls: true")
        if self.key and not self.certificate:
            raise ValueError("tls_key needs tls_certificate")

    def context(self) -> ssl.SSLContext:
        """Checks certificates and host names. Raises ConfigError when a file is missing or holds something else."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except (OSError, ssl.SSLError) as error:
            named = [path for path in self if path]
            missing = [path for path in named if not Path(path).is_file()]
            raise ConfigError(
                f"There is no file {missing[0]}" if missing else f"A certificate or its key cannot be used: {error}",
                where=", ".join(named),
                next_step="Set tls_ca, tls_certificate and tls_key to PEM files of this host",
            ) from None
        return context
