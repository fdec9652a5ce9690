"""What a Java program needs to reach the network as this Python does: the same certificate authorities and proxy.

Only for the Java of the wheel, which brings authorities of its own and knows nothing of those that the machine's owner
has added; a Java that is installed on the machine has been set up with it.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

_PASSWORD = "changeit"  # guards against accidents only: what it protects is public
_CERTIFICATE_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2


def java_arguments(folder: Path) -> list[str]:
    """Java system properties; writes the file that they name into `folder`."""
    arguments = []
    authorities = _authorities()
    if authorities:
        store = folder / "authorities.jks"
        store.write_bytes(key_store(authorities))
        arguments += [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"]
    proxy = urlsplit(getproxies().get("https", ""))
    if proxy.hostname:
        arguments += [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 443}"]
    return arguments


def key_store(certificates: list[bytes]) -> bytes:
    """A Java key store (format JKS 2) that trusts `certificates`, each in DER."""
    data = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        data += struct.pack(">I", _TRUSTED) + _text(f"authority-{number}") + struct.pack(">q", 0)
        data += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    return data + hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + data).digest()


def _text(value: str) -> bytes:
    encoded = value.encode("ascii")
    return struct.pack(">H", len(encoded)) + encoded


def _authorities() -> list[bytes]:
    context = ssl.create_default_context()
    for name in _CERTIFICATE_FILES:
        file = os.environ.get(name)
        if file and Path(file).is_file():
            context.load_verify_locations(file)
    return context.get_ca_certs(binary_form=True)
