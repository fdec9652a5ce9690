"""Certificates for servers and clients on the loopback interface, made by OpenSSL; each is valid for two days."""

from __future__ import annotations

import subprocess
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


def make_authority(folder: Path, name: str) -> None:
    """`NAME.pem` and `NAME.key`."""
    _openssl(folder, "req", "-x509", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")


def make_certificate(folder: Path, name: str, authority: str) -> None:
    """`NAME.pem` and `NAME.key`, signed by that authority."""
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    _openssl(folder, "req", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    signing = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", "-extfile", "names")
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", "-days", "2", *signing)


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
